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
	// showPlans shows every plan, also of commands whose plan has been seen or whose
	// steps are those of another, turned round.
	showPlans bool
}

// stopWithin is how long the tool may take to stop at a safe point after a Ctrl-C.
const stopWithin = 30 * time.Second

// run types a command and shows what comes.
func (t tool) run(ctx context.Context, args ...string) error { return t.exec(ctx, t.out, args...) }

// runBriefly is run without the plan, which a command prints to stdout before it runs.
func (t tool) runBriefly(ctx context.Context, args ...string) error {
	if t.showPlans {
		return t.run(ctx, args...)
	}
	return t.exec(ctx, io.Discard, args...)
}

func (t tool) exec(ctx context.Context, stdout io.Writer, args ...string) error {
	_, _ = fmt.Fprintf(t.out, "\n$ dramigrate %s\n", strings.Join(args, " "))
	if stdout == io.Discard {
		_, _ = fmt.Fprintln(t.out, "  (prints its plan first, which is left out here; --plans shows it)")
	}
	cmd := exec.CommandContext(ctx, t.binary, args...)
	cmd.Dir = t.dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+t.kubeconfig)
	cmd.Stdout, cmd.Stderr = stdout, t.err
	// A Ctrl-C at a terminal has reached the tool already, and a second signal ends it
	// at once. That does no harm here: its cluster ends too.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopWithin
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("dramigrate %s: %w", args[0], err)
	}
	return nil
}
