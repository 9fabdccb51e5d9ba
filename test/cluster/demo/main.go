// Command demo shows dramigrate's main job on a real control plane and real kubelets
// with simulated GPUs: one pool of two moves from the device plugin to DRA and comes
// back, and nothing else on the cluster changes. It checks what it claims and exits
// with an error if the cluster is not as it should be.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
	"github.com/dramigrate/dramigrate/test/cluster/e2e"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

func main() {
	// Ctrl-C ends the context; the cluster is stopped on the way out. The second one
	// ends the process, and the cluster with it.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	isInterrupted := ctx.Err() != nil
	stop()
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case isInterrupted:
		fmt.Fprintln(os.Stderr, "Interrupted; nothing of the cluster is left.")
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "The demo failed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	binary := flags.String("dramigrate", "", "`path` of the dramigrate program; built if it is not given")
	plans := flags.Bool("plans", false, "show the plan of every command, not of prepare and apply alone")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "dramigrate-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if *binary == "" {
		if *binary, err = e2e.BuildTool(ctx, dir); err != nil {
			return err
		}
	} else if *binary, err = filepath.Abs(*binary); err != nil {
		return err
	}

	d := &demo{out: stdout, began: time.Now(), dir: dir}
	d.heading("Starting a Kubernetes %s cluster on this machine: three nodes with two simulated GPUs each", cluster.DefaultVersion)
	d.bench, err = e2e.NewBench(ctx, e2e.BenchOptions{
		Binary: *binary,
		Plugin: manifests.PluginStatic(),
		Nodes: []cluster.NodeSpec{
			e2e.GPUNode("gpu-a-1", poolA, gpusPerNode), e2e.GPUNode("gpu-a-2", poolA, gpusPerNode),
			e2e.GPUNode("gpu-b-1", poolB, gpusPerNode),
		},
		Dir: dir, Log: stderr,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.bench.Stop()) }()
	d.tool = tool{binary: *binary, kubeconfig: d.bench.Kubeconfig(), dir: dir, out: stdout, err: stderr, showPlans: *plans}
	d.took("cluster and device plugin started", d.began)
	return d.story(ctx)
}
