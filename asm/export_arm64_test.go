//go:build gc && !purego && !race && !sim

package asm

// otherBodies: both ways to wait, whichever is selected, as far as the CPU goes.
func otherBodies() []Body {
	isb := selected
	isb.Name = "isb"
	isb.WaitWhileEqual32 = waitWhileEqual32ISB
	if !hasWFxT {
		return []Body{isb}
	}
	wfet := selected
	wfet.Name = "wfet"
	wfet.WaitWhileEqual32 = waitWhileEqual32WFET
	return []Body{isb, wfet}
}
