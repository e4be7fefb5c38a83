//go:build sim

package sim_test

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// seamless says what code under test may not use but through its seam: by import
// path, and then by name or all of it.
var seamless = map[string][]string{
	"sync/atomic":                  nil,
	"math/rand":                    nil,
	"math/rand/v2":                 nil,
	"github.com/hqsync/hqsync/asm": nil,
	"sync":                         nil,
	"time":                         {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"},
	"context":                      {"AfterFunc", "WithCancel", "WithTimeout", "WithDeadline"},
	"runtime":                      {"Gosched", "LockOSThread", "GC", "NumGoroutine", "GOMAXPROCS", "NumCPU"},
}

// allowed are the uses outside of a seam that no run can come to, and why: of a
// whole file, or one sort of use in it.
var allowed = map[string]string{
	"asm/generic.go":                           "the instructions themselves; only seams name the package, and they do not in a run",
	"internal/rt/rt_native_unsafe.go":          "the real runtime, which seam_sim.go calls outside of runs",
	"internal/rt/mutexevent_go126_unsafe.go":   "a profile of the real runtime",
	"hq/machine.go: sync.OnceFunc":             "reads the real machine, which runs do not ask about",
	"parking/settings.go: math/rand/v2.NewPCG": "the real table's luck, which seam_sim.go asks for outside of runs",
	"parking/settings.go: math/rand/v2.Uint64": "the same",
	"sync2/std.go":                             "names of what stays package sync's",
	"sync2/waitgroup.go: go":                   "WaitGroup.Go; programs start their threads with Add and Done",
}

func TestSeam_NothingGoesAroundIt(t *testing.T) {
	found, built := map[string]bool{}, map[string]bool{}
	for _, pkg := range []string{"asm", "internal/rt", "hq", "parking", "sync2"} {
		list, files := violations(t, filepath.Join("..", "..", pkg))
		for _, name := range files {
			built[pkg+"/"+name] = true
		}
		for _, v := range list {
			switch file := v.file(); {
			case allowed[file] != "":
				found[file] = true
			case allowed[file+": "+v.use] != "":
				found[file+": "+v.use] = true
			default:
				t.Errorf("%s: %s", v.at, v.use)
			}
		}
	}
	for what := range allowed {
		file, _, _ := strings.Cut(what, ": ")
		if built[file] && !found[what] {
			t.Errorf("the list allows %s, which nobody does", what)
		}
	}
}

type violation struct {
	at  token.Position
	use string
}

// file is the path from the root of the module.
func (v violation) file() string {
	return strings.TrimPrefix(filepath.ToSlash(v.at.Filename), "../../")
}

// The test above finds what it is there for.
func TestSeam_ViolationsAreSeen(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const source = `package bad
import ( "math/rand/v2"; "runtime"; "sync"; "sync/atomic"; t "time" )
var ( n uint32; mu sync.Mutex; ch chan int )
//go:linkname f runtime.f
func f()
func g() {
	atomic.AddUint32(&n, 1)
	_ = t.Now()
	_ = rand.Int()
	runtime.Gosched()
	go g()
	ch <- 1
	<-ch
	select {}
	type local struct { atomic struct{ Int int } }
	var time local
	_ = time.atomic
}
`
	write("bad.go", source)
	write("seam.go", strings.Replace(source, "func g", "func h", 1))
	got := []string{}
	list, _ := violations(t, dir)
	for _, v := range list {
		got = append(got, v.use)
	}
	slices.Sort(got)
	want := []string{"a channel type", "a receive", "a send", "go", "go:linkname", "math/rand/v2.Int", "runtime.Gosched", "select",
		"sync.Mutex", "sync/atomic.AddUint32", "time.Now"}
	if !slices.Equal(got, want) {
		t.Errorf("found\n%q\nwant\n%q", got, want)
	}
}

// violations returns what the files of a directory that the tag sim chooses do
// around their seam, and which files these are.
func violations(t *testing.T, dir string) (list []violation, names []string) {
	ctx := build.Default
	ctx.BuildTags = append(slices.Clone(ctx.BuildTags), "sim")
	p, err := ctx.ImportDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	// Imports stay empty: only the names of packages must be known, so errors are no matter.
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: noImports{}, Error: func(error) {}}
	conf.Check(p.ImportPath, fset, files, info)
	for _, f := range files {
		if strings.HasPrefix(filepath.Base(fset.File(f.Pos()).Name()), "seam") {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if use := around(n, info); use != "" {
				list = append(list, violation{fset.Position(n.Pos()), use})
			}
			return true
		})
		for _, group := range f.Comments {
			for _, c := range group.List {
				if strings.HasPrefix(c.Text, "//go:linkname ") {
					list = append(list, violation{fset.Position(c.Pos()), "go:linkname"})
				}
			}
		}
	}
	return list, p.GoFiles
}

// around names what n does around the seam, if anything.
func around(n ast.Node, info *types.Info) string {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		x, ok := n.X.(*ast.Ident)
		if !ok {
			return ""
		}
		pkg, ok := info.Uses[x].(*types.PkgName)
		if !ok {
			return ""
		}
		path := pkg.Imported().Path()
		names, banned := seamless[path]
		if banned && (names == nil || slices.Contains(names, n.Sel.Name)) {
			return path + "." + n.Sel.Name
		}
	case *ast.ChanType:
		return "a channel type"
	case *ast.SendStmt:
		return "a send"
	case *ast.SelectStmt:
		return "select"
	case *ast.GoStmt:
		return "go"
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			return "a receive"
		}
	}
	return ""
}

var version = regexp.MustCompile(`^v[0-9]+$`)

// noImports makes an empty package of each import.
type noImports struct{}

func (noImports) Import(path string) (*types.Package, error) {
	name := filepath.Base(path)
	if version.MatchString(name) {
		name = filepath.Base(filepath.Dir(path))
	}
	p := types.NewPackage(path, name)
	p.MarkComplete()
	return p, nil
}
