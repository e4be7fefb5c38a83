package topology

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"
)

// childEnv makes this test binary a child that tells what it finds of the machine
// once it has read a line from its standard input.
const childEnv = "HQSYNC_TOPOLOGY_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		bufio.NewReader(os.Stdin).ReadString('\n')
		t, err := Get()
		r := &reader{tree: os.DirFS("/")}
		fmt.Printf("allowed=%s\nstatus=%s\ncgroup=%s\ndomains=%d\nsource=%s\nerr=%v\n",
			t.Allowed(), r.statusAllowed(), r.cgroupAllowed(), t.NumDomains(), t.source, err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child runs this binary, behind the command in HQSYNC_EXEC if the binary is for
// another machine than this one, and returns what it tells. Between its start and
// its look at the machine it calls place with the process id.
func child(t *testing.T, environment []string, place func(pid int), prefix ...string) map[string]string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := append(prefix, strings.Fields(os.Getenv("HQSYNC_EXEC"))...)
	command = append(command, exe)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(append(os.Environ(), childEnv+"=1", "GORACE=atexit_sleep_ms=0"), environment...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	place(cmd.Process.Pid)
	io.WriteString(stdin, "\n")
	told := map[string]string{}
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), "=")
		told[name] = value
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return told
}

func nowhere(int) {}

// oneOfSeveral returns a CPU that this process may use, 1 if possible, or skips.
func oneOfSeveral(t *testing.T) string {
	t.Helper()
	allowed := affinity()
	if allowed.Len() < 2 {
		t.Skipf("this process may use the CPUs %q only, which cannot be narrowed down", allowed)
	}
	if allowed.Has(1) {
		return "1"
	}
	return strconv.Itoa(allowed.Max())
}

func TestTasksetChangesWhatIsAllowed(t *testing.T) {
	cpu := oneOfSeveral(t)
	taskset, err := exec.LookPath("taskset")
	if err != nil {
		t.Skipf("taskset is not installed: %v", err)
	}
	told := child(t, nil, nowhere)
	if want := affinity().String(); told["allowed"] != want || told["err"] != "<nil>" {
		t.Errorf("unconfined child: %v, want %s allowed", told, want)
	}
	told = child(t, nil, nowhere, taskset, "-c", cpu)
	if told["allowed"] != cpu || told["status"] != cpu || told["err"] != "<nil>" {
		t.Errorf("child under taskset -c %s: %v", cpu, told)
	}
}

func TestCpusetChangesWhatIsAllowed(t *testing.T) {
	cpu := oneOfSeveral(t)
	dir := makeCpuset(t, cpu)
	told := child(t, nil, func(pid int) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o666); err != nil {
			t.Errorf("the child cannot be moved: %v", err)
		}
	})
	if told["allowed"] != cpu || told["status"] != cpu || told["cgroup"] != cpu || told["err"] != "<nil>" {
		t.Errorf("child in a cpuset of CPU %s: %v", cpu, told)
	}
}

// makeCpuset makes a cgroup that is confined to a CPU for the length of the test,
// or skips. It changes nothing about cgroups that exist.
func makeCpuset(t *testing.T, cpu string) string {
	t.Helper()
	parent := "/sys/fs/cgroup/cpuset"
	if b, err := os.ReadFile("/sys/fs/cgroup/cgroup.subtree_control"); err == nil {
		if !strings.Contains(string(b), "cpuset") {
			t.Skipf("cgroup v2 delegates only %q here, not cpuset; testdata has such trees", b)
		}
		parent = "/sys/fs/cgroup"
	}
	dir, err := os.MkdirTemp(parent, "hqsync-test-")
	if err != nil {
		t.Skipf("no cgroup can be made here: %v; testdata has such trees", err)
	}
	t.Cleanup(func() { unix.Rmdir(dir) })
	if mems, err := os.ReadFile(filepath.Join(parent, "cpuset.mems")); err == nil {
		os.WriteFile(filepath.Join(dir, "cpuset.mems"), mems, 0o666) // cgroup v1 wants it before a process comes
	}
	if err := os.WriteFile(filepath.Join(dir, "cpuset.cpus"), []byte(cpu), 0o666); err != nil {
		t.Skipf("no cpuset can be made here: %v; testdata has such trees", err)
	}
	return dir
}

func TestMachineWhoseDescriptionMakesNoSense(t *testing.T) {
	tree := fstest.MapFS{"sys/devices/system/cpu/online": {Data: []byte("garbage")}}
	for allowed, want := range map[string]string{"96-99": "96-99", "": firstCPUs().String()} {
		m, err := readRoot(tree, mustParse(t, allowed))
		if err == nil || !strings.HasPrefix(err.Error(), "topology: sys/devices/system/cpu/online: ") {
			t.Errorf("error %v", err)
		}
		topo := newTopology(m, LLC)
		checkInvariants(t, topo)
		if topo.Allowed().String() != want || topo.NumDomains() != 1 {
			t.Errorf("%v, allowed %s, want %s", topo, topo.Allowed(), want)
		}
	}
}

func TestEnvironmentOfAProcess(t *testing.T) {
	told := child(t, []string{"SYNC2=topology=4x8"}, nowhere)
	if told["allowed"] != "0-31" || told["domains"] != "4" || told["source"] != "synthetic" || told["err"] != "<nil>" {
		t.Errorf("SYNC2=topology=4x8: %v", told)
	}
	told = child(t, []string{"SYNC2=topology=4x8,domains=none"}, nowhere)
	if told["domains"] != "1" || told["err"] != "<nil>" {
		t.Errorf("SYNC2=topology=4x8,domains=none: %v", told)
	}
	told = child(t, []string{"SYNC2=domains=sockets"}, nowhere)
	if told["source"] == "synthetic" || told["err"] != `env: SYNC2 key domains cannot be "sockets"; allowed: llc, node or none` {
		t.Errorf("SYNC2=domains=sockets: %v", told)
	}
}
