package node

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// reaper waits for every child of a node's first process: for the services it
// starts, and for orphans that the kernel hands to it.
type reaper struct {
	mu    sync.Mutex // held over fork and registration, so that no end is missed
	ended map[int]chan unix.WaitStatus
	sigs  chan os.Signal
}

func newReaper() *reaper {
	r := &reaper{ended: map[int]chan unix.WaitStatus{}, sigs: make(chan os.Signal, 1)}
	signal.Notify(r.sigs, unix.SIGCHLD)
	return r
}

func (r *reaper) loop() {
	for range r.sigs {
		r.reap()
	}
}

func (r *reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if c, ok := r.ended[pid]; ok {
			delete(r.ended, pid)
			c <- status
		}
	}
}

// start forks and returns the pid and the channel on which its end is reported.
func (r *reaper) start(argv []string, log *os.File) (int, <-chan unix.WaitStatus, error) {
	stdin, err := os.Open(os.DevNull)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = stdin.Close() }()
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{
		Files: []*os.File{stdin, log, log},
		Env:   os.Environ(),
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, nil, err
	}
	pid := p.Pid
	c := make(chan unix.WaitStatus, 1)
	r.ended[pid] = c
	return pid, c, p.Release()
}

// service keeps one program running, as an init system would.
type service struct {
	name    string
	argv    []string
	logFile string
	reaper  *reaper
	log     *slog.Logger

	mu     sync.Mutex
	wanted bool
	pid    int
	starts int
	gone   chan struct{} // closed when the program with pid has ended
	retry  *time.Timer   // a restart that is due
}

func newService(name string, argv []string, logFile string, r *reaper, log *slog.Logger) *service {
	return &service{name: name, argv: argv, logFile: logFile, reaper: r, log: log}
}

func (s *service) state() (pid, starts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pid, s.starts
}

// start starts the program if it does not run, and again whenever it ends by itself.
func (s *service) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = true
	return s.startLocked()
}

func (s *service) startLocked() error {
	if s.pid != 0 {
		return nil
	}
	out, err := os.OpenFile(s.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	defer func() { _ = out.Close() }()
	pid, ended, err := s.reaper.start(s.argv, out)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	s.pid, s.gone = pid, make(chan struct{})
	s.starts++
	s.log.Info("started", "program", s.name, "pid", pid)
	go s.watch(pid, ended, s.gone)
	return nil
}

// restartDelay keeps a program that ends at once from using up the machine. The
// kubelet's unit of the common distributions waits 10 s; a test should not.
const restartDelay = time.Second

func (s *service) watch(pid int, ended <-chan unix.WaitStatus, gone chan struct{}) {
	status := <-ended
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pid = 0
	close(gone)
	s.log.Info("ended", "program", s.name, "pid", pid, "status", describe(status), "wanted", s.wanted)
	if s.wanted {
		s.retry = time.AfterFunc(restartDelay, s.restart)
	}
}

func (s *service) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.wanted {
		return
	}
	if err := s.startLocked(); err != nil {
		s.log.Error("restart", "program", s.name, "error", err)
		s.retry = time.AfterFunc(restartDelay, s.restart)
	}
}

// stopTimeout is how long a program may take to end on SIGTERM; the kubelet,
// without graceful node shutdown, takes none.
const stopTimeout = 5 * time.Second

// stop ends the program, by SIGKILL if it takes too long, and waits for its end.
func (s *service) stop(ctx context.Context) error {
	s.mu.Lock()
	s.wanted = false
	if s.retry != nil {
		s.retry.Stop()
	}
	pid, gone := s.pid, s.gone
	s.mu.Unlock()
	if pid == 0 {
		return nil
	}
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		if err := unix.Kill(pid, sig); err != nil && err != unix.ESRCH {
			return fmt.Errorf("%s (pid %d): %w", s.name, pid, err)
		}
		timer := time.NewTimer(stopTimeout)
		select {
		case <-gone:
			timer.Stop()
			return nil
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%s (pid %d) has not ended: %w", s.name, pid, context.Cause(ctx))
		case <-timer.C:
		}
	}
	return fmt.Errorf("%s (pid %d) has not ended %s after SIGKILL", s.name, pid, stopTimeout)
}

func describe(s unix.WaitStatus) string {
	if s.Signaled() {
		return s.Signal().String()
	}
	return fmt.Sprintf("exit code %d", s.ExitStatus())
}
