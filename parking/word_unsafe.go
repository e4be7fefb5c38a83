//go:build !sim

package parking

import (
	"unsafe"

	"github.com/hqsync/hqsync/asm"
)

// storePlain is a release store that is not ordered before later loads.
func storePlain(word *atomicUint32, v uint32) {
	asm.StoreRelease32((*uint32)(unsafe.Pointer(word)), v)
}
