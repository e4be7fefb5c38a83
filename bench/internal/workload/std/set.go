// Package std has the workloads on package sync.
package std

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
