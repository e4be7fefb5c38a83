package main

import (
	"bytes"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/txtar"
)

func mustRewrite(t testing.TB, src []byte, d direction) rewriting {
	t.Helper()
	r, err := rewrite("p.go", src, d)
	if err != nil {
		t.Fatalf("rewrite to %s: %v\n%s", d.to, err, src)
	}
	return r
}

func wantText(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs:\n%s", what, diff.Diff("want", want, "got", got))
	}
}

func TestRewrite(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/forms.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, f := range archive.Files {
		files[f.Name] = f.Data
	}
	for name, before := range files {
		name, isCase := strings.CutSuffix(name, ".before")
		if !isCase {
			continue
		}
		t.Run(name, func(t *testing.T) {
			after := mustRewrite(t, before, toSync2)
			wantText(t, "rewritten file", after.src, files[name+".after"])
			undone, differs := files[name+".undone"]
			if !differs {
				undone = before
			}
			wantText(t, "restored file", mustRewrite(t, after.src, toStd).src, undone)
			if gofmted(before) && !gofmted(after.src) {
				t.Error("gofmt would change the rewritten file, but not the original")
			}
		})
	}
}

func TestRewrite_BytesThatATextEditorWouldChange(t *testing.T) {
	const sync2 = `sync "github.com/hqsync/hqsync/sync2"`
	for name, format := range map[string]string{
		"crlf":                "package p\r\n\r\nimport (\r\n\t%s\r\n\t\"fmt\"\r\n)\r\n",
		"no newline at end":   "package p\nimport %s",
		"byte order mark":     "\uFEFFpackage p\nimport %s\n",
		"blanks at line ends": "package p \n\nimport %s \t\n \nvar x = 1  \n",
		"beyond ASCII":        "package p\nimport (%s; \"fmt\") /* \u00e9 \u4e16 */\n",
	} {
		t.Run(name, func(t *testing.T) {
			before, after := []byte(fmt.Sprintf(format, `"sync"`)), []byte(fmt.Sprintf(format, sync2))
			wantText(t, "rewritten file", mustRewrite(t, before, toSync2).src, after)
			wantText(t, "restored file", mustRewrite(t, after, toStd).src, before)
		})
	}
}

func TestRewrite_ReportsPhysicalLines(t *testing.T) {
	src := "package p\n\n//line other.y:4000\nimport \"sync\"\n/*line x.y:7:7*/ import l \"sync\"\n"
	r := mustRewrite(t, []byte(src), toSync2)
	if len(r.changes) != 2 || r.changes[0].line != 4 || r.changes[1].line != 5 {
		t.Errorf("changes on lines 4 and 5 of the file expected, got %+v", r.changes)
	}
}

func TestRewrite_RefusesWhatDoesNotParse(t *testing.T) {
	for _, src := range []string{"", "package p\nimport \"sync\"\nfunc {", "package p\nimport \"sync\"\nvar x = = 1\n", "<html>"} {
		if r, err := rewrite("p.go", []byte(src), toSync2); err == nil {
			t.Errorf("%q: no error, but %+v", src, r)
		} else if !strings.HasPrefix(err.Error(), "p.go:") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: the error should be one line that begins with the position: %v", src, err)
		}
	}
}

// checkProperties checks what must hold for every file that parses.
func checkProperties(t testing.TB, name string, before []byte) {
	t.Helper()
	after := mustRewrite(t, before, toSync2)
	if imports(after.src, stdPath) {
		t.Errorf("%s still imports sync", name)
	}
	if gofmted(before) {
		if formatted, err := format.Source(after.src); err != nil || !bytes.Equal(formatted, after.src) {
			t.Errorf("%s: gofmt changes the rewritten file, but not the original: %v\n%s", name, err, diff.Diff("rewritten", after.src, "gofmt", formatted))
		}
	}
	if again := mustRewrite(t, after.src, toSync2); len(again.changes) > 0 {
		t.Errorf("%s: a second rewrite changes %v", name, again.changes)
	}
	if got, want := outsideImports(t, after.src), outsideImports(t, before); got != want {
		t.Errorf("%s changes outside its imports:\n%s", name, diff.Diff("want", []byte(want), "got", []byte(got)))
	}
	if imports(before, sync2Path) || hasOddSpelling(before) || gofmted(before) && hasBlockComment(before) {
		return // the documented reasons why -undo does not restore a file
	}
	want := before
	if !gofmted(before) && gofmted(after.src) { // documented too: the imports happen to be in order by their new paths
		var err error
		if want, err = format.Source(before); err != nil {
			t.Fatal(err)
		}
	}
	wantText(t, name+", restored", mustRewrite(t, after.src, toStd).src, want)
}

var blanks = regexp.MustCompile(`[ \t]+`)

// outsideImports returns the source before the first import declaration and after the last.
func outsideImports(t testing.TB, src []byte) string {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", src, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Decls) == 0 {
		return string(src)
	}
	first := fset.PositionFor(file.Decls[0].Pos(), false).Offset
	last := fset.PositionFor(file.Decls[len(file.Decls)-1].End(), false).Offset
	// gofmt may realign what stands on the lines just before and after with the comments of the imports.
	return blanks.ReplaceAllString(string(src[:first])+"\x00"+string(src[last:]), " ")
}

