package main

import (
	"errors"
	"fmt"
	"go/version"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

// hqsync carries no version tags; a replace directive stands behind this one.
const hqsyncVersion = "v0.0.0"

// requireHqsync adds to the plan what go.mod needs in order to build with the checkout of hqsync at path.
func (p *plan) requireHqsync(path string) error {
	goLine, err := checkoutGoLine(path)
	if err != nil {
		return err
	}
	target, err := p.replacement(path)
	if err != nil {
		return err
	}
	if err := p.gomod.AddRequire(hqsync, hqsyncVersion); err != nil {
		return err
	}
	if err := p.gomod.AddReplace(hqsync, "", target, ""); err != nil {
		return err
	}
	p.gomod.Cleanup()
	formatted, err := p.gomod.Format()
	if err != nil {
		return err
	}
	p.hqsyncGo = goLine
	if string(formatted) != string(p.gomodText) {
		p.edits = append(p.edits, edit{"go.mod", p.gomodText, formatted})
	}
	return nil
}

// checkoutGoLine makes sure that hqsync is at path and returns the Go version that it asks for.
func checkoutGoLine(path string) (string, error) {
	if path == "" {
		return "", errors.New("-replace: PATH is empty")
	}
	text, err := os.ReadFile(filepath.Join(path, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("-replace %s: no checkout of %s there: %w", path, hqsync, err)
	}
	file, err := modfile.ParseLax(filepath.Join(path, "go.mod"), text, nil)
	if err != nil {
		return "", fmt.Errorf("-replace %s: %w", path, err)
	}
	if file.Module == nil || file.Module.Mod.Path != hqsync {
		return "", fmt.Errorf("-replace %s: the module there is %s, not %s", path, modfile.ModulePath(text), hqsync)
	}
	return goLine(file), nil
}

// replacement returns path as a replace directive in the module's go.mod must name it: relative paths count from there.
func (p *plan) replacement(path string) (string, error) {
	if filepath.IsAbs(path) {
		return filepath.ToSlash(path), nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return "", fmt.Errorf("-replace %s: %w", path, err)
	}
	rel, err := filepath.Rel(p.root, real)
	if err != nil {
		return filepath.ToSlash(real), nil // on another volume
	}
	if rel = filepath.ToSlash(rel); !strings.HasPrefix(rel, "../") && rel != ".." {
		rel = "./" + rel
	}
	return rel, nil
}

// commands returns what is left for the user to run before the module builds.
func (p *plan) commands(opts options) []string {
	var list []string
	switch {
	case opts.Undo && p.requires():
		list = []string{"go mod tidy  # drops the requirement of " + hqsync + " if nothing else needs it"}
	case opts.Undo:
	case opts.Replace != nil:
		list = []string{"go mod tidy" + p.raise()}
	case !p.requires():
		list = []string{
			fmt.Sprintf("go mod edit -require=%s@%s -replace=%[1]s=PATH  # PATH: a checkout of hqsync", hqsync, hqsyncVersion),
			"go mod tidy",
		}
	}
	if _, err := os.Stat(filepath.Join(p.root, "vendor", "modules.txt")); err == nil && len(list) > 0 {
		list = append(list, "go mod vendor")
	}
	return list
}

func (p *plan) requires() bool {
	for _, r := range p.gomod.Require {
		if r.Mod.Path == hqsync {
			return true
		}
	}
	return false
}

// raise warns of the new language version that go mod tidy will choose.
func (p *plan) raise() string {
	mine := goLine(p.gomod)
	if version.Compare("go"+mine, "go"+p.hqsyncGo) >= 0 {
		return ""
	}
	return fmt.Sprintf("  # raises the go line from %s to %s", mine, p.hqsyncGo)
}

func goLine(file *modfile.File) string {
	if file.Go == nil {
		return "1.16" // what the go command assumes
	}
	return file.Go.Version
}
