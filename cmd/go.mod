module github.com/hqsync/hqsync/cmd

go 1.26.0

require github.com/hqsync/hqsync v0.0.0

replace github.com/hqsync/hqsync => ../
