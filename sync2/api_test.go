package sync2_test

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// TestEveryNameOfPackageSyncIsHereWithTheSameSignature compares the two packages as the compiler sees them.
func TestEveryNameOfPackageSyncIsHereWithTheSameSignature(t *testing.T) {
	g := needGo(t)
	std, ours := importBoth(t, g)
	n := 0
	for _, name := range std.Scope().Names() {
		if !token.IsExported(name) {
			continue
		}
		n++
		t.Run(name, func(t *testing.T) {
			got := ours.Scope().Lookup(name)
			if got == nil {
				t.Fatal("sync2 does not have it")
			}
			for _, diff := range compareObjects(std.Scope().Lookup(name), got) {
				t.Error(diff)
			}
		})
	}
	// Cond Locker Map Mutex NewCond Once OnceFunc OnceValue OnceValues Pool RWMutex WaitGroup
	if n < 12 {
		t.Errorf("found %d exported names in package sync, want at least 12", n)
	}
}

// importBoth type-checks nothing: it reads what the compiler exported for the importers of the two packages.
func importBoth(t *testing.T, g *goTool) (std, ours *types.Package) {
	t.Helper()
	m := g.newModule(t, "api", map[string]string{"api.go": "package api\n"})
	args := append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}, buildFlags()...)
	r := m.run(t, 5*time.Minute, nil, append(args, syncPath, sync2Path)...)
	if r.exit != 0 {
		t.Fatalf("go list: %v", r)
	}
	exports := map[string]string{}
	for line := range strings.Lines(r.stdout) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		exports[path] = file
	}
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("go list knows no export data of %s", path)
		}
		return os.Open(exports[path])
	})
	load := func(path string) *types.Package {
		p, err := imp.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	return load(syncPath), load(sync2Path)
}

// asSync prints types as if those of sync2 were package sync's.
func asSync(p *types.Package) string {
	if p.Path() == sync2Path {
		return syncPath
	}
	return p.Path()
}

func typeString(t types.Type) string { return types.TypeString(t, asSync) }

// compareObjects returns in what a user of the name would notice a difference.
func compareObjects(std, got types.Object) []string {
	if kind(std) != kind(got) {
		return []string{fmt.Sprintf("it is a %s here and a %s in package sync", kind(got), kind(std))}
	}
	if types.Identical(std.Type(), got.Type()) { // an alias
		return nil
	}
	if _, ok := std.(*types.TypeName); ok {
		return compareTypes(std.Type(), got.Type())
	}
	return differ("type", typeString(std.Type()), typeString(got.Type()))
}

func kind(o types.Object) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", o), "*types.")
}

func differ(what, std, got string) []string {
	if std == got {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s here, %s in package sync", what, got, std)}
}

// compareTypes compares two named types: what they are made of, their exported fields and the methods of the type and of
// its pointer. The type here may have more of the latter two.
func compareTypes(std, got types.Type) (diffs []string) {
	diffs = append(diffs, differ("kind", fmt.Sprintf("%T", std.Underlying()), fmt.Sprintf("%T", got.Underlying()))...)
	if types.Comparable(std) && !types.Comparable(got) {
		diffs = append(diffs, "it cannot be compared, so it cannot be a map key or in an array that is")
	}
	for _, ptr := range []bool{false, true} {
		diffs = append(diffs, compareMethods(std, got, ptr)...)
	}
	s, ok := std.Underlying().(*types.Struct)
	g, ok2 := got.Underlying().(*types.Struct)
	if ok && ok2 {
		diffs = append(diffs, compareFields(s, g)...)
	}
	return diffs
}

func compareMethods(std, got types.Type, ptr bool) (diffs []string) {
	if ptr {
		std, got = types.NewPointer(std), types.NewPointer(got)
	}
	want, have := types.NewMethodSet(std), types.NewMethodSet(got)
	for m := range want.Methods() {
		if !m.Obj().Exported() {
			continue
		}
		name := fmt.Sprintf("method (%s).%s", typeString(std), m.Obj().Name())
		h := have.Lookup(nil, m.Obj().Name())
		if h == nil {
			diffs = append(diffs, name+" is missing")
			continue
		}
		diffs = append(diffs, differ(name, typeString(m.Type()), typeString(h.Type()))...)
	}
	return diffs
}

// compareFields wants every exported field to be a direct one, as composite literals need.
func compareFields(std, got *types.Struct) (diffs []string) {
	fields := map[string]*types.Var{}
	for f := range got.Fields() {
		fields[f.Name()] = f
	}
	for f := range std.Fields() {
		if !f.Exported() {
			continue
		}
		g := fields[f.Name()]
		if g == nil || g.Embedded() != f.Embedded() {
			diffs = append(diffs, fmt.Sprintf("field %s is missing", f.Name()))
			continue
		}
		diffs = append(diffs, differ("field "+f.Name(), typeString(f.Type()), typeString(g.Type()))...)
	}
	return diffs
}

func TestAPIComparisonSeesDifferences(t *testing.T) {
	pkg := types.NewPackage("p", "p")
	object := func(name string, methods ...string) types.Object {
		n := types.NewNamed(types.NewTypeName(token.NoPos, pkg, name, nil), types.NewStruct(nil, nil), nil)
		recv := types.NewVar(token.NoPos, pkg, "", types.NewPointer(n))
		for _, m := range methods {
			var results *types.Tuple
			if strings.HasPrefix(m, "Try") {
				results = types.NewTuple(types.NewVar(token.NoPos, pkg, "", types.Typ[types.Bool]))
			}
			n.AddMethod(types.NewFunc(token.NoPos, pkg, m, types.NewSignatureType(recv, nil, nil, nil, results, false)))
		}
		return n.Obj()
	}
	full := object("T", "Lock", "TryLock")
	for _, c := range []struct {
		got  types.Object
		want string
	}{
		{object("T", "Lock"), "is missing"},
		{types.NewVar(token.NoPos, pkg, "T", types.Typ[types.Int]), "it is a Var here"},
		{object("T", "Lock", "TryLock", "More"), ""},
	} {
		diffs := strings.Join(compareObjects(full, c.got), "; ")
		if (diffs == "") != (c.want == "") || !strings.Contains(diffs, c.want) {
			t.Errorf("got %q, want something with %q", diffs, c.want)
		}
	}
}
