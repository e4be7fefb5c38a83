package sync2_test

import (
	"reflect"
	"sync"
	"testing"

	"github.com/hqsync/hqsync/sync2"
)

// TestTypesAreAsLargeAsThoseOfPackageSync: services hold millions of them.
func TestTypesAreAsLargeAsThoseOfPackageSync(t *testing.T) {
	for _, c := range []struct{ std, ours reflect.Type }{
		{reflect.TypeFor[sync.Mutex](), reflect.TypeFor[sync2.Mutex]()},
		{reflect.TypeFor[sync.RWMutex](), reflect.TypeFor[sync2.RWMutex]()},
		{reflect.TypeFor[sync.WaitGroup](), reflect.TypeFor[sync2.WaitGroup]()},
	} {
		t.Run(c.std.Name(), func(t *testing.T) {
			want, ok := flavour.sizes[c.std.Name()]
			if !ok {
				t.Skipf("not promised by the %s build; %d bytes here, %d in package sync", flavour.name, c.ours.Size(), c.std.Size())
			}
			if got := sizeOf(c.ours); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			// An RWMutex is aligned to its pointer to the readers' counters, package sync's to 4 bytes.
			if std := sizeOf(c.std); std.bytes != want.bytes || std.align > want.align {
				t.Errorf("package sync's is %+v by now, the promise was %+v", std, want)
			}
		})
	}
}

func sizeOf(t reflect.Type) size { return size{int(t.Size()), t.Align()} }
