package cri

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"

	"github.com/creack/pty"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

func (s *server) Exec(_ context.Context, r *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	if _, err := s.store.container(r.GetContainerId()); err != nil {
		return nil, err
	}
	return s.streaming.GetExec(r)
}

func (s *server) Attach(_ context.Context, r *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	if _, err := s.store.container(r.GetContainerId()); err != nil {
		return nil, err
	}
	return s.streaming.GetAttach(r)
}

func (s *server) PortForward(_ context.Context, r *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	if _, err := s.store.sandbox(r.GetPodSandboxId()); err != nil {
		return nil, err
	}
	return s.streaming.GetPortForward(r)
}

// streamRuntime is what the streaming server does with a connection.
type streamRuntime struct{ *server }

func (r streamRuntime) Exec(ctx context.Context, id string, command []string, in io.Reader, stdout, stderr io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	streams := execIO{stdin: in, tty: tty, resize: resize}
	// A nil io.WriteCloser must not become an io.Writer that is not nil.
	if stdout != nil {
		streams.stdout = stdout
	}
	if stderr != nil {
		streams.stderr = stderr
	}
	code, err := r.exec(ctx, id, command, streams)
	if err == nil && code != 0 {
		return utilexec.CodeExitError{Err: fmt.Errorf("exit code %d", code), Code: code}
	}
	return err
}

// Attach connects to a running container's streams until it ends or the client goes.
func (r streamRuntime) Attach(ctx context.Context, id string, in io.Reader, stdout, stderr io.WriteCloser, _ bool, resize <-chan remotecommand.TerminalSize) error {
	c, err := r.store.container(id)
	if err != nil {
		return err
	}
	p := c.running()
	if p == nil {
		return fmt.Errorf("container %s is not running", c.name())
	}
	var out, errOut io.Writer
	if stdout != nil {
		out = stdout
	}
	if stderr != nil {
		errOut = stderr
	}
	defer c.streams.attach(out, errOut)()
	if p.tty != nil && resize != nil {
		go func() {
			for size := range resize {
				pty.Setsize(p.tty, &pty.Winsize{Rows: size.Height, Cols: size.Width})
			}
		}()
	}
	if in != nil && p.stdin != nil {
		go func() {
			io.Copy(p.stdin, in)
			if c.config.GetStdinOnce() && p.tty == nil {
				p.stdin.Close()
			}
		}()
	}
	select {
	case <-c.streams.closed:
	case <-ctx.Done():
	}
	return nil
}

// PortForward connects to the port on the host's network, which is the pod's.
func (r streamRuntime) PortForward(ctx context.Context, _ string, port int32, stream io.ReadWriteCloser) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(r.cfg.PodIP, strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	defer conn.Close()
	var toPod sync.WaitGroup
	toPod.Go(func() {
		io.Copy(conn, stream)
		conn.(*net.TCPConn).CloseWrite()
	})
	_, err = io.Copy(stream, conn)
	stream.Close()
	toPod.Wait()
	return err
}
