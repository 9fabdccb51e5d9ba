// Package smi is the workload of the test cluster: a program such as `nvidia-smi` that
// lists the GPUs which its container was given.
package smi

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/dramigrate/dramigrate/test/cluster/internal/gpu"
)

// exitNoDevices is nvidia-smi's exit code when its query finds no device.
const exitNoDevices = 6

// An ExitError asks for an exit code of its own. Its text was already printed.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// ExitCode is the code with which the process has to end.
func (e *ExitError) ExitCode() int { return e.Code }

// A Format writes a line for the GPU at a position among those that are visible.
type Format func(w io.Writer, i int, g gpu.GPU) error

// NVIDIA is the form of `nvidia-smi -L`.
func NVIDIA(w io.Writer, i int, g gpu.GPU) error {
	_, err := fmt.Fprintf(w, "GPU %d: %s (UUID: %s)\n", i, g.ProductName, g.UUID)
	return err
}

// AMD is the form of `rocm-smi --showbus`.
func AMD(w io.Writer, i int, g gpu.GPU) error {
	_, err := fmt.Fprintf(w, "GPU[%d]\t\t: PCI Bus: %s\n", i, g.PCIBusID)
	return err
}

// Run prints the visible GPUs, one a line.
//
// With -L it then returns. Without arguments it stands for a program that uses
// its GPUs: it goes on until ctx ends, and that is a success. Without a visible
// GPU it prints what nvidia-smi prints and returns an [ExitError] in either
// case, so that a workload which was cheated of its GPU does not look healthy.
func (f Format) Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	return f.run(ctx, args, gpu.VisibleDir, stdout, stderr)
}

func (f Format) run(ctx context.Context, args []string, visible string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("nvidia-smi", flag.ContinueOnError)
	flags.SetOutput(stderr)
	listOnly := flags.Bool("L", false, "list the GPUs and exit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return errors.New("nvidia-smi: takes no arguments but -L")
	}
	found, err := gpu.Visible(visible)
	if err != nil {
		return fmt.Errorf("nvidia-smi: %w", err)
	}
	if len(found) == 0 {
		if _, err := fmt.Fprintln(stdout, "No devices were found"); err != nil {
			return fmt.Errorf("nvidia-smi: %w", err)
		}
		return &ExitError{Code: exitNoDevices}
	}
	for i, g := range found {
		// The number is the position among the visible GPUs, as in a container.
		if err := f(stdout, i, g); err != nil {
			return fmt.Errorf("nvidia-smi: %w", err)
		}
	}
	if !*listOnly {
		<-ctx.Done()
	}
	return nil
}
