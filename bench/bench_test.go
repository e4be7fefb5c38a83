package main

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hqsync/hqsync/bench/internal/futex"
	"github.com/hqsync/hqsync/bench/internal/harness"
	"github.com/hqsync/hqsync/bench/internal/result"
)

// benchmark runs the cells of the family as sub-benchmarks impl=NAME/PARAMETERS, so that benchstat -col /impl sets the
// implementations side by side. Wall time per operation of all goroutines together; a Cond's broadcast until all have run.
func benchmark(b *testing.B, family string, specs []tableSpec) {
	found := false
	for _, spec := range specs {
		for _, c := range spec.cells {
			if c.timed || c.family() != family {
				continue
			}
			found = true
			for _, arm := range c.arms() {
				if arm != result.Again {
					b.Run("impl="+arm+c.name[len(family):], func(b *testing.B) { c.benchmark(b, arm) })
				}
			}
		}
	}
	if !found {
		b.Fatalf("no cell is called %s", family)
	}
}

func (c *cell) benchmark(b *testing.B, arm string) {
	defer setProcs(c.procs)()
	job := c.jobOf(arm)
	tally, err := harness.RunN(job, uint64(b.N), b.ResetTimer)
	b.StopTimer()
	if err != nil {
		b.Fatal(err)
	}
	took := b.Elapsed()
	if tally.Busy > 0 {
		took = tally.Busy
	}
	// Of what was done: more than b.N, rounded up for each goroutine.
	b.ReportMetric(float64(took.Nanoseconds())/float64(tally.Ops), "ns/op")
}

func BenchmarkMutexUncontended(b *testing.B) {
	benchmark(b, "MutexUncontended", mutexTables(nil, 0, true))
}
func BenchmarkMutex(b *testing.B) { benchmark(b, "Mutex", mutexTables(nil, 0, true)) }
func BenchmarkMutexOversubscribed(b *testing.B) {
	benchmark(b, "MutexOversubscribed", mutexTables(nil, 0, true))
}
func BenchmarkDoUncontended(b *testing.B) { benchmark(b, "DoUncontended", doTables(0)) }
func BenchmarkDo(b *testing.B)            { benchmark(b, "Do", doTables(0)) }
func BenchmarkRWMutexReadAlone(b *testing.B) {
	benchmark(b, "RWMutexReadAlone", rwmutexTables(0, true))
}
func BenchmarkRWMutexRead(b *testing.B) { benchmark(b, "RWMutexRead", rwmutexTables(0, true)) }
func BenchmarkRWMutexMix(b *testing.B)  { benchmark(b, "RWMutexMix", rwmutexTables(0, true)) }
func BenchmarkRWMutexWriteAlone(b *testing.B) {
	benchmark(b, "RWMutexWriteAlone", rwmutexTables(0, true))
}
func BenchmarkCondBroadcast(b *testing.B)     { benchmark(b, "CondBroadcast", condTables(0)) }
func BenchmarkCondPingPong(b *testing.B)      { benchmark(b, "CondPingPong", condTables(0)) }
func BenchmarkWaitGroupForkJoin(b *testing.B) { benchmark(b, "WaitGroupForkJoin", waitgroupTables(0)) }
func BenchmarkWaitGroupAddDone(b *testing.B)  { benchmark(b, "WaitGroupAddDone", waitgroupTables(0)) }

func BenchmarkHashSlots(b *testing.B)  { benchmark(b, "HashSlots", hashTables(0, 1024, 0)) }
func BenchmarkHashDesign(b *testing.B) { benchmark(b, "HashDesign", hashTables(0, 1024, 0)) }
func BenchmarkHashKernel(b *testing.B) { benchmark(b, "HashKernel", hashTables(0, 1024, 0)) }
func BenchmarkWake(b *testing.B)       { benchmark(b, "Wake", wakeTables(defaultCrowds)) }
func BenchmarkWakeParallel(b *testing.B) {
	benchmark(b, "WakeParallel", wakeParallelTables(defaultCrowds))
}
func BenchmarkRequeue(b *testing.B) { benchmark(b, "Requeue", requeueTables(defaultCrowds)) }
func BenchmarkHandOff(b *testing.B) { benchmark(b, "HandOff", handoffTables(nil)) }

// families are the cells that have a benchmark above.
var families = map[string]bool{
	"MutexUncontended": true, "Mutex": true, "MutexOversubscribed": true, "DoUncontended": true, "Do": true,
	"RWMutexReadAlone": true, "RWMutexRead": true, "RWMutexMix": true, "RWMutexWriteAlone": true,
	"CondBroadcast": true, "CondPingPong": true, "WaitGroupForkJoin": true, "WaitGroupAddDone": true,
	"HashSlots": true, "HashDesign": true, "HashKernel": true, "Wake": true, "WakeParallel": true, "Requeue": true, "HandOff": true,
}

func TestEveryCell_HasABenchmark(t *testing.T) {
	seen := map[string]bool{}
	for _, spec := range everyTable() {
		for _, c := range spec.cells {
			if !c.timed {
				seen[c.family()] = true
				if !families[c.family()] {
					t.Errorf("cell %s has no benchmark", c.name)
				}
			}
		}
	}
	if len(seen) != len(families) && futex.Missing() == nil {
		t.Errorf("cells of %d families, benchmarks of %d", len(seen), len(families))
	}
}

// everyTable returns the tables of all commands.
func everyTable() []tableSpec {
	specs := headlineTables(0)
	specs = append(specs, mutexTables(nil, 0, true)...)
	specs = append(specs, rwmutexTables(0, true)...)
	specs = append(specs, doTables(0)...)
	specs = append(specs, condTables(0)...)
	specs = append(specs, waitgroupTables(0)...)
	specs = append(specs, hashTables(0, 1024, 0)...)
	if futex.Missing() != nil {
		return specs
	}
	specs = append(specs, wakeTables(defaultCrowds)...)
	specs = append(specs, wakeParallelTables(defaultCrowds)...)
	specs = append(specs, requeueTables(defaultCrowds)...)
	return append(specs, handoffTables(nil)...)
}

// TestEveryCell_DoesItsOperations: on every implementation, the asked number of them, and not in the name of another.
func TestEveryCell_DoesItsOperations(t *testing.T) {
	names := map[string]string{}
	for _, spec := range everyTable() {
		for _, c := range spec.cells {
			if other, taken := names[c.name]; taken && spec.name != "headline" && other != "headline" {
				t.Errorf("cell %s is in tables %s and %s", c.name, other, spec.name)
			}
			names[c.name] = spec.name
			if c.timed || spec.name == "headline" {
				continue
			}
			for _, arm := range c.arms() {
				restore := setProcs(c.procs)
				tally, err := harness.RunN(c.jobOf(arm), 3, func() {})
				restore()
				if err != nil {
					t.Fatalf("%s of %s: %v", c.name, arm, err)
				}
				if tally.Ops < 3 || tally.Ops > 3*2048 {
					t.Errorf("%s of %s: %d operations, want 3 or a few per goroutine", c.name, arm, tally.Ops)
				}
			}
		}
	}
}

func TestBenchmarkNames_AreKeyValue(t *testing.T) {
	for _, spec := range everyTable() {
		for _, c := range spec.cells {
			for key, value := range c.params {
				if part := key + "=" + strconv.Itoa(value); !slices.Contains(strings.Split(c.name, "/"), part) {
					t.Errorf("cell %s does not name its parameter %s", c.name, part)
				}
			}
		}
	}
}
