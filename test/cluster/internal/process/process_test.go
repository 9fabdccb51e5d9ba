package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func start(t *testing.T, script string) *Process {
	t.Helper()
	s := NewSpawner(true)
	p, err := s.Start(Spec{Name: "sample", Path: "/bin/sh", Args: []string{"-c", script}, LogFile: filepath.Join(t.TempDir(), "log")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Kill(p.Ref); err != nil {
			t.Error(err)
		}
		s.Close()
	})
	return p
}

// await fails the test if the process does not end; the time is a bound, not a wait.
func await(t *testing.T, p *Process) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("the process has not ended")
	}
}

func TestKill(t *testing.T) {
	p := start(t, "trap '' TERM; exec sleep 600")
	if !p.Alive() {
		t.Fatal("a started process is not alive")
	}
	if err := Kill(p.Ref); err != nil {
		t.Fatal(err)
	}
	if p.Alive() {
		t.Error("alive after Kill")
	}
	await(t, p)
	if err := Kill(p.Ref); err != nil {
		t.Errorf("killing what has ended: %v", err)
	}
}

// The pid of an ended process may be given to another, which is nobody's to kill.
func TestKillSparesALaterProcess(t *testing.T) {
	p := start(t, "exec sleep 600")
	other := p.Ref
	other.Started = "1"
	if other.Alive() {
		t.Error("a process with another start time is taken for the same")
	}
	if err := Kill(other); err != nil {
		t.Fatal(err)
	}
	if !p.Alive() {
		t.Error("a process with another start time was killed")
	}
}

func TestFailureShowsTheLog(t *testing.T) {
	p := start(t, "echo first; echo the reason >&2; exit 3")
	await(t, p)
	text := p.Failure().Error()
	for _, want := range []string{"sample ended", "exit status 3", "first\nthe reason\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("one\ntwo\nthree\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int64]string{100: "one\ntwo\nthree\n", 14: "one\ntwo\nthree\n", 9: "three\n"} {
		if got := tail(path, limit); got != want {
			t.Errorf("limit %d: %q, want %q", limit, got, want)
		}
	}
}

func TestEnvironmentAndFiles(t *testing.T) {
	dir := t.TempDir()
	passed, err := os.Create(filepath.Join(dir, "passed"))
	if err != nil {
		t.Fatal(err)
	}
	s := NewSpawner(true)
	defer s.Close()
	p, err := s.Start(Spec{
		Name: "sample", Path: "/bin/sh", Args: []string{"-c", "echo $X in $PWD >&3"}, Dir: dir,
		Env: []string{"X=value"}, LogFile: filepath.Join(dir, "log"), Files: []*os.File{passed},
	})
	if err != nil {
		t.Fatal(err)
	}
	await(t, p)
	got, err := os.ReadFile(passed.Name())
	if err != nil || string(got) != "value in "+dir+"\n" {
		t.Errorf("%q, %v", got, err)
	}
}
