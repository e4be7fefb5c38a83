package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"sync2fix": main})
}

// TestScript runs the command as a user would: testdata/script/*.txtar.
func TestScript(t *testing.T) {
	needHostGo(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, goEnv(t)...)
			env.Setenv("HQSYNC", hqsyncRoot(t))
			return nil
		},
	})
}

// needHostGo skips tests that start programs if this test binary was built for another machine and runs in an emulator.
func needHostGo(t *testing.T) {
	t.Helper()
	host := goOutput(t, "env", "GOHOSTOS") + "/" + goOutput(t, "env", "GOHOSTARCH")
	if this := runtime.GOOS + "/" + runtime.GOARCH; this != host {
		t.Skipf("this test starts programs, which the go command would build for %s, but this test binary is for %s", host, this)
	}
}

// goEnv returns the environment for child processes of the go command: as here, but neither the workspace nor the GOFLAGS of
// this run, which were meant for other packages.
func goEnv(t testing.TB) []string {
	env := append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	for _, dir := range []string{"GOCACHE", "GOMODCACHE", "GOENV", "GOPATH"} { // found through HOME, which a script changes
		env = append(env, dir+"="+goOutput(t, "env", dir))
	}
	return env
}

// hqsyncRoot returns the directory of the checkout that this test belongs to.
func hqsyncRoot(t testing.TB) string {
	return filepath.Dir(filepath.Dir(goOutput(t, "env", "GOMOD")))
}

func goOutput(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}
