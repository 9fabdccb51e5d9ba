package process

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// childEnv makes this test program start a process, print its Ref and wait to
// be killed.
const childEnv = "PROCESS_TEST_LOG"

func TestMain(m *testing.M) {
	log := os.Getenv(childEnv)
	if log == "" {
		os.Exit(m.Run())
	}
	p, err := NewSpawner(true).Start(Spec{Name: "orphan", Path: "/bin/sleep", Args: []string{"600"}, LogFile: log})
	if err != nil {
		panic(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(p.Ref); err != nil {
		panic(err)
	}
	<-p.Done()
}

// A test that is killed leaves no cluster behind.
func TestTiedProcessEndsWithItsParent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.CommandContext(t.Context(), self)
	parent.Env = append(os.Environ(), childEnv+"="+filepath.Join(t.TempDir(), "log"))
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var orphan Ref
	if err := json.NewDecoder(out).Decode(&orphan); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Kill(orphan); err != nil {
			t.Error(err)
		}
	})
	if !orphan.Alive() {
		t.Fatal("the process has not started")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // says that it was killed
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	backoff := wait.Backoff{Duration: time.Millisecond, Factor: 2, Steps: 1 << 30, Cap: 100 * time.Millisecond}
	err = backoff.DelayFunc().Until(ctx, true, true, func(context.Context) (bool, error) { return !orphan.Alive(), nil })
	if err != nil {
		t.Errorf("the process lives on after its parent was killed: %v", err)
	}
}
