//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego

package rt

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRuntimeContract parses the runtime of the toolchain in use and checks
// everything that this package assumes about it, so that a new release of Go
// fails here and not in a user's process.
func TestRuntimeContract(t *testing.T) {
	src := parseRuntime(t)

	t.Run("constants", func(t *testing.T) {
		for name, got := range map[string]uint8{
			"waitReasonSemacquire":            reasonCodes[ReasonSemacquire].wait,
			"waitReasonSyncMutexLock":         reasonCodes[ReasonMutexLock].wait,
			"waitReasonSyncRWMutexRLock":      reasonCodes[ReasonRWMutexRLock].wait,
			"waitReasonSyncRWMutexLock":       reasonCodes[ReasonRWMutexLock].wait,
			"waitReasonSyncCondWait":          reasonCodes[ReasonCondWait].wait,
			"waitReasonSyncWaitGroupWait":     reasonCodes[ReasonWaitGroupWait].wait,
			"waitReasonSynctestWaitGroupWait": reasonCodes[ReasonWaitGroupWaitDurable].wait,
			"traceBlockSync":                  reasonCodes[ReasonMutexLock].trace,
			"traceBlockCondWait":              reasonCodes[ReasonCondWait].trace,
		} {
			want, ok := src.iota[name]
			if !ok {
				t.Errorf("the runtime has no constant %s", name)
			} else if int(got) != want {
				t.Errorf("%s is %d in this runtime, %d here", name, want, got)
			}
		}
	})

	// Push directives: the linker lets a package outside std pull only what the
	// runtime pushes. local is the runtime's name for it.
	type pull struct{ local, remote, signature string }
	pulls := []pull{
		{"gopark", "runtime.gopark", "func(unlockf func(*g, unsafe.Pointer) bool, lock unsafe.Pointer, reason waitReason, traceReason traceBlockReason, traceskip int)"},
		{"goready", "runtime.goready", "func(gp *g, traceskip int)"},
		{"goyield", "runtime.goyield", "func()"},
		{"procPin", "runtime.procPin", "func() int"},
		{"procUnpin", "runtime.procUnpin", "func()"},
		{"nanotime", "runtime.nanotime", "func() int64"},
		{"cputicks", "runtime.cputicks", "func() int64"},
		{"cheaprand", "runtime.cheaprand", "func() uint32"},
		{"sync_runtime_canSpin", "sync.runtime_canSpin", "func(i int) bool"},
		{"sync_fatal", "sync.fatal", "func(s string)"},
		{"sync_throw", "sync.throw", "func(s string)"},
		{"blockevent", "runtime.blockevent", "func(cycles int64, skip int)"},
	}
	if MutexProfiled {
		pulls = append(pulls, pull{"mutexevent", "sync.event", "func(cycles int64, skip int)"})
	}
	for _, p := range pulls {
		t.Run(p.local, func(t *testing.T) {
			if !src.pushed[p.remote] {
				t.Errorf("the runtime no longer pushes %s", p.remote)
			}
			got, ok := src.signature[p.local]
			if !ok {
				t.Errorf("the runtime has no function %s", p.local)
			} else if got != p.signature {
				t.Errorf("%s is %s in this runtime, expected %s", p.local, got, p.signature)
			}
		})
	}
	t.Run("types", func(t *testing.T) {
		for _, name := range []string{"waitReason", "traceBlockReason"} {
			if src.types[name] != "uint8" {
				t.Errorf("%s is %q in this runtime, uint8 here", name, src.types[name])
			}
		}
	})
	t.Run("every pull is listed", func(t *testing.T) {
		listed := map[string]bool{}
		for _, p := range pulls {
			listed[p.remote] = true
		}
		for _, remote := range pulledHere(t) {
			if !listed[remote] && !(remote == "sync.event" && !MutexProfiled) {
				t.Errorf("this package pulls %s, which no check above covers", remote)
			}
		}
	})
}

type runtimeSource struct {
	iota      map[string]int    // constant -> its value in an iota block
	signature map[string]string // function -> printed type
	types     map[string]string // type -> printed definition
	pushed    map[string]bool   // symbols that carry a linkname directive
}

func parseRuntime(t *testing.T) runtimeSource {
	dir := filepath.Join(goroot(t), "src", "runtime")
	src := runtimeSource{map[string]int{}, map[string]string{}, map[string]string{}, map[string]bool{}}
	fset := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	text := func(n ast.Node) string {
		var b bytes.Buffer
		printer.Fprint(&b, fset, n)
		return b.String()
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range file.Comments {
			for _, c := range group.List {
				if f := strings.Fields(c.Text); len(f) >= 2 && f[0] == "//go:linkname" {
					name := "runtime." + f[1]
					if len(f) > 2 {
						name = f[2]
					}
					src.pushed[name] = true
				}
			}
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					src.signature[d.Name.Name] = text(d.Type)
				}
			case *ast.GenDecl:
				for i, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.ValueSpec:
						if d.Tok == token.CONST {
							src.iota[s.Names[0].Name] = i
						}
					case *ast.TypeSpec:
						src.types[s.Name.Name] = text(s.Type)
					}
				}
			}
		}
	}
	for name, sig := range src.signature {
		// printed with the function's name, or without in older printers
		src.signature[name] = strings.Replace(sig, "func "+name+"(", "func(", 1)
	}
	return src
}

func goroot(t *testing.T) string {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("no go command here: %v", err)
	}
	root := strings.TrimSpace(string(out))
	if _, err := os.Stat(filepath.Join(root, "src", "runtime", "proc.go")); err != nil {
		t.Skipf("no source of the runtime here: %v", err)
	}
	return root
}

// pulledHere lists what the linkname directives of this package name.
func pulledHere(t *testing.T) (remotes []string) {
	files, err := filepath.Glob("*_unsafe.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no linkname files found: %v", err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) == 3 && f[0] == "//go:linkname" {
				remotes = append(remotes, f[2])
			}
		}
	}
	return remotes
}
