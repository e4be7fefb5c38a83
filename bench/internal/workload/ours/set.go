// Code generated from ../std by go test ./internal/workload -update; DO NOT EDIT.

// Package ours has the workloads on package sync2.
package ours

import "github.com/hqsync/hqsync/bench/internal/workload"

// Set makes the jobs.
var Set = workload.Set{
	MutexAlone:        mutexAlone,
	Mutex:             mutexShared,
	DoAlone:           doAlone,
	Do:                doShared,
	RWMutexReadAlone:  rwReadAlone,
	RWMutexRead:       rwRead,
	RWMutexMix:        rwMix,
	RWMutexWriteAlone: rwWriteAlone,
	CondBroadcast:     condBroadcast,
	CondPingPong:      condPingPong,
	WaitGroupForkJoin: waitGroupForkJoin,
	WaitGroupAddDone:  waitGroupAddDone,
	Parked:            parked,
}
