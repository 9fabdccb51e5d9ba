package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
	"github.com/dramigrate/dramigrate/test/cluster/internal/build"
)

// folderFlags are the flags by which people name a cluster.
type folderFlags struct {
	dir, name string
}

func (f *folderFlags) add(flags *flag.FlagSet) {
	flags.StringVar(&f.dir, "dir", "", "state `folder` of the cluster (default: one in the cache, by --name)")
	flags.StringVar(&f.name, "name", "default", "`name` of the cluster")
}

func (f *folderFlags) path() (string, error) {
	if f.dir != "" {
		return filepath.Abs(f.dir)
	}
	if filepath.Base(f.name) != f.name || f.name == "." || f.name == ".." {
		return "", fmt.Errorf("--name %q: a plain name is needed", f.name)
	}
	cache, err := build.CacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "clusters", f.name), nil
}

func parse(flags *flag.FlagSet, args []string, stderr io.Writer) error {
	flags.SetOutput(stderr)
	if err := flags.Parse(args); err != nil {
		return errors.Join(errUsage, err)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%w: unexpected argument %q", errUsage, flags.Arg(0))
	}
	return nil
}

func up(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var folder folderFlags
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	folder.add(flags)
	version := flags.String("version", cluster.DefaultVersion, "Kubernetes `version`")
	quick := flags.Bool("quick-kubelet", false, "shorten the kubelet's waits for a gone plugin (20 s) and a gone driver (3 s)")
	simulated := flags.Bool("simulated", false, "simulate the nodes: needs neither Linux nor root, shows nothing of a kubelet")
	if err := parse(flags, args, stderr); err != nil {
		return err
	}
	dir, err := folder.path()
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	o := cluster.Options{
		Dir: dir, Version: *version, Detached: true, Program: program, Log: stderr,
		Nodes: defaultNodes(),
	}
	if *quick {
		o.Kubelet = cluster.KubeletQuick
	}
	if *simulated {
		o.Nodes, o.SimNodes = nil, o.Nodes
	}
	c, err := cluster.Start(ctx, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "export KUBECONFIG=%s\n", c.Kubeconfig())
	return nil
}

// defaultNodes are two pools as a managed service would label them.
func defaultNodes() []cluster.NodeSpec {
	spec := func(name, pool string) cluster.NodeSpec {
		return cluster.NodeSpec{
			Name: name,
			Labels: map[string]string{
				"alpha.eksctl.io/nodegroup-name": pool,
				"nvidia.com/gpu.present":         "true",
			},
			Taints: []corev1.Taint{{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}},
			GPUs:   4,
		}
	}
	return []cluster.NodeSpec{spec("gpu-a-1", "gpu-a"), spec("gpu-a-2", "gpu-a"), spec("gpu-b-1", "gpu-b")}
}

func down(_ context.Context, args []string, stdout, stderr io.Writer) error {
	var folder folderFlags
	flags := flag.NewFlagSet("down", flag.ContinueOnError)
	folder.add(flags)
	if err := parse(flags, args, stderr); err != nil {
		return err
	}
	dir, err := folder.path()
	if err != nil {
		return err
	}
	err = cluster.Down(dir)
	if errors.Is(err, cluster.ErrNoCluster) {
		fmt.Fprintf(stdout, "no cluster runs in %s\n", dir)
		return nil
	}
	if err == nil {
		fmt.Fprintf(stdout, "ended the cluster in %s\n", dir)
	}
	return err
}

// statusTimeout is how long the API server may take to answer `status`.
const statusTimeout = 10 * time.Second

func status(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var folder folderFlags
	flags := flag.NewFlagSet("status", flag.ContinueOnError)
	folder.add(flags)
	if err := parse(flags, args, stderr); err != nil {
		return err
	}
	dir, err := folder.path()
	if err != nil {
		return err
	}
	s, err := cluster.Load(dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "Kubernetes %s at %s\nfolder     %s\nKUBECONFIG %s\n\n", s.Version, s.URL, dir, s.Kubeconfig)
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PROGRAM\tPID\tRUNS")
	for _, p := range s.Processes {
		fmt.Fprintf(table, "%s\t%d\t%t\n", p.Name, p.PID, p.Alive())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(stdout)
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	return printNodes(ctx, s, stdout)
}

func printNodes(ctx context.Context, s cluster.State, out io.Writer) error {
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NODE\tREADY\tADDRESS\tKUBELET\tALLOCATABLE nvidia.com/gpu")
	for _, n := range nodes.Items {
		ready, addr, gpus := "Unknown", "", "absent"
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				ready = string(c.Status)
			}
		}
		for _, a := range n.Status.Addresses {
			if a.Type == corev1.NodeInternalIP {
				addr = a.Address
			}
		}
		if q, ok := n.Status.Allocatable["nvidia.com/gpu"]; ok {
			gpus = q.String()
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", n.Name, ready, addr, n.Status.NodeInfo.KubeletVersion, gpus)
	}
	return table.Flush()
}

// pin writes the module files of a version beside those that are there.
func pin(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("%w: pin VERSION, for instance v1.36.3", errUsage)
	}
	version := args[0]
	root, err := build.ModuleDir(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "downloading the modules of Kubernetes %s\n", version)
	files, err := build.Pin(ctx, version)
	if err != nil {
		return err
	}
	dir := filepath.Join(root, "versions", version)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range map[string][]byte{"go.mod.txt": files.GoMod, "go.sum.txt": files.GoSum} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintf(stdout, "wrote %s\n", dir)
	return nil
}
