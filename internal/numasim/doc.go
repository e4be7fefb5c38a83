// Package numasim runs the locks of this module on machines that are not here, in the cost model of internal/sim, and sets
// what comes out beside published measurements. Everything in it is modelled: it shows how costs follow from distances and
// from the number of cache lines that change hands, not how fast a machine is.
//
// Except for this comment everything in it needs the build tag sim: go run -tags sim ./bench numasim.
package numasim
