//go:build sim

package sim

import (
	"context"
	"sync"
)

// A Context is a context.Context that a simulated thread can cancel. It must be made by NewContext in Setup.
type Context struct {
	context.Context
	canceled Uint32
	done     chan struct{}

	mu    sync.Mutex // held across no step
	funcs []*func()
}

// NewContext returns a context that is not cancelled.
func NewContext() *Context {
	return &Context{Context: context.Background(), done: make(chan struct{})}
}

// Done returns a channel that Cancel closes. A thread that waits for it stops the engine: the seam uses AfterCancel.
func (c *Context) Done() <-chan struct{} { return c.done }

// Err returns context.Canceled after Cancel. It is a step.
func (c *Context) Err() error {
	if c.canceled.Load() != 0 {
		return context.Canceled
	}
	return nil
}

type contextKey struct{}

// Value lets AfterCancel find the context under others that only add values.
func (c *Context) Value(key any) any {
	if key == (contextKey{}) {
		return c
	}
	return nil
}

// Cancel cancels the context: each function that was registered starts in a thread of its own.
func (c *Context) Cancel() {
	if c.canceled.Swap(1) != 0 {
		return
	}
	c.mu.Lock()
	close(c.done)
	funcs := c.funcs
	c.funcs = nil
	c.mu.Unlock()
	for _, f := range funcs {
		Go(*f)
	}
}

// AfterCancel is context.AfterFunc: f runs in a thread of its own when ctx is cancelled, or at once if it is; stop reports
// whether it prevented that.
func AfterCancel(ctx context.Context, f func()) (stop func() bool) {
	c, ok := ctx.Value(contextKey{}).(*Context)
	if !ok || current() == nil {
		return context.AfterFunc(ctx, f)
	}
	if c.canceled.Or(0) != 0 { // a write: registering comes before or after Cancel
		Go(f)
		return func() bool { return false }
	}
	entry := &f
	c.mu.Lock()
	c.funcs = append(c.funcs, entry)
	c.mu.Unlock()
	return func() bool { return c.canceled.Or(0) == 0 && c.remove(entry) }
}

func (c *Context) remove(entry *func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, f := range c.funcs {
		if f == entry {
			c.funcs = append(c.funcs[:i], c.funcs[i+1:]...)
			return true
		}
	}
	return false
}