// hasOddSpelling reports whether there is an import that -undo would spell as everybody else does.
func hasOddSpelling(src []byte) bool {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", src, parser.ImportsOnly)
	if err != nil {
		return false
	}
	for _, spec := range file.Imports {
		named := spec.Name != nil && spec.Name.Name == stdPath
		escaped := strings.Contains(spec.Path.Value, `\`)
		glued := spec.Name == nil && src[fset.PositionFor(spec.Pos(), false).Offset-1] == 't'
		if importPath(spec) == stdPath && (named || escaped || glued) {
			return true
		}
	}
	return false
}

// hasBlockComment reports whether there is a /* */ comment among the imports. Sorting, gofmt may attach it to another.
func hasBlockComment(src []byte) bool {
	file, err := parser.ParseFile(token.NewFileSet(), "", src, parser.ImportsOnly|parser.ParseComments)
	if err != nil || len(file.Decls) == 0 {
		return false
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, "/*") && c.Pos() > file.Decls[0].Pos() {
				return true
			}
		}
	}
	return false
}

// Some hundred files of the standard library import sync, written by many hands.
func TestRewrite_HoldsItsPropertiesOnTheGoTree(t *testing.T) {
	root := filepath.Join(goOutput(t, "env", "GOROOT"), "src")
	files, every := 0, 1
	if slices.Contains(buildFlags(t), "-race=true") {
		every = 8 // one goroutine has no races; it is only slow
	}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path == filepath.Join(root, "cmd") {
				return fs.SkipDir // twice as much again
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil || !imports(src, stdPath) || len(src) > 1<<15 {
			return err // the few big ones would take half of the time
		}
		if _, err := parser.ParseFile(token.NewFileSet(), path, src, parser.SkipObjectResolution); err != nil {
			return nil // test data of the compiler
		}
		if files++; files%every == 0 {
			checkProperties(t, path, src)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("%d files", files); files < 200 {
		t.Errorf("only %d files below %s import sync; expected at least 200", files, root)
	}
}

// randomFile returns a Go file with a random arrangement of imports, about one in two as gofmt writes it.
func randomFile(r *rand.Rand) []byte {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	var b strings.Builder
	b.WriteString(pick("", "// Code generated by x. DO NOT EDIT.\n\n", "//go:build ignore\n\n"))
	b.WriteString("package p" + pick("\n", "\n\n", " // p\n", ";"))
	n := 0
	spec := func() string {
		n++
		name := pick("", "", ". ", "_ ", fmt.Sprintf("n%d ", n), fmt.Sprintf("n%d\t ", n), fmt.Sprintf("n%d /* c */ ", n))
		return name + pick(`"sync"`, `"sync"`, "`sync`", `"a"`, `"fmt"`, `"sync/atomic"`, `"time"`, `"zzz"`, `"github.com/a/b"`, `"github.com/x/y"`)
	}
	for range r.IntN(4) {
		b.WriteString(pick("", "", "// doc\n", "\n", "/* doc */ ") + "import ")
		if r.IntN(2) == 0 {
			b.WriteString(spec() + pick("\n", "\n", " // c\n", ";", ";\n"))
			continue
		}
		b.WriteString("(" + pick("\n", "\n", "", " // head\n"))
		for range r.IntN(6) {
			b.WriteString(pick("", "\t", "\t", "\n", "\t// above\n\t", "\t/* left */ ") + spec() + pick("\n", "\n", "\n", "\n\n", ";", " // right\n", " /* right */\n"))
		}
		b.WriteString(pick("", "\t// foot\n") + ")" + pick("\n", "\n\n", " // c\n", ";"))
	}
	b.WriteString(pick("", "\nvar sync2 = `import \"sync\"`\n", "//line x.go:1\nfunc f() {}\n"))
	src := []byte(b.String())
	if formatted, err := format.Source(src); err == nil && r.IntN(2) == 0 {
		src = formatted
	}
	return src
}

func TestRewrite_HoldsItsPropertiesOnRandomImports(t *testing.T) {
	rewritten, formatted := 0, 0
	for seed := range uint64(5000) {
		src := randomFile(rand.New(rand.NewPCG(seed, 0)))
		if _, err := parser.ParseFile(token.NewFileSet(), "", src, 0); err != nil {
			t.Fatalf("seed %d: the generator wrote a file that does not parse: %v\n%s", seed, err, src)
		}
		if checkProperties(t, fmt.Sprintf("seed %d", seed), src); t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, src)
		}
		if imports(src, stdPath) {
			rewritten++
			if gofmted(src) {
				formatted++
			}
		}
	}
	t.Logf("%d files rewritten, %d of them gofmt-clean", rewritten, formatted)
	if rewritten < 2000 || formatted < 500 {
		t.Error("the generator has become too tame")
	}
}

func FuzzRewrite(f *testing.F) {
	archive, err := txtar.ParseFile("testdata/forms.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range archive.Files {
		f.Add(file.Data)
	}
	for seed := range uint64(50) {
		f.Add(randomFile(rand.New(rand.NewPCG(seed, 1))))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if _, err := parser.ParseFile(token.NewFileSet(), "", src, 0); err != nil {
			return
		}
		checkProperties(t, "input", src)
	})
}
