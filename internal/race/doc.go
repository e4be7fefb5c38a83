// Package race tells the race detector about edges that it cannot see.
//
// The packages of this module park goroutines by means that the detector does
// not follow (assembly, runtime hooks, a bucket lock shared by unrelated
// mutexes). They switch event handling off in their slow paths with Disable
// and state the edges that users rely on with Acquire and Release. Without
// -race everything here is a constant or an empty function that inlines to
// nothing.
package race
