package cri

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// maxExecOutput is the most of each stream that ExecSync returns, in bytes (api.proto,
// ExecSyncResponse); the rest is dropped.
const maxExecOutput = 16 << 20

// execIO is what a command that is run in a container is connected to.
type execIO struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	tty            bool
	resize         <-chan remotecommand.TerminalSize
}

func (s *server) ExecSync(ctx context.Context, r *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	if r.GetTimeout() > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(r.GetTimeout())*time.Second)
		defer cancel()
	}
	stdout, stderr := &cappedBuffer{max: maxExecOutput}, &cappedBuffer{max: maxExecOutput}
	code, err := s.exec(ctx, r.GetContainerId(), r.GetCmd(), execIO{stdout: stdout, stderr: stderr})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, status.Errorf(codes.DeadlineExceeded, "command %q timed out", r.GetCmd())
	case err != nil:
		return nil, err
	}
	return &runtimeapi.ExecSyncResponse{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), ExitCode: int32(code)}, nil
}

// exec runs a command in a running container's namespaces and returns its exit code. When ctx ends,
// the command is killed and ctx's error returned.
func (s *server) exec(ctx context.Context, id string, command []string, streams execIO) (int, error) {
	c, err := s.store.container(id)
	if err != nil {
		return 0, err
	}
	if len(command) == 0 {
		return 0, status.Error(codes.InvalidArgument, "exec without a command")
	}
	p := c.running()
	if p == nil {
		return 0, fmt.Errorf("container %s is not running", c.name())
	}
	var code int
	onOwnThread(func() {
		if err = p.enter(); err == nil {
			code, err = runInside(ctx, c, command, streams)
		}
	})
	if err != nil {
		return 0, fmt.Errorf("container %s: failed to exec %q: %w", c.name(), command, err)
	}
	return code, nil
}

// onOwnThread runs f on a thread that is thrown away, for f changes the thread's namespaces. The
// process's first thread cannot be thrown away, so it is not taken.
func onOwnThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if unix.Gettid() != os.Getpid() {
			f()
			return
		}
		onOwnThread(f)
		runtime.UnlockOSThread()
	}()
	<-done
}

// enter moves the calling thread into the container's mount namespace, and its future children into
// its pid namespace.
func (p *process) enter() error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	flags := unix.CLONE_NEWNS | unix.CLONE_NEWUTS
	if p.ownPIDs {
		flags |= unix.CLONE_NEWPID
	}
	// By the process's handle and not its number, which may be another's by now.
	var setnsErr error
	if err := p.cmd.Process.WithHandle(func(fd uintptr) { setnsErr = unix.Setns(int(fd), flags) }); err != nil {
		return fmt.Errorf("join namespaces: %w", err)
	}
	if setnsErr != nil {
		return fmt.Errorf("join namespaces: %w", setnsErr)
	}
	return nil
}

// runInside runs the command from a thread that is in the container's namespaces.
func runInside(ctx context.Context, c *container, command []string, streams execIO) (int, error) {
	proc := c.spec.Process
	path, err := lookPath(command[0], proc.Env)
	if err != nil {
		return 0, err
	}
	cmd := &exec.Cmd{
		Path: path, Args: command, Env: proc.Env, Dir: proc.Cwd,
		Stdin: streams.stdin, Stdout: streams.stdout, Stderr: streams.stderr,
		WaitDelay: drainTimeout,
		SysProcAttr: &syscall.SysProcAttr{
			Setsid:     true,
			Credential: &syscall.Credential{Uid: proc.User.UID, Gid: proc.User.GID, Groups: proc.User.AdditionalGids},
		},
	}
	var stdin io.WriteCloser
	if streams.stdin != nil {
		// Not left to Wait, which would wait for a client that sends nothing and does not close.
		cmd.Stdin = nil
		if !streams.tty {
			if stdin, err = cmd.StdinPipe(); err != nil {
				return 0, err
			}
		}
	}
	var terminal *os.File
	if streams.tty {
		var slave *os.File
		if terminal, slave, err = openTerminal(streams.resize); err != nil {
			return 0, err
		}
		defer terminal.Close()
		defer slave.Close()
		cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
		cmd.SysProcAttr.Setctty = true
		stdin = terminal
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	if stdin != nil && streams.stdin != nil {
		go func() {
			io.Copy(stdin, streams.stdin)
			if terminal == nil {
				stdin.Close()
			}
		}()
	}
	stop := context.AfterFunc(ctx, func() { unix.Kill(-cmd.Process.Pid, unix.SIGKILL) })
	defer stop()
	if terminal != nil {
		cmd.Stdout.(*os.File).Close()
		if streams.stdout != nil {
			io.Copy(streams.stdout, terminal) // ends with EIO when the command has closed it
		}
	}
	waitErr := cmd.Wait()
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if cmd.ProcessState == nil {
		return 0, waitErr
	}
	return exitCode(cmd.ProcessState), nil
}

// openTerminal opens a pseudo-terminal whose size follows the client's.
func openTerminal(resize <-chan remotecommand.TerminalSize) (terminal, slave *os.File, err error) {
	terminal, slave, err = pty.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("terminal: %w", err)
	}
	if resize != nil {
		go func() {
			for size := range resize {
				pty.Setsize(terminal, &pty.Winsize{Rows: size.Height, Cols: size.Width})
			}
		}()
	}
	return terminal, slave, nil
}

// cappedBuffer keeps the first max bytes and drops the rest without an error.
type cappedBuffer struct {
	bytes.Buffer
	max int
}

func (b *cappedBuffer) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), b.max-b.Len())])
	return len(p), nil
}
