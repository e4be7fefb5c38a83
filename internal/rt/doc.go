// Package rt is the one place that touches runtime internals.
//
// It offers what the locks of this module need from the scheduler and package
// sync does not export: putting the calling goroutine to sleep and waking a
// named one ([Parker]), forbidding preemption for a few instructions ([Pin]),
// the runtime's own judgement whether spinning can help ([CanSpin]), its
// clocks, its fatal errors and its block and mutex profiles.
//
// # Two twins
//
// The native twin (files *_native*) pulls runtime functions by go:linkname. It
// is chosen for the gc toolchain of Go 1.26 and 1.27 on amd64 and arm64. The
// upper bound moves by hand, after the tests have passed on the new release:
// TestRuntimeContract parses the runtime's source under GOROOT and checks each
// constant, signature and push directive that this package relies on.
//
// The portable twin (files *_portable*) is chosen by the build tag purego, by
// any other Go version, compiler or architecture, and uses channels and, for
// mutexes, a sync.Mutex locked twice. What it
// loses: wait reasons in goroutine dumps, profile samples, the /sync/mutex
// metric, and pinning ([Pinnable] is false: Pin does nothing, so its users
// must then take a lock of package sync instead).
//
// # Rules for callers
//
//   - A goroutine that has pinned itself must not park, allocate much, panic or
//     make a blocking system call. A panic while pinned kills the process.
//   - A Parker lives on the heap: the stack of a parked goroutine may move.
package rt
