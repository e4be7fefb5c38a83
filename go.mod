module github.com/hqsync/hqsync

go 1.26.0
