package asm

// HeavyFence makes every other thread of the process execute a full memory
// fence between the call and the return, and is one itself: the expensive half
// of an asymmetric pair whose cheap half, a plain store followed by a load, has
// no fence. Whatever another thread stored before its fence is visible to the
// caller afterwards; whatever the caller stored before the call is visible to
// the loads that the other thread executes after its fence.
//
// It reports whether the fences were executed. It is membarrier(2), private
// expedited, on Linux; it allocates nothing and does not yield, so it may be
// called pinned. The first call in a process registers it with the kernel,
// which takes milliseconds; [RegisterHeavyFence] does that beforehand.
//
// If the kernel refuses although it offered the call (a seccomp filter that was
// installed later), [HeavyFenceLost] is set first, and then the fences are
// forced by other means: unmapping a page interrupts the CPUs that run the
// process, and where it does not, the thread visits each CPU in turn. That may
// take milliseconds per busy CPU, and works for as long as it has to. False
// means that those failed too, or that [HeavyFenceAvailable] was never true.
func HeavyFence() bool { return heavyFence() }

// HeavyFenceAvailable reports whether the kernel offers [HeavyFence] and has
// not refused it so far. The first call asks the kernel (one system call, no
// file, well under a microsecond); so a package that chooses its protocol by
// the answer can ask in its initialisation, before the first plain store.
func HeavyFenceAvailable() bool { return heavyFenceAvailable() }

// RegisterHeavyFence registers the process for [HeavyFence], executes one, and
// reports whether that worked. Calls after the first cost one load.
//
// The kernel waits for every CPU to have scheduled once, as soon as the process
// has a second thread, which under Go is always: some ten milliseconds
// (TestRegistrationTime prints them). That is too much for a package
// initialisation, and for a pinned goroutine. The calling thread blocks without
// holding its P, so call it unpinned, from the first slow path that is about to
// need the fence. It is optional: the first HeavyFence does the same.
func RegisterHeavyFence() bool { return registerHeavyFence() }

// HeavyFenceLost reports whether the kernel has refused [HeavyFence] after it
// offered it. It never becomes false again. A protocol that relies on the fence
// must then leave its asymmetric form for ever. It must go on calling HeavyFence,
// which works by other means, for as long as another goroutine may still be on
// its way through the cheap half.
func HeavyFenceLost() bool { return heavyFenceLost() }
