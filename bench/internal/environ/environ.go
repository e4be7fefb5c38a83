// Package environ records what a measurement depends on.
package environ

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/klauspost/cpuid/v2"

	"github.com/hqsync/hqsync/topology"
)

// Env is the machine, the toolchain and the source of a measurement. A field that could not be found out is "unknown".
type Env struct {
	CPU        string            `json:"cpu"`
	CPUs       int               `json:"cpus"`     // that the process may use
	Topology   string            `json:"topology"` // as the locks see it
	GOMAXPROCS int               `json:"gomaxprocs"`
	Platform   string            `json:"platform"` // GOOS/GOARCH
	Kernel     string            `json:"kernel"`
	Load       string            `json:"load"` // one-minute load average at the start
	Go         string            `json:"go"`
	Revision   string            `json:"revision"` // with "+changes" if the tree had any
	Tags       string            `json:"tags"`
	Settings   map[string]string `json:"settings"` // environment variables that change the runtime or sync2
}

const unknown = "unknown"

// settings are the environment variables worth a line in a report.
var settings = []string{"GODEBUG", "GOGC", "GOMEMLIMIT", "GOEXPERIMENT", "GOAMD64", "SYNC2"}

// Read looks at the machine. It starts the git command if the binary does not know its revision, as under go run.
func Read() Env {
	e := Env{
		CPU:        orUnknown(cpuid.CPU.BrandName),
		CPUs:       runtime.NumCPU(),
		GOMAXPROCS: runtime.GOMAXPROCS(0),
		Platform:   runtime.GOOS + "/" + runtime.GOARCH,
		Kernel:     orUnknown(kernel()),
		Load:       load(),
		Go:         runtime.Version(),
		Settings:   map[string]string{},
	}
	for _, name := range settings {
		if value := os.Getenv(name); value != "" {
			e.Settings[name] = value
		}
	}
	// With an error, which the topology command shows, comes what the locks use in its place.
	machine, _ := topology.Get()
	e.Topology = machine.String()
	build := buildSettings()
	e.Tags = build["-tags"]
	e.Revision = build["vcs.revision"]
	if build["vcs.modified"] == "true" {
		e.Revision += "+changes"
	}
	if e.Revision == "" {
		e.Revision = gitRevision()
	}
	return e
}

// String is the environment on one line.
func (e Env) String() string {
	s := fmt.Sprintf("%s, %d CPUs, GOMAXPROCS %d, %s, %s %s, revision %s", e.CPU, e.CPUs, e.GOMAXPROCS, e.Kernel, e.Go, e.Platform, e.Revision)
	if e.Tags != "" {
		s += ", tags " + e.Tags
	}
	return s
}

func orUnknown(s string) string {
	if s = strings.TrimSpace(s); s == "" {
		return unknown
	}
	return s
}

func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return unknown
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

func buildSettings() map[string]string {
	found := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			found[s.Key] = s.Value
		}
	}
	return found
}

// gitRevision asks git about the current directory.
func gitRevision() string {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return unknown
	}
	revision := strings.TrimSpace(string(out))
	if out, err = exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no").Output(); err != nil || len(out) > 0 {
		revision += "+changes"
	}
	return revision
}
