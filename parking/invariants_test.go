package parking_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Each invariant of doc.go names at least one test, and these exist.
func TestInvariants_AreEachPinnedByATest(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Skipf("the sources are not here: %v", err)
	}
	exist := map[string]bool{}
	files, _ := filepath.Glob("*_test.go")
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				exist[fn.Name.Name] = true
			}
		}
	}
	sections := regexp.MustCompile(`(?m)^//\tI(\d+) `).FindAllSubmatchIndex(doc, -1)
	if len(sections) != 18 {
		t.Fatalf("%d invariants, 18 expected", len(sections))
	}
	for i, at := range sections {
		end := len(doc)
		if i+1 < len(sections) {
			end = sections[i+1][0]
		}
		names := regexp.MustCompile(`\bTest\w+`).FindAllString(string(doc[at[0]:end]), -1)
		if len(names) == 0 {
			t.Errorf("I%s names no test", doc[at[2]:at[3]])
		}
		for _, n := range names {
			if !exist[n] {
				t.Errorf("I%s names %s, which does not exist", doc[at[2]:at[3]], n)
			}
		}
	}
}
