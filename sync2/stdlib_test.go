package sync2_test

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Package sync's own tests, taken from the toolchain in use and pointed at sync2.

// ownTests and ownExamples are how many of them there are at least. The tests of Pool exclude themselves from race
// builds.
const (
	ownTests         = 46
	ownTestsWithRace = 40
	ownExamples      = 4
)

// notOurs lists the tests of package sync that are left out.
var notOurs = map[string]string{
	"TestMapMatchesHashTrieMap": "tests internal/sync.HashTrieMap, which only the standard library can import",
	"TestPoolDequeue":           "white-box test of Pool, which sync2 takes from package sync",
	"TestPoolChain":             "white-box test of Pool, which sync2 takes from package sync",
}

// notTests lists files without tests that are left out.
var notTests = map[string]string{
	"export_test.go":       "turns out the inside of package sync",
	"runtime_sema_test.go": "benchmarks of the runtime's semaphore",
}

// stdlibShim stands in for what the tests of package sync take from inside the runtime. TestSemaphore tests the runtime's
// semaphore, which package sync pushes to outsiders.
const stdlibShim = `package sync_test

import (
	"runtime"
	"time"
	_ "unsafe"
)

//go:linkname Runtime_Semacquire sync.runtime_Semacquire
func Runtime_Semacquire(s *uint32)

//go:linkname Runtime_Semrelease sync.runtime_Semrelease
func Runtime_Semrelease(s *uint32, handoff bool, skipframes int)

//go:linkname Runtime_procPin runtime.procPin
func Runtime_procPin() int

//go:linkname Runtime_procUnpin runtime.procUnpin
func Runtime_procUnpin()

// runtime_blockUntilEmptyCleanupQueue is closed to outsiders. The caller has collected garbage, so the cleanups it waits
// for are queued or will be when sweeping ends. Those of a later collection run after them, give or take the number of
// goroutines that run cleanups.
func runtime_blockUntilEmptyCleanupQueue(timeout int64) bool {
	for range 2 {
		ran := make(chan struct{})
		runtime.AddCleanup(new([64]byte), func(c chan struct{}) { close(c) }, ran)
		runtime.GC()
		select {
		case <-ran:
		case <-time.After(10 * time.Second): // something on a stack may look like the address
		}
	}
	time.Sleep(time.Millisecond)
	return true
}
`

const testenvShim = `package testenv

import (
	"os"
	"testing"
)

func MustHaveExec(testing.TB)          {}
func SkipIfOptimizationOff(testing.TB) {}

func Executable(t testing.TB) string {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}
`

func TestStandardLibrary(t *testing.T) {
	g := needGo(t)
	t.Parallel()
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) { t.Parallel(); standardLibrary(t, g, s) })
	}
	for name, reason := range notOurs {
		t.Run(name, func(t *testing.T) { t.Skip(reason) })
	}
}

func standardLibrary(t *testing.T, g *goTool, s subject) {
	files, want := standardLibraryTests(t, g, s)
	files["sync_shim_test.go"] = stdlibShim
	files["testenv/testenv.go"] = testenvShim
	m := g.newModule(t, "sync", files) // a test looks for "sync_test." in stack traces
	args := append([]string{"test", "-json", "-vet=off", "-count=1", "-timeout=3m"}, buildFlags()...)
	r := m.run(t, 5*time.Minute, nil, append(args, ".")...)
	verdicts := parseVerdicts(t, r.stdout)
	if len(verdicts) == 0 {
		t.Fatalf("no test ran: %v", r)
	}

	passed := map[string]int{}
	for _, name := range want {
		t.Run(name, func(t *testing.T) {
			switch v := verdicts[name]; v.action {
			case "pass":
				passed[kindOf(name)]++
			case "skip":
				t.Skipf("it skipped itself:\n%s", v.output)
			default:
				t.Errorf("verdict %q:\n%s", v.action, v.output)
			}
		})
	}
	for name := range verdicts {
		if !slices.Contains(want, name) {
			t.Errorf("%s ran and was not found in the source", name)
		}
	}
	wantTests := ownTests
	if raceEnabled {
		wantTests = ownTestsWithRace
	}
	if passed["Test"] < wantTests || passed["Example"] < ownExamples {
		t.Errorf("%d tests and %d examples passed, want at least %d and %d", passed["Test"], passed["Example"], wantTests, ownExamples)
	}
	if r.exit != 0 && !t.Failed() {
		t.Errorf("go test failed although every test passed: %v", r)
	}
	t.Logf("%d tests and %d examples passed, %d are left out", passed["Test"], passed["Example"], len(notOurs))
}

func kindOf(name string) string {
	if strings.HasPrefix(name, "Example") {
		return "Example"
	}
	return "Test"
}

