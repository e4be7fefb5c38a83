package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows a bar on a terminal and nothing elsewhere.
type progress struct {
	w   io.Writer
	bar *progressbar.ProgressBar
}

func newProgress(w io.Writer) *progress {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return &progress{w: w}
	}
	return &progress{}
}

// show is called between samples, so that drawing disturbs none.
func (p *progress) show(done, total time.Duration, label string) {
	if p.w == nil {
		return
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(int64(total),
			progressbar.OptionSetWriter(p.w), progressbar.OptionSetWidth(24), progressbar.OptionSetPredictTime(true),
			progressbar.OptionSetElapsedTime(true), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))
	}
	p.bar.Describe(label)
	_ = p.bar.Set64(int64(done)) // a bar that cannot be drawn is no reason to stop measuring
}

func (p *progress) clear() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
