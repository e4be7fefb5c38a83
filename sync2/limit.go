//go:build !sync2_std

package sync2

import (
	"context"
	"time"

	"github.com/hqsync/hqsync/parking"
)

// A limit is how long a wait may last. nil means for ever.
type limit struct {
	deadline time.Time
	ctx      context.Context
}

func within(d time.Duration) *limit    { return &limit{deadline: now().Add(d)} }
func until(ctx context.Context) *limit { return &limit{ctx: ctx} }
func (l *limit) apply(opts *parking.Options) {
	if l != nil {
		opts.Deadline, opts.Context = l.deadline, l.ctx
	}
}

// reached reports whether the wait is over. It is asked only on slow paths that
// are about to wait: a free lock is taken even late.
func (l *limit) reached() bool {
	switch {
	case l == nil:
		return false
	case l.ctx != nil:
		return l.ctx.Err() != nil
	}
	return !now().Before(l.deadline)
}
