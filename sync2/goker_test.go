package sync2_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/locktest"
)

// The goker collection in the runtime's test data holds minimised deadlocks of real Go programs. Each must get stuck, or
// not, with sync2 as it does with package sync. Most depend on chance, so what counts is where goroutines get stuck in
// several runs together: nowhere that package sync never gets them stuck, and in every place where it always does.

const gokerDir = "runtime/testdata/testgoroutineleakprofile/goker"

// gokerPrograms is how many programs there are at least that use package sync.
const gokerPrograms = 47

// notGoker lists programs that are left out.
var notGoker = map[string]string{
	"Kubernetes1321": "has a data race that makes it crash on a nil pointer now and then, whatever the lock",
}

func TestRealDeadlocksGetStuckAsWithPackageSync(t *testing.T) {
	g := needGo(t)
	t.Parallel()
	names := gokerNames(t, g)
	if testing.Short() {
		names = sample(names, 12)
	}
	known := knownLeaks(t, g)
	exes := map[string]string{}
	for _, s := range subjects {
		exes[s.name] = gokerModule(t, g, s).build(t, nil, tagFlags()...)
	}
	for group := range slices.Chunk(names, 12) {
		t.Run(group[0]+"To"+group[len(group)-1], func(t *testing.T) {
			t.Parallel()
			compareStuck(t, exes, group, known)
		})
	}
}

// sample returns n of the names, spread evenly.
func sample(names []string, n int) (some []string) {
	for i := range n {
		some = append(some, names[i*len(names)/n])
	}
	return some
}

// gokerNames returns the programs that use package sync.
func gokerNames(t *testing.T, g *goTool) (names []string) {
	t.Helper()
	left := maps.Clone(notGoker)
	for _, f := range gokerFiles(t, g) {
		for _, name := range registered(f) {
			if _, out := left[name]; out {
				delete(left, name)
			} else if slices.ContainsFunc(f.ast.Imports, func(spec *ast.ImportSpec) bool { return spec.Path.Value == `"sync"` }) {
				names = append(names, name)
			}
		}
	}
	for name := range left {
		t.Errorf("%s is to be left out but no longer exists", name)
	}
	if len(names) < gokerPrograms {
		t.Errorf("found %d programs that use package sync, want at least %d", len(names), gokerPrograms)
	}
	slices.Sort(names)
	return names
}

func gokerFiles(t *testing.T, g *goTool) map[string]*goFile {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(g.root, "src", filepath.FromSlash(gokerDir), "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no goker programs under %s: %v", g.root, err)
	}
	files := map[string]*goFile{}
	for _, path := range paths {
		if base := filepath.Base(path); base != "main.go" {
			files[base] = parseGo(t, base, g.source(t, gokerDir+"/"+base))
		}
	}
	return files
}

// registered returns the names under which a file registers programs.
func registered(f *goFile) (names []string) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && isIdent(call.Fun, "register") {
			names = append(names, stringLit(call.Args[0]))
		}
		return true
	})
	return names
}

func isIdent(e ast.Expr, names ...string) bool {
	id, ok := e.(*ast.Ident)
	return ok && slices.Contains(names, id.Name)
}

func stringLit(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return s
}

// noProfile stands in for runtime/pprof: the programs end by writing a profile that knows nothing of sync2.
const noProfile = `package pprof

import "io"

type Profile struct{}

func Lookup(string) *Profile                     { return nil }
func (*Profile) WriteTo(io.Writer, int) error { return nil }
`

func gokerModule(t *testing.T, g *goTool, s subject) *module {
	t.Helper()
	main, err := os.ReadFile(filepath.Join("testdata", "goker_main.go"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"main.go": string(main), "pprof/pprof.go": noProfile}
	for base, f := range gokerFiles(t, g) {
		f.replaceImport(syncPath, s.path)
		f.replaceImport("runtime/pprof", "generated.test/goker/pprof")
		files[base] = f.String()
	}
	return g.newModule(t, "goker", files)
}

// knownLeaks returns, by program, patterns of where the runtime's own test of the leak profile knows it to get stuck.
func knownLeaks(t *testing.T, g *goTool) map[string][]*regexp.Regexp {
	t.Helper()
	known := map[string][]*regexp.Regexp{}
	f := parseGo(t, "goroutineleakprofile_test.go", g.source(t, "runtime/goroutineleakprofile_test.go"))
	ast.Inspect(f.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !isIdent(call.Fun, "makeTest", "makeFlakyTest") || len(call.Args) < 2 {
			return true
		}
		name := stringLit(call.Args[0])
		for _, arg := range call.Args[1:] {
			known[name] = append(known[name], regexp.MustCompile(stringLit(arg)))
		}
		return true
	})
	if len(known) < gokerPrograms {
		t.Fatalf("the runtime's test names only %d programs", len(known))
	}
	return known
}

