// Command cluster starts a real Kubernetes cluster with simulated GPUs on this
// machine, for tests and demonstrations. It is at the same time every program
// that runs in a node: node process, container runtime, plugins, workloads.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/dramigrate/dramigrate/test/cluster/internal/cri"
	"github.com/dramigrate/dramigrate/test/cluster/internal/deviceplugin"
	"github.com/dramigrate/dramigrate/test/cluster/internal/dradriver"
	"github.com/dramigrate/dramigrate/test/cluster/internal/node"
	"github.com/dramigrate/dramigrate/test/cluster/internal/pause"
	"github.com/dramigrate/dramigrate/test/cluster/internal/simnode"
	"github.com/dramigrate/dramigrate/test/cluster/internal/smi"
)

// command is a subcommand; ctx ends at SIGINT or SIGTERM.
type command func(ctx context.Context, args []string, stdout, stderr io.Writer) error

// commands are for people.
func commands() map[string]command {
	return map[string]command{
		"up":     up,
		"down":   down,
		"status": status,
		"pin":    pin,
	}
}

// programs are started by the cluster only, by their name as first argument or
// as the name under which this file is executed.
func programs() map[string]command {
	return map[string]command{
		node.InitCommand:        node.RunInit,
		"cri":                   cri.Run,
		"cri-shim":              cri.Shim,
		"nvidia-device-plugin":  deviceplugin.NVIDIA().Run,
		"amdgpu-device-plugin":  deviceplugin.AMD().Run,
		"dra-driver-nvidia-gpu": dradriver.NVIDIA().Run,
		"amd-gpu-kubeletplugin": dradriver.AMD().Run,
		"nvidia-smi":            smi.Format(smi.NVIDIA).Run,
		"rocm-smi":              smi.Format(smi.AMD).Run,
		"pause":                 pause.Run,
		simnode.Command:         simnode.Run,
	}
}

const usage = `Starts a real Kubernetes cluster with simulated GPUs on this machine.

  up      start a cluster and leave it running
  status  print what runs
  down    end the cluster and remove its folder
  pin     generate the module files of another Kubernetes version

Each takes -h.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := dispatch(ctx, os.Args, os.Stdout, os.Stderr)
	stop()
	os.Exit(exitCode(err, os.Stderr))
}

func dispatch(ctx context.Context, argv []string, stdout, stderr io.Writer) error {
	if run, ok := programs()[filepath.Base(argv[0])]; ok {
		return run(ctx, argv[1:], stdout, stderr)
	}
	if len(argv) < 2 {
		fmt.Fprint(stderr, usage)
		return errUsage
	}
	for _, table := range []map[string]command{commands(), programs()} {
		if run, ok := table[argv[1]]; ok {
			return run(ctx, argv[2:], stdout, stderr)
		}
	}
	fmt.Fprint(stderr, usage)
	if argv[1] == "help" || argv[1] == "-h" || argv[1] == "--help" {
		return nil
	}
	return fmt.Errorf("%w: unknown command %q", errUsage, argv[1])
}

var errUsage = errors.New("usage")

// exitCode prints the error, unless it is no more than an exit code.
func exitCode(err error, stderr io.Writer) int {
	var coded interface{ ExitCode() int }
	switch {
	case err == nil:
		return 0
	case errors.As(err, &coded):
		return coded.ExitCode()
	case errors.Is(err, errUsage):
		fmt.Fprintln(stderr, err)
		return 2
	default:
		fmt.Fprintln(stderr, "error:", err)
		return 1
	}
}
