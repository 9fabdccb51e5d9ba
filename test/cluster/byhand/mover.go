package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dramigrate/dramigrate/test/cluster/e2e"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

// mover moves the pool from the plugin to DRA and back.
type mover interface {
	name() string
	forward(ctx context.Context) error
	back(ctx context.Context) error
	// typed is how many commands a person has typed so far.
	typed() int
}

// script is docs/by-hand/by-hand.sh.
type script struct {
	path string
	env  []string
	out  io.Writer

	mu    sync.Mutex
	count int
	// complaint is kubectl's last error message.
	complaint string
}

// newScript readies the script for a cluster, with kubectl going through a proxy.
func newScript(path, kubectl, kubeconfig string, bench *e2e.Bench, dir string, out io.Writer) (*script, error) {
	bin := filepath.Join(dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return nil, err
	}
	if err := os.Symlink(kubectl, filepath.Join(bin, "kubectl")); err != nil {
		return nil, err
	}
	class, err := manifests.YAML(manifests.DeviceClass())
	if err != nil {
		return nil, err
	}
	classFile := filepath.Join(dir, "deviceclass.yaml")
	if err := os.WriteFile(classFile, class, 0o644); err != nil {
		return nil, err
	}
	return &script{path: path, out: out, env: append(os.Environ(),
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
		"KUBECONFIG="+kubeconfig, "HOME="+dir,
		"POOL="+e2e.PoolLabel+"="+poolName, "WORKLOAD="+workload,
		"DRIVER_DIR="+bench.DriverDir, "DEVICE_CLASS="+classFile,
	)}, nil
}

func (s *script) name() string                      { return "by hand" }
func (s *script) forward(ctx context.Context) error { return s.run(ctx, "forward") }
func (s *script) back(ctx context.Context) error    { return s.run(ctx, "back") }

// run runs the script in one of its modes, with extra variables.
func (s *script) run(ctx context.Context, mode string, env ...string) error {
	cmd := exec.CommandContext(ctx, "bash", s.path, mode)
	cmd.Env = slices.Concat(s.env, env)
	// A Ctrl-C ends bash and the kubectl that it waits for.
	isolate(cmd)
	out := &lines{do: s.line}
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	out.flush()
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return fmt.Errorf("by-hand.sh %s: %w: %s", mode, err, s.complaint)
	}
	return nil
}

// line passes a line of the script on and counts the commands, which start with "$ ".
func (s *script) line(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasPrefix(text, "$ ") {
		s.count++
	}
	if message, ok := strings.CutPrefix(text, "error: "); ok {
		// What follows repeats a line for each pod.
		s.complaint, _, _ = strings.Cut(message, " due to error")
	}
	_, _ = fmt.Fprintf(s.out, "    %s\n", text)
}

func (s *script) typed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// lines hands what is written to it on, line by line.
type lines struct {
	mu   sync.Mutex
	rest bytes.Buffer
	do   func(string)
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest.Write(p)
	for {
		text, err := l.rest.ReadString('\n')
		if err != nil {
			l.rest.Reset()
			l.rest.WriteString(text)
			return len(p), nil
		}
		l.do(strings.TrimSuffix(text, "\n"))
	}
}

func (l *lines) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	scan := bufio.NewScanner(&l.rest)
	for scan.Scan() {
		l.do(scan.Text())
	}
}

// tool is dramigrate.
type tool struct {
	e2e.Tool
	driverDir string
	grace     time.Duration
	out       io.Writer
	count     int
}

func (t *tool) name() string { return "dramigrate" }
func (t *tool) typed() int   { return t.count }

func (t *tool) forward(ctx context.Context) error {
	if err := t.run(ctx, "prepare", "--driver-manifests", t.driverDir, "--plugin-rollout", "on-delete", "--yes"); err != nil {
		return err
	}
	return t.run(ctx, "apply", poolName, "--helper-image", e2e.HelperImage, "--kubelet-grace", t.grace.String(), "--soak", "5s", "--yes")
}

func (t *tool) back(ctx context.Context) error {
	if err := t.run(ctx, "rollback", poolName, "--helper-image", e2e.HelperImage, "--yes"); err != nil {
		return err
	}
	return t.run(ctx, "unprepare", "--yes")
}

func (t *tool) run(ctx context.Context, args ...string) error {
	t.count++
	_, _ = fmt.Fprintf(t.out, "\n    $ dramigrate %s\n", strings.Join(args, " "))
	r := t.Run(ctx, args...)
	for line := range strings.Lines(r.Stdout + r.Stderr) {
		_, _ = fmt.Fprintf(t.out, "    %s\n", strings.TrimSuffix(line, "\n"))
	}
	if r.Code != 0 {
		return fmt.Errorf("dramigrate %s: exit code %d", args[0], r.Code)
	}
	return nil
}
