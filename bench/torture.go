package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hqsync/hqsync/bench/internal/result"
	"github.com/hqsync/hqsync/bench/internal/torture"
)

type tortureCmd struct {
	Lock     string        `default:"sync2" placeholder:"NAME" help:"sync2, sync, or one of the broken ones that must fail: busted, forgetful."`
	G        int           `short:"g" name:"goroutines" placeholder:"N" help:"Goroutines on each lock. Default 8."`
	Locks    int           `placeholder:"N" help:"Locks of each kind. Default 3."`
	Stats    time.Duration `default:"5s" placeholder:"TIME" help:"Time between two lines of statistics."`
	Patience time.Duration `default:"15s" placeholder:"TIME" help:"How long a goroutine may make no progress before it counts as lost."`
	Without  []string      `placeholder:"NAME" help:"Leave out disturbances: procs, gc, slots, affinity, stop."`
	Seed     uint64        `placeholder:"N" help:"Repeat the random choices of a run, though not the scheduler's."`
}

func (c *tortureCmd) Help() string {
	return `Linux's locktorture for goroutines: crews that Lock, TryLock, RLock, Downgrade, Wait, Signal, Broadcast, fork and join, with
timeouts and cancels, in deep stacks and fresh ones, hold locks for as long and stall as often as locktorture's do, while
GOMAXPROCS, the garbage collector, the parking table's size and the threads' CPUs change, and the process is stopped and
continued. -d is the time of the whole run, 60s if it is not given, 10s with -quick.

Example: go run ./bench torture -d 10m

Example: go run ./bench torture -lock busted

It fails on two owners, on a goroutine that makes no progress (it then prints who is parked and where everybody is), and,
every two seconds when all come to rest, on a lock that is not free, a goroutine that is still parked, or a section too few
or too many. A line such as "mutex 5000 (700/300 ???)" means 5000 acquisitions, of which the luckiest goroutine had 700 and
the unluckiest 300; ??? marks more than twice as many. Of the other common flags -json and -out apply.`
}

func (c *tortureCmd) Run(b *bench) error {
	if err := b.without("torture", "filter", "procs"); err != nil {
		return err
	}
	config, err := c.config(b)
	if err != nil {
		return err
	}
	out, err := newOutput(b.Out, "torture", b.JSON)
	if err != nil {
		return err
	}
	if !b.announce(config.Duration, "") {
		return nil
	}
	ctx, stop := untilInterrupt()
	defer stop()
	r := newResult("torture")
	found, failure := torture.Run(ctx, config)
	r.Seconds = time.Since(r.Started).Seconds()
	r.Interrupted = failure == nil && ctx.Err() != nil
	r.Sheets = []result.Sheet{tortureSheet(found, failure)}
	return b.publish(r, out, failure)
}

func (c *tortureCmd) config(b *bench) (torture.Config, error) {
	config := torture.Config{
		Locks: c.Lock, Duration: time.Minute, Members: c.G, Rooms: c.Locks, Stats: c.Stats, Patience: c.Patience, Without: c.Without,
		Seed: c.Seed, Log: b.stdout, Dump: b.stderr,
	}
	if b.Quick {
		config.Duration = 10 * time.Second
	}
	if b.D != 0 {
		config.Duration = b.D
	}
	switch {
	case config.Duration < 0:
		return config, usagef("-d %v: want a time above 0", b.D)
	case c.G < 0 || c.G > 10_000:
		return config, usagef("-g %d: want 1 to 10000 goroutines on each lock", c.G)
	case c.Locks < 0 || c.Locks > 1000:
		return config, usagef("-locks %d: want 1 to 1000 of each kind", c.Locks)
	case c.Stats < 100*time.Millisecond:
		return config, usagef("-stats %v: want 100ms or more", c.Stats)
	case c.Patience < time.Second:
		return config, usagef("-patience %v: want 1s or more", c.Patience)
	case !slices.Contains(torture.Names(), c.Lock):
		return config, usagef("-lock %s: want one of %s", c.Lock, strings.Join(torture.Names(), ", "))
	}
	for _, name := range c.Without {
		if !slices.Contains(torture.Disturbances(), name) {
			return config, usagef("-without %s: want some of %s", name, strings.Join(torture.Disturbances(), ", "))
		}
	}
	return config, nil
}

// tortureSheet has a row for each kind of member, and the course of the run.
func tortureSheet(found torture.Report, failure error) result.Sheet {
	verdict := "nothing lost"
	if failure != nil {
		verdict = "FAILED: " + failure.Error()
	}
	s := result.Sheet{
		Name: "torture", Title: fmt.Sprintf("Torture of %s: %s", found.Locks, verdict),
		Note:    fmt.Sprintf("%d goroutines for %v; disturbed by: %s; seed %d. ??? marks kinds whose luckiest goroutine has more than twice what its unluckiest has", found.Members, found.Took.Round(time.Second), found.Disturbed(), found.Seed),
		Columns: []string{"", "goroutines", "acquired", "most", "least", "", "gave up"},
	}
	course := result.Plot{
		Caption: "Acquisitions per second between two lines of statistics; rests and disturbances make the dips.",
		X:       result.Axis{Name: "s"}, Y: result.Axis{Name: "acquisitions/s", Log: true},
	}
	for _, k := range found.Kinds {
		mark := ""
		if k.Uneven() {
			mark = "???"
		}
		s.Rows = append(s.Rows, []string{k.Name, fmt.Sprint(k.Members), fmt.Sprint(k.Total), fmt.Sprint(k.Max), fmt.Sprint(k.Min), mark, fmt.Sprint(k.GaveUp)})
		course.Series = append(course.Series, rateOf(k.Name, found.Course))
	}
	if len(found.Course) > 1 {
		s.Plots = []result.Plot{course}
	}
	return s
}

// rateOf is the kind's acquisitions per second over the course; a time without any is left out.
func rateOf(kind string, course []torture.Moment) result.Series {
	s := result.Series{Name: kind}
	var before torture.Moment
	for _, now := range course {
		span := (now.After - before.After).Seconds()
		if done := now.Total[kind] - before.Total[kind]; done > 0 && span > 0 {
			s.X = append(s.X, now.After.Seconds())
			s.Y = append(s.Y, float64(done)/span)
		}
		before = now
	}
	return s
}
