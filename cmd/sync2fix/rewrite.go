package main

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path"
	"strconv"
	"strings"
)

const (
	stdPath   = "sync"
	hqsync    = "github.com/hqsync/hqsync"
	sync2Path = hqsync + "/sync2"
)

// A direction says which import path gives way to which.
type direction struct{ from, to string }

var (
	toSync2 = direction{from: stdPath, to: sync2Path}
	toStd   = direction{from: sync2Path, to: stdPath}
)

// A change is one import spec rewritten. The line is that of the original file.
type change struct {
	line     int
	old, new string
}

// A rewriting is what became of one file.
type rewriting struct {
	src       []byte // the new contents
	changes   []change
	generated bool // the file says that a program wrote it
}

// rewrite replaces the imports of d.from in a Go file by imports of d.to. It edits the bytes of the import specs and
// nothing else, then sorts the imports again if the file was formatted by gofmt. The error is a scanner.ErrorList.
func rewrite(filename string, src []byte, d direction) (rewriting, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, filename, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return rewriting{}, err
	}
	result := rewriting{generated: ast.IsGenerated(file)}
	var out bytes.Buffer
	copied := 0
	// A //line directive may claim anything; offsets and lines here are those of the file itself.
	position := func(p token.Pos) token.Position { return fset.PositionFor(p, false) }
	for _, spec := range file.Imports {
		if importPath(spec) != d.from {
			continue
		}
		start, end := position(spec.Pos()), position(spec.Path.End())
		old := string(src[start.Offset:end.Offset])
		replacement := d.replace(spec, old)
		out.Write(src[copied:start.Offset])
		if spec.Name == nil && src[start.Offset-1] == 't' {
			out.WriteByte(' ') // import"sync", and the name must not run into the keyword
		}
		out.WriteString(replacement)
		copied = end.Offset
		result.changes = append(result.changes, change{start.Line, old, replacement})
	}
	if len(result.changes) == 0 {
		result.src = src
		return result, nil
	}
	out.Write(src[copied:])
	result.src = out.Bytes()
	if gofmted(src) {
		result.src, err = format.Source(result.src)
	}
	return result, err
}

// replace returns the text that takes the place of an import spec whose text is old. The name that the import binds stays,
// written out even where the new path implies it. Only sync "sync" becomes "sync": it is what toSync2 makes of that.
func (d direction) replace(spec *ast.ImportSpec, old string) string {
	quote := old[len(old)-1:]
	newPath := quote + d.to + quote
	name, between := path.Base(d.from), " "
	if spec.Name != nil {
		name = spec.Name.Name
		between = old[len(name) : len(old)-len(spec.Path.Value)] // blanks, or a comment, which stays
	}
	if d == toStd && name == "sync" && strings.TrimSpace(between) == "" {
		return newPath
	}
	return name + between + newPath
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return "" // cannot happen: the parser has unquoted it before
	}
	return p
}

func gofmted(src []byte) bool {
	formatted, err := format.Source(src)
	return err == nil && bytes.Equal(formatted, src)
}

// imports reports whether a Go file imports path. A file that does not parse does not.
func imports(src []byte, path string) bool {
	file, err := parser.ParseFile(token.NewFileSet(), "", src, parser.ImportsOnly)
	if err != nil {
		return false
	}
	for _, spec := range file.Imports {
		if importPath(spec) == path {
			return true
		}
	}
	return false
}
