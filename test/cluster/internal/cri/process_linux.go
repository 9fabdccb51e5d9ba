package cri

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

const (
	// startTimeout bounds the set-up of a container's namespaces, which takes milliseconds.
	startTimeout = 30 * time.Second
	// drainTimeout bounds how long the output of an ended process is read: a process that shares the
	// host's pids may leave a child that holds the pipe open.
	drainTimeout = 2 * time.Second
)

// launcher starts processes that die with the server.
type launcher struct {
	cfg     Config
	rootDir string // empty folder on which each container's root is mounted, in its own namespace
	work    chan func()
}

func newLauncher(cfg Config) (*launcher, error) {
	l := &launcher{cfg: cfg, rootDir: filepath.Join(cfg.StateDir, "rootfs"), work: make(chan func())}
	if err := os.MkdirAll(l.rootDir, 0o755); err != nil {
		return nil, fmt.Errorf("CRI state: %w", err)
	}
	go func() {
		// The kernel sends the parent-death signal when the thread that forked ends, so all forks
		// are made by one thread that lives as long as the server.
		runtime.LockOSThread()
		for f := range l.work {
			f()
		}
	}()
	return l, nil
}

// close ends the forking thread, which kills all that is left.
func (l *launcher) close() { close(l.work) }

// process is the running main process of a container.
type process struct {
	cmd     *exec.Cmd
	ownPIDs bool // pid 1 of a namespace: the kernel ends its descendants with it
	stdin   io.WriteCloser
	tty     *os.File
	drained sync.WaitGroup
}

// start returns once the container's command runs. Everything before that, namespaces, mounts and
// the look-up of the command, is the shim's work.
func (l *launcher) start(c *container) (*process, error) {
	input, err := json.Marshal(shimInput{
		RootDir: l.rootDir, CommandDir: l.cfg.CommandDir, Files: c.files, Spec: c.spec,
	})
	if err != nil {
		return nil, err
	}
	specR, specW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer specR.Close()
	defer specW.Close()
	statusR, statusW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer statusR.Close()
	defer statusW.Close()

	p := &process{ownPIDs: hasNamespace(c.spec, specs.PIDNamespace)}
	p.cmd = &exec.Cmd{
		Path:       "/proc/self/exe",
		Args:       []string{shimCommand, shimCommand},
		Env:        []string{},
		Dir:        "/",
		ExtraFiles: []*os.File{specR, statusW}, // shimSpecFD, shimStatusFD
		WaitDelay:  drainTimeout,
		SysProcAttr: &syscall.SysProcAttr{
			Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS,
			Pdeathsig:  syscall.SIGKILL,
			Setsid:     true,
		},
	}
	if p.ownPIDs {
		p.cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWPID
	}
	slave, err := p.connect(c)
	if err != nil {
		return nil, err
	}
	started := make(chan error, 1)
	l.work <- func() { started <- p.cmd.Start() }
	err = <-started
	if slave != nil {
		slave.Close()
	}
	if err != nil {
		if p.tty != nil {
			p.tty.Close()
		}
		return nil, err
	}
	p.drain(c.streams)
	specR.Close()
	statusW.Close()

	deadline := time.Now().Add(startTimeout)
	specW.SetWriteDeadline(deadline)
	statusR.SetReadDeadline(deadline)
	_, writeErr := specW.Write(input)
	specW.Close()
	answer, readErr := io.ReadAll(statusR)
	if string(answer) == shimReady && readErr == nil {
		return p, nil
	}
	p.signal(syscall.SIGKILL)
	code := p.wait()
	switch msg, failed := cutReady(string(answer)); {
	case failed:
		return nil, errors.New(msg)
	default:
		return nil, fmt.Errorf("the shim ended with code %d before its command: %w", code, errors.Join(writeErr, readErr))
	}
}

// connect wires the process to the container's streams. It returns the process's side of a terminal.
func (p *process) connect(c *container) (slave *os.File, err error) {
	if c.spec.Process.Terminal {
		p.tty, slave, err = pty.Open()
		if err != nil {
			return nil, fmt.Errorf("terminal: %w", err)
		}
		p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = slave, slave, slave
		p.cmd.SysProcAttr.Setctty = true
		p.stdin = p.tty
		return slave, nil
	}
	p.cmd.Stdout, p.cmd.Stderr = &c.streams.stdout, &c.streams.stderr
	if c.config.GetStdin() {
		p.stdin, err = p.cmd.StdinPipe()
	}
	return nil, err
}

// drain copies a terminal's output until the last process that holds it has ended.
func (p *process) drain(s *containerStreams) {
	if p.tty != nil {
		p.drained.Go(func() { io.Copy(&s.stdout, p.tty) })
	}
}

// signal is without effect on a process that has ended.
func (p *process) signal(sig syscall.Signal) {
	p.cmd.Process.Signal(sig)
}

// wait returns the exit code once the process has ended and its output is read: 128 plus the signal
// for a process that a signal ended, as shells and containerd count.
func (p *process) wait() int {
	p.cmd.Wait()
	if !p.ownPIDs {
		unix.Kill(-p.cmd.Process.Pid, unix.SIGKILL) // the rest of its session
	}
	if p.tty != nil {
		timer := time.AfterFunc(drainTimeout, func() { p.tty.Close() })
		p.drained.Wait()
		timer.Stop()
		p.tty.Close()
	}
	return exitCode(p.cmd.ProcessState)
}

func exitCode(s *os.ProcessState) int {
	if ws := s.Sys().(syscall.WaitStatus); ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return s.ExitCode()
}

func hasNamespace(spec *specs.Spec, t specs.LinuxNamespaceType) bool {
	return slices.ContainsFunc(spec.Linux.Namespaces, func(n specs.LinuxNamespace) bool { return n.Type == t })
}
