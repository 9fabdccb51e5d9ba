package build

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// progressInterval is how often a running build says that it is alive.
const progressInterval = 10 * time.Second

// goEnv is the environment of every build: without cgo, so that the programs
// are static and start in any mount namespace, and without the flags and
// workspace of whoever calls.
func goEnv() []string {
	return append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0")
}

// goTool finds the go command: in PATH, or where the running Go toolchain says.
func goTool() (string, error) {
	path, err := exec.LookPath("go")
	if err == nil {
		return path, nil
	}
	if root := os.Getenv("GOROOT"); root != "" {
		path := filepath.Join(root, "bin", "go")
		if _, statErr := os.Stat(path); statErr == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("the Go toolchain is needed to build the cluster's programs: %w", err)
}

// goOutput runs the go command in dir and returns its trimmed output.
func goOutput(ctx context.Context, dir string, args ...string) (string, error) {
	return goRun(ctx, dir, goEnv(), args...)
}

// goWorkspaceOutput is goOutput within the caller's workspace and flags.
func goWorkspaceOutput(ctx context.Context, dir string, args ...string) (string, error) {
	return goRun(ctx, dir, append(os.Environ(), "CGO_ENABLED=0"), args...)
}

func goRun(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	tool, err := goTool()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Dir = dir
	cmd.Env = env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return string(bytes.TrimSpace(out)), nil
}

// goBuild runs `go build -v` and reports, under label, how many packages have
// been compiled and how long it has taken.
func (b Builder) goBuild(ctx context.Context, dir, label string, args []string) error {
	tool, err := goTool()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Dir = dir
	cmd.Env = goEnv()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	var compiled atomic.Int64
	stop := make(chan struct{})
	ticked := make(chan struct{})
	go func() {
		defer close(ticked)
		tick := time.NewTicker(progressInterval)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				b.logf("%s: %d packages compiled, %s", label, compiled.Load(), time.Since(start).Round(time.Second))
			}
		}
	}()
	messages := buildMessages(bufio.NewScanner(stderr), &compiled)
	err = cmd.Wait()
	close(stop)
	<-ticked
	if err != nil {
		return errors.Join(fmt.Errorf("go build: %w", err), errors.New(strings.Join(messages, "\n")))
	}
	b.logf("%s: done, %d packages compiled, %s", label, compiled.Load(), time.Since(start).Round(time.Second))
	return nil
}

// buildMessages reads the output of `go build -v` to its end. Lines that are
// the name of a package are counted, all others returned.
func buildMessages(lines *bufio.Scanner, compiled *atomic.Int64) []string {
	var messages []string
	for lines.Scan() {
		line := lines.Text()
		if line == "" || strings.ContainsAny(line, " \t:#") {
			messages = append(messages, line)
			continue
		}
		compiled.Add(1)
	}
	return messages
}