// standardLibraryTests returns package sync's test files, rewritten for the subject, and the names of the tests and
// examples in them that will run.
func standardLibraryTests(t *testing.T, g *goTool, s subject) (files map[string]string, run []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(g.root, "src", "sync", "*_test.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no tests of package sync under %s: %v", g.root, err)
	}
	white := exportedForTests(t, g)
	parsed := map[string]*goFile{}
	for _, name := range names {
		base := filepath.Base(name)
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f := parseGo(t, base, src)
		if notTests[base] == "" {
			parsed[base] = f
		} else if slices.ContainsFunc(f.ast.Decls, func(d ast.Decl) bool { return runs(f, d) }) {
			t.Errorf("%s is to be left out but has tests", base)
		}
	}

	removed := removeWhiteBox(parsed, white)
	for name, reason := range notOurs {
		if !removed[name] {
			t.Errorf("%s is to be left out because it %s, but it no longer exists or needs no inside of package sync", name, reason)
		}
	}
	for name := range removed {
		if notOurs[name] == "" && isTest(name) {
			t.Errorf("%s needs the inside of package sync and is not listed with a reason", name)
		}
	}

	files = map[string]string{}
	for base, f := range parsed {
		f.replaceImport("sync", s.path)
		f.replaceImport("internal/testenv", "generated.test/sync/testenv")
		files[base] = f.String()
		if !builds(f) {
			continue
		}
		for _, d := range f.ast.Decls {
			if runs(f, d) && !removed[d.(*ast.FuncDecl).Name.Name] {
				run = append(run, d.(*ast.FuncDecl).Name.Name)
			}
		}
	}
	slices.Sort(run)
	return files, run
}

// exportedForTests returns what export_test.go of package sync declares, but for what stdlibShim supplies.
func exportedForTests(t *testing.T, g *goTool) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	f := parseGo(t, "export_test.go", g.source(t, "sync/export_test.go"))
	for _, d := range f.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names[d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names[spec.Name.Name] = true
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						names[n.Name] = true
					}
				}
			}
		}
	}
	for name := range names {
		if strings.Contains(stdlibShim, "func "+name+"(") {
			delete(names, name)
		}
	}
	return names
}

// removeWhiteBox removes every function that needs one of the names, or internal/sync, or a function removed before; and
// the elements of lists that need internal/sync.
func removeWhiteBox(files map[string]*goFile, white map[string]bool) (removed map[string]bool) {
	removed = map[string]bool{}
	for _, f := range files {
		dropInternalElements(f)
		dropImport(f, "internal/sync")
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body == nil { // supplied by the shim
				f.remove(fn)
			}
		}
	}
	for again := true; again; {
		again = false
		for _, f := range files {
			for _, d := range f.ast.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || fn.Body == nil || removed[fn.Name.Name] || !mentions(fn, white, removed) {
					continue
				}
				f.remove(fn)
				removed[fn.Name.Name] = true
				again = true
			}
		}
	}
	return removed
}

// internalSync is the name under which the tests import internal/sync.
const internalSync = "isync"

func mentions(fn *ast.FuncDecl, sets ...map[string]bool) bool {
	found := false
	inspectLive(fn, func(n ast.Node) {
		id, ok := n.(*ast.Ident)
		if !ok || id == fn.Name {
			return
		}
		found = found || id.Name == internalSync
		for _, set := range sets {
			found = found || set[id.Name]
		}
	})
	return found
}

// inspectLive visits the nodes below n but not the list elements that dropInternalElements takes out.
func inspectLive(n ast.Node, visit func(ast.Node)) {
	ast.Inspect(n, func(n ast.Node) bool {
		if n == nil {
			return false
		}
		if isInternalElement(n) {
			return false
		}
		visit(n)
		return true
	})
}

// isInternalElement reports whether n is &isync.T{} for some T.
func isInternalElement(n ast.Node) bool {
	u, ok := n.(*ast.UnaryExpr)
	if !ok || u.Op != token.AND {
		return false
	}
	lit, ok := u.X.(*ast.CompositeLit)
	if !ok {
		return false
	}
	internal := false
	ast.Inspect(lit.Type, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		internal = internal || ok && id.Name == internalSync
		return true
	})
	return internal
}

func dropInternalElements(f *goFile) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			for i, e := range n.Elts {
				if isInternalElement(e) && i+1 < len(n.Elts) {
					f.replace(e.Pos(), n.Elts[i+1].Pos(), "")
				}
			}
		case *ast.GenDecl:
			for _, spec := range n.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && len(v.Values) == 1 && isInternalElement(v.Values[0]) {
					f.replace(v.Pos(), v.End(), "")
				}
			}
		}
		return true
	})
}

func dropImport(f *goFile, path string) {
	for _, spec := range f.ast.Imports {
		if p, _ := strconv.Unquote(spec.Path.Value); p == path {
			f.replace(spec.Pos(), spec.End(), "")
		}
	}
}

// builds evaluates the file's build constraint for this build.
func builds(f *goFile) bool {
	for _, group := range f.ast.Comments {
		for _, c := range group.List {
			if !constraint.IsGoBuild(c.Text) {
				continue
			}
			expr, err := constraint.Parse(c.Text)
			if err != nil {
				panic(fmt.Sprintf("%q: %v", c.Text, err))
			}
			return expr.Eval(func(tag string) bool { return tag == "race" && raceEnabled || tag == flavour.tags })
		}
	}
	return true
}

func isTest(name string) bool {
	return strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Example")
}

// runs reports whether package testing runs d: examples only if they say what they print.
func runs(f *goFile, d ast.Decl) bool {
	fn, ok := d.(*ast.FuncDecl)
	if !ok || fn.Recv != nil {
		return false
	}
	if !strings.HasPrefix(fn.Name.Name, "Example") {
		return strings.HasPrefix(fn.Name.Name, "Test")
	}
	for _, group := range f.ast.Comments {
		text := strings.ToLower(strings.TrimSpace(group.Text()))
		inside := group.Pos() > fn.Body.Lbrace && group.End() < fn.Body.Rbrace
		if inside && (strings.HasPrefix(text, "output:") || strings.HasPrefix(text, "unordered output:")) {
			return true
		}
	}
	return false
}
