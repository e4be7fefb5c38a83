package main

import (
	_ "embed"
	"fmt"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

// What sync2fix returns to the shell; doc.go tells the user.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

type options struct {
	DryRun  bool    `short:"n" help:"Write nothing; print the changes as a patch."`
	Undo    bool    `xor:"direction" help:"Turn imports of sync2 back into imports of sync."`
	Replace *string `xor:"direction" placeholder:"PATH" help:"Let go.mod require hqsync and replace it by the checkout at PATH."`
	Dir     string  `arg:"" name:"DIR" help:"Root directory of the module, where its go.mod is."`
}

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is the command without the process around it.
func run(args []string, stdout, stderr io.Writer) int {
	var opts options
	helped := false
	cli := kong.Must(&opts,
		kong.Name("sync2fix"),
		kong.Description(manual()),
		kong.HelpOptions{NoAppDescFormat: true, FlagsLast: true},
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { helped = true }), // after -h only
	)
	_, err := cli.Parse(doubleDashes(args))
	switch {
	case helped:
		return exitDone
	case err != nil:
		fmt.Fprintf(stderr, "sync2fix: %v (sync2fix -h explains)\n", err)
		return exitUsage
	}
	if err := fix(opts, stdout, stderr); err != nil {
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(stderr, "sync2fix: %s\n", strings.TrimSuffix(line, "\n"))
		}
		return exitFailed
	}
	return exitDone
}

var goStyleFlag = regexp.MustCompile(`^-[a-z][a-z-]+(=|$)`)

// doubleDashes lets flags be written -undo, as Go's own tools have them, besides --undo. No two of the one-letter flags make
// sense together, so nothing is lost.
func doubleDashes(args []string) []string {
	var out []string
	for i, arg := range args {
		if arg == "--" {
			return append(out, args[i:]...)
		}
		if goStyleFlag.MatchString(arg) {
			arg = "-" + arg
		}
		out = append(out, arg)
	}
	return out
}

//go:embed doc.go
var docSource string

// manual returns the package's documentation as text for a terminal.
func manual() string {
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", docSource, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		panic(err) // the file is part of this program
	}
	var p comment.Parser
	printer := comment.Printer{TextWidth: 80}
	return strings.TrimSpace(string(printer.Text(p.Parse(file.Doc.Text()))))
}

// fix does what the command line asks.
func fix(opts options, stdout, stderr io.Writer) error {
	d := toSync2
	if opts.Undo {
		d = toStd
	}
	m, err := loadModule(opts.Dir)
	if err != nil {
		return err
	}
	p, err := planRewrite(m, opts.Dir, d)
	if err != nil {
		return err
	}
	if opts.Replace != nil {
		if err := p.requireHqsync(*opts.Replace); err != nil {
			return err
		}
	}
	if opts.DryRun {
		p.printPatch(stdout)
	} else {
		if err := writeAll(p.dir, p.edits); err != nil {
			return err
		}
		p.printChanges(stdout)
	}
	p.printNotes(stderr, opts)
	return nil
}
