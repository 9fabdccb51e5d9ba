// Package process starts the cluster's long-running programs and ends them,
// from the process that started them or from a later one.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Spec says what to start.
type Spec struct {
	// Name is what messages call the program.
	Name string
	Path string
	Args []string
	// Env is added to the caller's environment.
	Env []string
	Dir string
	// LogFile receives standard output and error; it is appended to.
	LogFile string
	// Files stay open in the program, from descriptor 3 on.
	Files []*os.File
	// Isolated gives the program mount and pid namespaces of its own (Linux). It
	// is the first process of the latter: when it ends, the kernel kills all that
	// it started.
	Isolated bool
}

// Ref names a started process so that another program can find it again.
type Ref struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
	// Started tells the process from a later one with the same pid.
	Started string `json:"started"`
}

// Process is a child of this process.
type Process struct {
	Ref
	logFile string
	done    chan struct{}
	err     error // valid once done is closed
}

// Spawner starts processes.
type Spawner struct {
	requests chan func()
	tied     bool
}

// NewSpawner returns a spawner. With tied, what it starts is killed when this
// process ends in whatever way (Linux; elsewhere only Stop ends it): a test that
// times out or crashes leaves nothing behind. Close it when all has ended.
func NewSpawner(tied bool) *Spawner {
	s := &Spawner{requests: make(chan func()), tied: tied}
	go func() {
		// The parent-death signal is sent when the *thread* that forked ends, so
		// one thread does all the forking and is kept to the end.
		runtime.LockOSThread()
		for f := range s.requests {
			f()
		}
	}()
	return s
}

// Close ends the spawner's thread.
func (s *Spawner) Close() { close(s.requests) }

// Start starts the program in a session of its own, so that an interrupt typed
// at a terminal reaches this process only.
func (s *Spawner) Start(spec Spec) (*Process, error) {
	log, err := os.OpenFile(spec.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Dir = spec.Dir
	cmd.Env = append(os.Environ(), spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = spec.Files
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := setAttributes(cmd.SysProcAttr, s.tied, spec.Isolated); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	started := make(chan error)
	s.requests <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	p := &Process{logFile: spec.LogFile, done: make(chan struct{})}
	p.Name, p.PID = spec.Name, cmd.Process.Pid
	// A child that has already ended has no start time and needs none: its Ref is
	// never alive, and whoever waits for it learns of the failure by Done.
	p.Started, _ = startTime(p.PID)
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Done is closed when the process has ended and been waited for.
func (p *Process) Done() <-chan struct{} { return p.done }

// Failure says how the process ended, with the end of its log. It must only be
// called after Done.
func (p *Process) Failure() error {
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s ended: %s; end of its log %s:\n%s", p.Name, how, p.logFile, tail(p.logFile, 2048))
}

// tail returns the last complete lines of a file within limit bytes.
func tail(path string, limit int64) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	cut := info.Size() > limit
	if cut {
		if _, err := f.Seek(-limit, io.SeekEnd); err != nil {
			return err.Error()
		}
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	if _, rest, ok := strings.Cut(string(text), "\n"); cut && ok {
		return rest
	}
	return string(text)
}

// Alive reports whether the process named by r still runs. A zombie does not.
func (r Ref) Alive() bool {
	started, err := startTime(r.PID)
	return err == nil && started == r.Started
}

// killTimeout is how long a process may take to go after SIGKILL: long enough
// for a machine under load to tear down a node's namespaces.
const killTimeout = 20 * time.Second

// Kill ends the processes with SIGKILL and waits until all are gone. Only
// processes that are still those named by their Ref are signalled.
func Kill(refs ...Ref) error {
	var errs []error
	for _, r := range refs {
		if !r.Alive() {
			continue
		}
		if err := syscall.Kill(r.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, fmt.Errorf("kill %s (pid %d): %w", r.Name, r.PID, err))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	for _, r := range refs {
		// They may be no children of this process, so there is nothing to wait on.
		backoff := wait.Backoff{Duration: time.Millisecond, Factor: 1.5, Steps: 1 << 30, Cap: 100 * time.Millisecond}
		err := backoff.DelayFunc().Until(ctx, true, true, func(context.Context) (bool, error) { return !r.Alive(), nil })
		if err != nil {
			errs = append(errs, fmt.Errorf("%s (pid %d) is still there %s after SIGKILL", r.Name, r.PID, killTimeout))
		}
	}
	return errors.Join(errs...)
}
