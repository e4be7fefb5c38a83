package report

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Environment of the browser check: CI sets the first, so that a missing browser is a failure there; the second names a
// report to look at instead of the sample, the third a directory for screenshots.
const (
	needBrowser = "HQSYNC_BROWSER"
	whichReport = "HQSYNC_REPORT"
	screenshots = "HQSYNC_SCREENSHOTS"
)

// browser returns the command of a Chromium.
func browser(t *testing.T) string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv(needBrowser) != "" {
		t.Fatal("there is no Chromium; apt-get install chromium")
	}
	t.Skip("needs Chromium: apt-get install chromium")
	return ""
}

// reportFile returns the page to look at.
func reportFile(t *testing.T) string {
	if file := os.Getenv(whichReport); file != "" {
		whole, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		return whole
	}
	file := filepath.Join(t.TempDir(), "sample.html")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	second := sample(10)
	second.Command = "second"
	if err := HTML(f, sample(10), second); err != nil {
		t.Fatal(err)
	}
	return file
}

// complaints are what a page should not cause.
type complaints struct {
	mu  sync.Mutex
	all []string
}

func (c *complaints) listen(event any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		c.all = append(c.all, fmt.Sprintf("console %s: %v", e.Type, e.Args))
	case *runtime.EventExceptionThrown:
		c.all = append(c.all, "exception: "+e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		c.all = append(c.all, "log: "+e.Entry.Text)
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, "file:") && !strings.HasPrefix(url, "data:") {
			c.all = append(c.all, "request: "+url)
		}
	}
}

// layoutOf asks the page what it looks like. A plot is drawn if its lines and labels take up room inside it; a label that
// another one covers cannot be read.
const layoutOf = `(() => {
  const plots = [...document.querySelectorAll("svg")].map(svg => {
    const box = svg.getBoundingClientRect();
    const size = e => { const b = e.getBoundingClientRect(); return [b.width, b.height]; };
    const inside = e => { const b = e.getBoundingClientRect(); return b.left >= box.left - 1 && b.right <= box.right + 1 && b.top >= box.top - 1 && b.bottom <= box.bottom + 1; };
    const texts = [...svg.querySelectorAll("text")];
    const boxes = texts.map(e => e.getBoundingClientRect());
    const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
    return {
      covered: texts.filter((e, i) => boxes.some((b, j) => j < i && over(b, boxes[i]))).map(e => e.textContent),
      width: box.width, height: box.height,
      drawn: [...svg.querySelectorAll("path")].filter(e => { const [w, h] = size(e); return w > 0 || h > 0; }).length,
      labels: texts.length,
      outside: texts.filter(e => !inside(e)).map(e => e.textContent),
      smallest: Math.min(...texts.map(e => size(e)[1])),
    };
  });
  return {
    scroll: document.documentElement.scrollWidth, window: window.innerWidth,
    sections: [...document.querySelectorAll("section")].map(s => ({id: s.id, rows: s.querySelectorAll("tbody tr").length, height: s.getBoundingClientRect().height})),
    plots: plots,
    cut: [...document.querySelectorAll("td, th, dd, p, figcaption")].filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0).map(e => e.textContent.trim().slice(0, 60)),
    twice: [...document.querySelectorAll("[id]")].map(e => e.id).filter((id, i, all) => all.indexOf(id) !== i),
  };
})()`

type pageLayout struct {
	Scroll, Window float64
	Sections       []struct {
		ID     string
		Rows   int
		Height float64
	}
	Plots []struct {
		Width, Height, Smallest float64
		Drawn, Labels           int
		Outside, Covered        []string
	}
	Cut, Twice []string
}

