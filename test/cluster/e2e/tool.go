// Package e2e proves dramigrate on a real control plane and real kubelets. What it
// holds besides the tests is what they and the demo share: the tool as a process, and
// a bench of nodes, plugin, driver and workload.
package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Tool is the dramigrate program with a cluster to work on.
type Tool struct {
	Binary     string
	Kubeconfig string
	// Flags go to every verb that changes something.
	Flags []string
}

// Result is how a run of the tool ended.
type Result struct {
	Args           []string
	Code           int
	Signal         syscall.Signal // what killed it; 0 if nothing did
	Stdout, Stderr string
}

// String is all of it, for a test's message; the errors first, for logs that are cut.
func (r Result) String() string {
	return fmt.Sprintf("dramigrate %s: exit code %d, signal %v\n--- stderr\n%s--- stdout\n%s",
		strings.Join(r.Args, " "), r.Code, r.Signal, r.Stderr, r.Stdout)
}

// Run runs the tool to its end.
func (t Tool) Run(ctx context.Context, args ...string) Result {
	p, err := t.Start(ctx, args...)
	if err != nil {
		return Result{Args: args, Code: -1, Stderr: err.Error()}
	}
	return p.Wait()
}

// Process is a run of the tool that goes on.
type Process struct {
	cmd            *exec.Cmd
	args           []string
	stdout, stderr *buffer
	done           chan struct{}
}

// Start starts the tool. It is killed when ctx ends.
func (t Tool) Start(ctx context.Context, args ...string) (*Process, error) {
	args = append(append([]string{}, args...), "--kubeconfig", t.Kubeconfig)
	p := &Process{cmd: exec.CommandContext(ctx, t.Binary, args...), args: args, stdout: &buffer{}, stderr: &buffer{}, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	p.cmd.Env = append(os.Environ(), "NO_COLOR=1", "COLUMNS=", "KUBECONFIG=")
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start dramigrate: %w", err)
	}
	go func() { _ = p.cmd.Wait(); close(p.done) }()
	return p, nil
}

// Wait waits for the end.
func (p *Process) Wait() Result {
	<-p.done
	r := Result{Args: p.args, Code: p.cmd.ProcessState.ExitCode(), Stdout: p.stdout.String(), Stderr: p.stderr.String()}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		r.Signal = status.Signal()
	}
	return r
}

// Done is closed when the tool has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Stdout and Stderr are what it has said so far.
func (p *Process) Stdout() string { return p.stdout.String() }
func (p *Process) Stderr() string { return p.stderr.String() }

// buffer can be read while a process writes to it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// BuildTool compiles the program of the main module into dir, with build tags.
func BuildTool(ctx context.Context, dir string, tags ...string) (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return "", fmt.Errorf("build dramigrate: this file's place is not known")
	}
	root := filepath.Join(filepath.Dir(file), "..", "..", "..")
	binary := filepath.Join(dir, strings.Join(append([]string{"dramigrate"}, tags...), "-"))
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", strings.Join(tags, ","), "-o", binary, "./cmd/dramigrate")
	cmd.Dir = root
	// Static: the node helper runs it in containers that have no C library.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build dramigrate: %w\n%s", err, out)
	}
	return binary, nil
}

// Eventually calls check at short intervals until it says "" or the time is over,
// and returns what it said last.
func Eventually(ctx context.Context, limit time.Duration, check func() string) string {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		why := check()
		if why == "" {
			return ""
		}
		select {
		case <-ctx.Done():
			return fmt.Sprintf("not within %s: %s", limit, why)
		case <-tick.C:
		}
	}
}
