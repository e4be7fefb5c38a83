package torture

import (
	"errors"
	"math/rand/v2"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// disturbAffinity confines each thread to some of the CPUs that the process may use.
func disturbAffinity(*session) (func(*rand.Rand) error, func(), error) {
	var whole unix.CPUSet
	if err := unix.SchedGetaffinity(0, &whole); err != nil {
		return nil, nil, err
	}
	if whole.Count() < 2 {
		return nil, nil, errors.New("there is only one CPU")
	}
	strike := func(luck *rand.Rand) error {
		return eachThread(func() *unix.CPUSet { return someOf(&whole, luck) })
	}
	// A thread that was started meanwhile has the set of the thread that started it: a second round finds it.
	restore := func() {
		for range 2 {
			_ = eachThread(func() *unix.CPUSet { return &whole })
		}
	}
	return strike, restore, nil
}

// someOf returns a subset with at least one CPU.
func someOf(whole *unix.CPUSet, luck *rand.Rand) *unix.CPUSet {
	some := new(unix.CPUSet)
	for some.Count() == 0 {
		for cpu := range len(whole) * strconv.IntSize {
			if whole.IsSet(cpu) && luck.IntN(2) == 0 {
				some.Set(cpu)
			}
		}
	}
	return some
}

// eachThread sets the CPUs of every thread of this process. One that has ended meanwhile needs none.
func eachThread(cpus func() *unix.CPUSet) error {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, e := range entries {
		thread, err := strconv.Atoi(e.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(thread, cpus()); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}
