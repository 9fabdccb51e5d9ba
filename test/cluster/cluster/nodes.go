package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dramigrate/dramigrate/test/cluster/internal/build"
	"github.com/dramigrate/dramigrate/test/cluster/internal/dradriver"
	"github.com/dramigrate/dramigrate/test/cluster/internal/gpu"
	"github.com/dramigrate/dramigrate/test/cluster/internal/loopback"
	"github.com/dramigrate/dramigrate/test/cluster/internal/node"
	"github.com/dramigrate/dramigrate/test/cluster/internal/process"
	"github.com/dramigrate/dramigrate/test/cluster/internal/simnode"
)

// GPUSet is the simulated GPUs of a node.
type GPUSet = gpu.Set

// GPU is one of them.
type GPU = gpu.GPU

// Fault is a way in which a node's DRA driver is wired wrong on purpose.
type Fault = dradriver.Fault

// The faults that a driver can be made to show.
const (
	FaultNone          = dradriver.FaultNone
	FaultWrongDevice   = dradriver.FaultWrongDevice
	FaultMissingDevice = dradriver.FaultMissingDevice
	FaultCrashLoop     = dradriver.FaultCrashLoop
	FaultPrepareError  = dradriver.FaultPrepareError
)

const kubeletPort = 10250

func nodeDir(dir, name string) node.Dir { return node.Dir(filepath.Join(dir, "nodes", name)) }

func (c *Cluster) prepareNodes(p programs) error {
	for i, spec := range c.options.Nodes {
		addr, err := c.block.Node(i)
		if err != nil {
			return err
		}
		port, err := loopback.Port(addr, kubeletPort)
		if err != nil {
			return fmt.Errorf("node/%s: %w", spec.Name, err)
		}
		n, err := node.Prepare(nodeDir(c.dir, spec.Name), node.Spec{
			Name: spec.Name, Taints: spec.Taints, GPUs: gpu.NewSet(spec.Name, spec.GPUs),
			Addr: addr, Port: port, StatusInterval: c.options.StatusInterval,
			Images: c.options.Images, CommandDir: p.commandDir,
			ClusterDir: c.dir, Program: p.cluster, Kubelet: p.kubelets[spec.Name],
		}, c.plane)
		if err != nil {
			return err
		}
		c.nodes = append(c.nodes, n)
	}
	return nil
}

func (c *Cluster) startNodes(p programs) error {
	var files []*os.File
	if lock := c.block.Lock(); lock != nil {
		files = append(files, lock.File)
	}
	for _, n := range c.nodes {
		if err := errors.Join(n.Start(c.spawner, files...), c.saveState()); err != nil {
			return err
		}
	}
	if len(c.options.SimNodes) == 0 {
		return nil
	}
	return c.startSimNodes(p)
}

// startSimNodes starts one process for all simulated nodes.
func (c *Cluster) startSimNodes(p programs) error {
	config := simnode.Config{
		Kubeconfig:     c.plane.AdminKubeconfig(),
		KubeletVersion: c.options.Version,
	}
	if c.options.Kubelet == KubeletQuick {
		// The same as in the quick build of the real one.
		config.EndpointGrace.Duration = build.QuickEndpointGrace
		config.WipeDelay.Duration = build.QuickWipingDelay
	}
	for _, spec := range c.options.SimNodes {
		config.Nodes = append(config.Nodes, simnode.Node{
			Name: spec.Name, Labels: spec.Labels, Taints: spec.Taints, GPUs: gpu.NewSet(spec.Name, spec.GPUs),
		})
	}
	data, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return err
	}
	dir := filepath.Join(c.dir, "sim-nodes")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	file := filepath.Join(dir, "config.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return err
	}
	c.sim, err = c.spawner.Start(process.Spec{
		Name: simnode.Command, Path: p.cluster, Args: []string{simnode.Command, "--config", file},
		Dir: dir, LogFile: filepath.Join(dir, "sim-nodes.log"),
	})
	return errors.Join(err, c.saveState())
}

// GPUs returns a node's simulated GPUs, real or simulated node; an empty set for
// an unknown name.
func (c *Cluster) GPUs(name string) GPUSet {
	for _, list := range [][]NodeSpec{c.options.Nodes, c.options.SimNodes} {
		for _, spec := range list {
			if spec.Name == name {
				return gpu.NewSet(spec.Name, spec.GPUs)
			}
		}
	}
	return GPUSet{}
}

func (c *Cluster) control(name string) (*node.Control, error) {
	for _, n := range c.nodes {
		if n.Name == name {
			return node.NewControl(name, n.Dir()), nil
		}
	}
	return nil, fmt.Errorf("node/%s: the cluster has no real node of this name", name)
}

// StopKubelet ends a node's kubelet. Containers go on.
func (c *Cluster) StopKubelet(ctx context.Context, name string) error {
	control, err := c.control(name)
	if err != nil {
		return err
	}
	return control.StopKubelet(ctx)
}

// StartKubelet starts a node's stopped kubelet.
func (c *Cluster) StartKubelet(ctx context.Context, name string) error {
	control, err := c.control(name)
	if err != nil {
		return err
	}
	return control.StartKubelet(ctx)
}

// RestartKubelet ends a node's kubelet process and starts another. Containers
// and the CRI server go on.
func (c *Cluster) RestartKubelet(ctx context.Context, name string) error {
	if err := c.StopKubelet(ctx, name); err != nil {
		return err
	}
	return c.StartKubelet(ctx, name)
}

// SetDriverFault makes a node's DRA driver show a fault from its next start or
// prepare on; FaultNone ends it.
func (c *Cluster) SetDriverFault(name string, f Fault) error {
	for _, n := range c.nodes {
		if n.Name != name {
			continue
		}
		if err := dradriver.WriteFault(n.Dir().FaultFile(), f); err != nil {
			return fmt.Errorf("node/%s: %w", name, err)
		}
		return nil
	}
	return fmt.Errorf("node/%s: the cluster has no real node of this name", name)
}

// KubeletDir is what a node sees as /var/lib/kubelet, as a path of the host.
func (c *Cluster) KubeletDir(name string) string { return nodeDir(c.dir, name).Kubelet() }
