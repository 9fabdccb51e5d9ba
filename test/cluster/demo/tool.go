package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// tool is dramigrate as a person runs it: with KUBECONFIG set, and in a folder in
// which the driver's manifests are.
type tool struct {
	binary, kubeconfig, dir string
	out, err                io.Writer
}

// stopWithin is how long the tool may take to stop at a safe point after a Ctrl-C.
const stopWithin = 30 * time.Second

// run types a command and shows what comes.
func (t tool) run(ctx context.Context, args ...string) error { return t.exec(ctx, t.out, args...) }

// runPlanSeen is run for a command whose plan has just been shown: what it prints to
// stdout, the plan, is left out.
func (t tool) runPlanSeen(ctx context.Context, args ...string) error {
	return t.exec(ctx, io.Discard, args...)
}

func (t tool) exec(ctx context.Context, stdout io.Writer, args ...string) error {
	_, _ = fmt.Fprintf(t.out, "\n$ dramigrate %s\n", strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, t.binary, args...)
	cmd.Dir = t.dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+t.kubeconfig)
	cmd.Stdout, cmd.Stderr = stdout, t.err
	// A Ctrl-C at the terminal reaches the tool as well, which stops at a safe point.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopWithin
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("dramigrate %s: %w", args[0], err)
	}
	return nil
}
