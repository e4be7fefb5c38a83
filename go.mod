module github.com/hqsync/hqsync

go 1.26.0

require (
	github.com/klauspost/cpuid/v2 v2.4.2
	golang.org/x/sys v0.50.0
)

require go.uber.org/goleak v1.3.0
