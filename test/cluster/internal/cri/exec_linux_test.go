package cri

import (
	"bytes"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func (n *node) execSync(id string, timeout int64, command ...string) (*runtimeapi.ExecSyncResponse, error) {
	return n.runtime.ExecSync(n.ctx(), &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: command, Timeout: timeout})
}

func TestExecSync(t *testing.T) {
	n := newNode(t)
	config := n.config("stubborn")
	config.Envs = []*runtimeapi.KeyValue{{Key: "COLOUR", Value: []byte("green")}}
	config.WorkingDir = "/srv/app"
	config.Mounts = []*runtimeapi.Mount{{ContainerPath: "/data", HostPath: filepath.Dir(n.write("data/file", "content"))}}
	id := n.start(n.sandbox("pod"), config)

	r, err := n.execSync(id, 0, testerCommand, "cat=/data/file", "ls=/usr/bin/", "env=COLOUR", "cwd", "hostname", "warn=oops", "exit=5")
	if err != nil {
		t.Fatalf("ExecSync: %v", err)
	}
	const want = "/data/file: content\n/usr/bin/: [tester]\nCOLOUR=green\ncwd /srv/app\nhostname pod\n"
	if string(r.Stdout) != want || string(r.Stderr) != "oops\n" || r.ExitCode != 5 {
		t.Errorf("stdout %q, stderr %q, code %d; want %q, oops, 5", r.Stdout, r.Stderr, r.ExitCode, want)
	}
	// It is in the container's pid namespace, where the container's process is the first.
	r, err = n.execSync(id, 0, testerCommand, "cat=/proc/1/cmdline")
	if err != nil || !strings.Contains(string(r.GetStdout()), testerCommand+"\x00stubborn") {
		t.Errorf("process 1 as seen by exec: %q, %v", r.GetStdout(), err)
	}
}

func TestExecSyncErrors(t *testing.T) {
	n := newNode(t)
	sandbox := n.sandbox("pod")
	id := n.start(sandbox, n.config("stubborn"))
	n.printed(id, "ready")
	if _, err := n.execSync(id, 0, "bash"); err == nil || !strings.Contains(err.Error(), `exec: "bash": executable file not found in $PATH`) {
		t.Errorf("ExecSync of an unknown command: %v", err)
	}
	if _, err := n.execSync(id, 1, testerCommand, "hang"); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("ExecSync past its timeout: %v, want DeadlineExceeded", err)
	}
	if got := len(descendants(t)); got != 1 {
		t.Errorf("%d processes after an exec that timed out, want the container's alone", got)
	}
	ended := n.start(sandbox, n.config())
	n.ended(ended)
	if _, err := n.execSync(ended, 0, testerCommand); err == nil || !strings.Contains(err.Error(), "not running") {
		t.Errorf("ExecSync in an ended container: %v", err)
	}
	if _, err := n.execSync("no-such-container", 0, testerCommand); status.Code(err) != codes.NotFound {
		t.Errorf("ExecSync in an unknown container: %v", err)
	}
}

// stream talks to a streaming URL as kubectl does through the API server.
func (n *node) stream(address string, options remotecommand.StreamOptions) error {
	n.t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		n.t.Fatal(err)
	}
	e, err := remotecommand.NewSPDYExecutor(&rest.Config{Host: u.Host}, "POST", u)
	if err != nil {
		n.t.Fatal(err)
	}
	return e.StreamWithContext(n.ctx(), options)
}

func TestExecStream(t *testing.T) {
	n := newNode(t)
	id := n.start(n.sandbox("pod"), n.config("stubborn"))
	for _, tty := range []bool{false, true} {
		r, err := n.runtime.Exec(n.ctx(), &runtimeapi.ExecRequest{
			ContainerId: id, Cmd: []string{testerCommand, "stdin", "exit=9"}, Stdin: true, Stdout: true, Tty: tty,
		})
		if err != nil {
			t.Fatalf("Exec: %v", err)
		}
		var stdout bytes.Buffer
		err = n.stream(r.Url, remotecommand.StreamOptions{Stdin: strings.NewReader("typed\n"), Stdout: &stdout, Tty: tty})
		var exit utilexec.ExitError
		if !errors.As(err, &exit) || exit.ExitStatus() != 9 {
			t.Errorf("tty %t: %v, want exit status 9", tty, err)
		}
		if !strings.Contains(stdout.String(), "stdin typed") {
			t.Errorf("tty %t: stdout %q", tty, stdout.String())
		}
	}
}

func TestAttach(t *testing.T) {
	n := newNode(t)
	config := n.config("stdin", "exit=0")
	config.Stdin, config.StdinOnce = true, true
	id := n.start(n.sandbox("pod"), config)
	r, err := n.runtime.Attach(n.ctx(), &runtimeapi.AttachRequest{ContainerId: id, Stdin: true, Stdout: true})
	if err != nil {
		t.Fatalf("Attach: %v", err)
	}
	var stdout bytes.Buffer
	err = n.stream(r.Url, remotecommand.StreamOptions{Stdin: strings.NewReader("typed\n"), Stdout: &stdout})
	if err != nil {
		t.Errorf("attach: %v", err)
	}
	if stdout.String() != "stdin typed\n" {
		t.Errorf("attached stdout %q", stdout.String())
	}
	expect(t, n.output(id), "stdin typed")
}

func TestTerminal(t *testing.T) {
	n := newNode(t)
	config := n.config("stdin", "exit=0")
	config.Stdin, config.Tty = true, true
	id := n.start(n.sandbox("pod"), config)
	r, err := n.runtime.Attach(n.ctx(), &runtimeapi.AttachRequest{ContainerId: id, Stdin: true, Stdout: true, Tty: true})
	if err != nil {
		t.Fatalf("Attach: %v", err)
	}
	var stdout bytes.Buffer
	if err := n.stream(r.Url, remotecommand.StreamOptions{Stdin: strings.NewReader("typed\n"), Stdout: &stdout, Tty: true}); err != nil {
		t.Errorf("attach: %v", err)
	}
	// A terminal ends lines with a carriage return too.
	if !strings.HasSuffix(stdout.String(), "stdin typed\r\n") {
		t.Errorf("attached terminal shows %q", stdout.String())
	}
	n.ended(id)
}