// A place is where a goroutine of a program is stuck: its outermost function and what it waits for, in the form of the
// runtime's test: "Moby28462.func1() [sync.Mutex.Lock]".
type place string

// stuck is what runs of a program have shown. With each place goes the stack of a goroutine that was there.
type stuck struct{ ever, always map[place]string }

// compareStuck runs a group of programs, first on package sync, until sync2 has shown all that package sync always shows
// and package sync all that sync2 ever does, or patience is at its end.
func compareStuck(t *testing.T, exes map[string]string, group []string, known map[string][]*regexp.Regexp) {
	want, got := map[string]*stuck{}, map[string]*stuck{}
	runGoker(t, exes["sync"], group, want)
	runGoker(t, exes["sync2"], group, got)
	for _, name := range group {
		t.Run(name, func(t *testing.T) {
			for attempt := 0; ; attempt++ {
				unknown := slices.DeleteFunc(minus(got[name].ever, want[name].ever), func(p place) bool {
					return slices.ContainsFunc(known[name], func(re *regexp.Regexp) bool { return re.MatchString(string(p)) })
				})
				missing := minus(want[name].always, got[name].ever)
				if len(unknown)+len(missing) == 0 {
					return
				}
				if attempt == 40 {
					for _, p := range unknown {
						t.Errorf("stuck with sync2 and never with package sync: %s\n%s", p, got[name].ever[p])
					}
					for _, p := range missing {
						t.Errorf("always stuck with package sync and never with sync2: %s", p)
					}
					return
				}
				runGoker(t, exes["sync"], []string{name}, want)
				runGoker(t, exes["sync2"], []string{name}, got)
			}
		})
	}
}

func minus(a, b map[place]string) (diff []place) {
	for p := range a {
		if b[p] == "" {
			diff = append(diff, p)
		}
	}
	return diff
}

// runGoker runs programs once, all in one process, and adds where they get stuck.
func runGoker(t *testing.T, exe string, names []string, results map[string]*stuck) {
	t.Helper()
	r := runCommand(t, time.Minute, childEnviron(), "", append([]string{exe}, names...)...)
	if r.exit != 0 {
		t.Fatalf("%s %q: %v", exe, names, r)
	}
	seen := map[string]map[place]string{}
	for _, name := range names {
		seen[name] = map[place]string{}
	}
	ours := regexp.MustCompile(`(?i)(?:\b|_)(` + strings.Join(names, "|") + `)\b`)
	for _, g := range locktest.ParseGoroutines(r.stdout) {
		m := ours.FindStringSubmatch(g.Stack)
		if m == nil || !locktest.Blocked(g.Reason) {
			continue
		}
		name := names[slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, m[1]) })]
		seen[name][placeOf(g)] = g.Stack
	}
	for name, places := range seen {
		results[name] = results[name].add(places)
	}
}

func (s *stuck) add(places map[place]string) *stuck {
	if s == nil {
		return &stuck{ever: maps.Clone(places), always: maps.Clone(places)}
	}
	maps.Copy(s.ever, places)
	maps.DeleteFunc(s.always, func(p place, _ string) bool { return places[p] == "" })
	return s
}

// placeOf takes the wait from the method that the program called, so that it is the same in every build.
func placeOf(g locktest.Goroutine) place {
	functions := framesOf(g.Stack)
	if len(functions) == 0 {
		return ""
	}
	reason := g.Reason
	for _, f := range functions {
		if m := methodName.FindStringSubmatch(f); m != nil {
			reason = "sync." + m[1] + "." + m[2]
		} else if strings.HasPrefix(f, "main.") {
			break
		}
	}
	return place(fmt.Sprintf("%s() [%s]", strings.TrimPrefix(functions[len(functions)-1], "main."), reason))
}
