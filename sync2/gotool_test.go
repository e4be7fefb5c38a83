package sync2_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// goTool is the go command that built this binary.
type goTool struct {
	root    string // GOROOT
	version string // "1.26.8"
}

var findGoTool = sync.OnceValues(func() (*goTool, error) {
	out, err := exec.Command("go", "env", "GOVERSION", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	version, _, _ := cut(lines[0])
	if version != goVersion || len(lines) != 2 {
		return nil, fmt.Errorf("the go command in PATH is %s, this binary was built by %s", version, goVersion)
	}
	return &goTool{root: lines[1], version: strings.TrimPrefix(version, "go")}, nil
})

// needGo returns the go command, or skips the test where there is none that could build for this machine.
func needGo(t *testing.T) *goTool {
	t.Helper()
	if emulated() {
		t.Skipf("%s is set: this binary runs in an emulator, and what the go command builds would not", execEnv)
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skipf("needs the go command: %v", err)
	}
	g, err := findGoTool()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// source reads a file below GOROOT/src.
func (g *goTool) source(t *testing.T, name string) []byte {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(g.root, "src", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// buildFlags repeat what this binary was built with.
func buildFlags() []string {
	if raceEnabled {
		return append(tagFlags(), "-race")
	}
	return tagFlags()
}

// tagFlags are buildFlags without -race, for programs that are too busy for the detector.
func tagFlags() []string {
	if flavour.tags == "" {
		return nil
	}
	return []string{"-tags=" + flavour.tags}
}

// A module is a generated Go module that can import this one. A go.work file beside its go.mod joins the two.
type module struct {
	*goTool
	dir string
}

// newModule writes a module into a new directory with the given last element, which is also the last element of its
// module path.
func (g *goTool) newModule(t *testing.T, name string, files map[string]string) *module {
	t.Helper()
	here, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	m := &module{g, filepath.Join(t.TempDir(), name)}
	m.write(t, "go.mod", "module generated.test/"+name+"\n\ngo "+g.version+"\n")
	m.write(t, "go.work", "go "+g.version+"\n\nuse .\nuse "+strconv.Quote(filepath.ToSlash(here))+"\n")
	for name, src := range files {
		m.write(t, name, src)
	}
	return m
}

func (m *module) write(t *testing.T, name, src string) {
	t.Helper()
	file := filepath.Join(m.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(src), 0o666); err != nil {
		t.Fatal(err)
	}
}

// run runs the go command in the module, for this machine.
func (m *module) run(t *testing.T, patience time.Duration, env []string, args ...string) childResult {
	t.Helper()
	env = append(childEnviron("GOFLAGS=", "GOWORK="+filepath.Join(m.dir, "go.work"), "GOTOOLCHAIN=local",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH), env...)
	return runCommand(t, patience, env, m.dir, append([]string{"go"}, args...)...)
}

// build builds the module's main package and returns the path of the binary.
func (m *module) build(t *testing.T, env []string, flags ...string) string {
	t.Helper()
	exe := filepath.Join(m.dir, "program.exe")
	args := append(append([]string{"build", "-o", exe}, flags...), ".")
	if r := m.run(t, 5*time.Minute, env, args...); r.exit != 0 {
		t.Fatalf("go build in a generated module: %v", r)
	}
	return exe
}

// An edit replaces the bytes from one position to another.
type edit struct {
	from, to token.Pos
	text     string
}

// A goFile is a parsed source file together with edits to be made to its text, which keep everything else as it is.
type goFile struct {
	fset  *token.FileSet
	ast   *ast.File
	src   []byte
	edits []edit
}

func parseGo(t *testing.T, name string, src []byte) *goFile {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return &goFile{fset: fset, ast: f, src: src}
}

func (f *goFile) replace(from, to token.Pos, text string) {
	f.edits = append(f.edits, edit{from, to, text})
}

// replaceImport makes the file import another package under the name of the old one. It does nothing if the file does
// not import the old one.
func (f *goFile) replaceImport(old, new string) {
	for _, spec := range f.ast.Imports {
		if p, _ := strconv.Unquote(spec.Path.Value); p != old || old == new {
			continue
		}
		text := strconv.Quote(new)
		if spec.Name == nil {
			text = path.Base(old) + " " + text
		}
		f.replace(spec.Path.Pos(), spec.Path.End(), text)
	}
}

// remove takes a declaration out, with its comment.
func (f *goFile) remove(d ast.Decl) {
	from := d.Pos()
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc != nil {
			from = d.Doc.Pos()
		}
	case *ast.GenDecl:
		if d.Doc != nil {
			from = d.Doc.Pos()
		}
	}
	f.replace(from, d.End(), "")
}

// String returns the edited text.
func (f *goFile) String() string {
	slices.SortFunc(f.edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	out, last := []byte{}, 0
	for _, e := range f.edits {
		from, to := f.fset.Position(e.from).Offset, f.fset.Position(e.to).Offset
		if from < last {
			continue // inside something that has gone
		}
		out = append(append(out, f.src[last:from]...), e.text...)
		last = to
	}
	return string(append(out, f.src[last:]...))
}

// onSubject returns a program that imports "sync" with that import replaced by the subject.
func onSubject(t *testing.T, s subject, name string, src []byte) string {
	t.Helper()
	f := parseGo(t, name, src)
	f.replaceImport(syncPath, s.path)
	return f.String()
}

// program reads testdata/name and returns it as a module on the subject.
func (g *goTool) program(t *testing.T, s subject, name string) *module {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return g.newModule(t, "program", map[string]string{"main.go": onSubject(t, s, name, src)})
}

// A testEvent is a line of go test -json.
type testEvent struct {
	Action, Test, Output string
	Elapsed              float64
}

// A verdict is how a test ended, and what it printed.
type verdict struct {
	action  string // "pass", "fail" or "skip"; empty if it never ended
	output  string
	seconds float64
}

// parseVerdicts reads the output of go test -json. Subtests count for their parents.
func parseVerdicts(t *testing.T, output string) map[string]verdict {
	t.Helper()
	verdicts := map[string]verdict{}
	for line := range strings.Lines(output) {
		var e testEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("go test -json printed %q: %v", line, err)
		}
		name, _, isSub := strings.Cut(e.Test, "/")
		if name == "" {
			continue
		}
		v := verdicts[name]
		v.output += e.Output
		if !isSub && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip") {
			v.action, v.seconds = e.Action, e.Elapsed
		}
		verdicts[name] = v
	}
	return verdicts
}