// TestBrowser looks at a report as readers do: in a wide and a narrow window, light and dark, without a network.
func TestBrowser(t *testing.T) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser(t)), chromedp.NoSandbox, chromedp.WSURLReadTimeout(2*time.Minute))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	tab, closeTab := chromedp.NewContext(allocator)
	defer closeTab()
	tab, cancel := context.WithTimeout(tab, 5*time.Minute)
	defer cancel()
	var heard complaints
	if err := chromedp.Listen(tab, heard.listen); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(tab, call(network.Enable, network.EnableParams{}), call(log.Enable, cdp.Empty{}), call(runtime.Enable, cdp.Empty{})); err != nil {
		t.Fatal(err)
	}
	file := reportFile(t)
	for _, width := range []int64{400, 1280} {
		for _, scheme := range []string{"light", "dark"} {
			name := fmt.Sprintf("%s-%d", scheme, width)
			layout, shot := open(t, tab, file, width, scheme)
			checkLayout(t, name, layout)
			checkScreenshot(t, name, scheme == "dark", shot)
		}
	}
	for _, complaint := range heard.all {
		t.Error(complaint)
	}
}

// call is an action that sends a command of the protocol.
func call[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, command, params)
		return err
	})
}

// open opens the file in a window of that width.
func open(t *testing.T, tab context.Context, file string, width int64, scheme string) (pageLayout, []byte) {
	t.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if err := chromedp.Do(tab, call(emulation.SetEmulatedMedia, media), chromedp.EmulateViewport(width, 900), chromedp.Navigate("file://"+file)); err != nil {
		t.Fatal(err)
	}
	layout, err := chromedp.Run(tab, chromedp.Evaluate[pageLayout](layoutOf))
	if err != nil {
		t.Fatal(err)
	}
	shot, err := chromedp.Run(tab, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	return layout, shot
}

// smallestLabel is the least height of a line of text in CSS pixels that can be read.
const smallestLabel = 9

func checkLayout(t *testing.T, name string, l pageLayout) {
	if l.Scroll > l.Window {
		t.Errorf("%s: the page is %v px wide in a window of %v", name, l.Scroll, l.Window)
	}
	if len(l.Sections) == 0 || len(l.Plots) == 0 {
		t.Errorf("%s: %d sections and %d plots", name, len(l.Sections), len(l.Plots))
	}
	if len(l.Cut) > 0 {
		t.Errorf("%s: these texts are wider than their boxes: %q", name, l.Cut)
	}
	if len(l.Twice) > 0 {
		t.Errorf("%s: the ids %v are there twice", name, l.Twice)
	}
	for _, s := range l.Sections {
		if s.Rows == 0 || s.Height < 50 {
			t.Errorf("%s: section %s has %d rows and is %v px high", name, s.ID, s.Rows, s.Height)
		}
	}
	for i, p := range l.Plots {
		if p.Width < 250 || p.Height < 50 || p.Drawn < 4 || p.Labels < 2 {
			t.Errorf("%s: plot %d is not drawn: %+v", name, i, p)
		}
		if len(p.Outside)+len(p.Covered) > 0 || p.Smallest < smallestLabel {
			t.Errorf("%s: labels of plot %d cannot be read: outside are %q, over others %q, the smallest is %v px high", name, i, p.Outside, p.Covered, p.Smallest)
		}
	}
}

// checkScreenshot checks that the picture is not blank, and dark if it should be.
func checkScreenshot(t *testing.T, name string, dark bool, shot []byte) {
	if dir := os.Getenv(screenshots); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".png"), shot, 0o666); err != nil {
			t.Error(err)
		}
	}
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	paper, share, colours := describe(picture)
	if colours < 20 || share > 0.98 || share < 0.5 {
		t.Errorf("%s: %d colours, %.0f %% of the picture in one of them: it is blank or full", name, colours, 100*share)
	}
	if r, g, b, _ := paper.RGBA(); dark != (r+g+b < 3*0x8000) {
		t.Errorf("%s: the paper is %v", name, paper)
	}
}

// describe returns the most frequent colour, its share and the number of colours.
func describe(picture image.Image) (most color.RGBA, share float64, colours int) {
	counts := map[color.RGBA]int{}
	all := picture.Bounds()
	for y := all.Min.Y; y < all.Max.Y; y++ {
		for x := all.Min.X; x < all.Max.X; x++ {
			counts[color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA)]++
		}
	}
	for c, n := range counts {
		if n > counts[most] {
			most = c
		}
	}
	return most, float64(counts[most]) / float64(all.Dx()*all.Dy()), len(counts)
}
