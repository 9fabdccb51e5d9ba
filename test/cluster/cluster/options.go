// Package cluster starts real Kubernetes clusters for tests and demonstrations:
// etcd, API server, controller manager, scheduler and kubelets as released, over
// a small CRI server, with simulated GPUs.
//
// A cluster uses loopback addresses of its own, writes to its own folder and to
// the cache of built programs, and leaves nothing behind when it is stopped.
package cluster

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dramigrate/dramigrate/test/cluster/internal/loopback"
	"github.com/dramigrate/dramigrate/test/cluster/versions"
)

// DefaultVersion is the Kubernetes version of a cluster that asks for none.
const DefaultVersion = versions.Default

// Kubelet chooses between builds of the same kubelet.
type Kubelet string

const (
	// KubeletStock is the kubelet as released.
	KubeletStock Kubelet = ""
	// KubeletQuick differs in two constants: a stopped device plugin's resource
	// leaves the capacity after 20 s rather than 5 min, and a gone DRA driver's
	// ResourceSlices are removed after 3 s rather than 30 s.
	KubeletQuick Kubelet = "quick"
)

func (k Kubelet) validate() error {
	switch k {
	case KubeletStock, KubeletQuick:
		return nil
	default:
		return fmt.Errorf("unknown kubelet %q: want %q or %q", k, KubeletStock, KubeletQuick)
	}
}

// Options say what a cluster is.
type Options struct {
	// Dir is the state folder; empty means a new temporary one, removed by Stop.
	Dir string
	// Version of Kubernetes, for instance "v1.36.3"; empty means DefaultVersion.
	Version string
	// Kubelet of all real nodes that do not name one.
	Kubelet Kubelet
	// Nodes have real kubelets; they need Linux and root.
	Nodes []NodeSpec
	// SimNodes are simulated. They show nothing of a kubelet's behaviour.
	SimNodes []NodeSpec
	// StatusInterval is how often kubelets report their node's status; 0 means
	// 1 s, ten times as often as a kubelet does by default.
	StatusInterval time.Duration
	// Commands are extra commands that containers can run: name to path of a
	// static binary, which is copied.
	Commands map[string]string
	// Images are extra images: repository to command. The shipped ones are in
	// DefaultImages.
	Images map[string]string
	// Detached lets the cluster go on when this process ends. Otherwise it ends
	// with this process, however that ends (on Linux).
	Detached bool
	// Cache is where programs are built; empty means $DRAMIGRATE_CACHE, or
	// dramigrate in the user's cache folder.
	Cache string
	// Program is the compiled program of this module; empty means that it is built.
	Program string
	// ControlPlane are more flags of API server, controller manager and scheduler, such
	// as "--emulated-version=1.36".
	ControlPlane []string
	// Log receives progress.
	Log io.Writer
}

// NodeSpec is one node.
type NodeSpec struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	Taints []corev1.Taint    `json:"taints,omitempty"`
	// GPUs is how many simulated GPUs the node has.
	GPUs int `json:"gpus,omitempty"`
	// KubeletVersion is the Kubernetes version of a real node's kubelet, which may be
	// older than the control plane; empty means the cluster's.
	KubeletVersion string `json:"kubeletVersion,omitempty"`
	// Kubelet is the build of a real node's kubelet; empty means the cluster's.
	Kubelet Kubelet `json:"kubelet,omitempty"`
}

// DefaultImages are the images that every cluster can run and the shipped
// commands that stand for them. Tags and digests do not matter.
func DefaultImages() map[string]string {
	return map[string]string{
		"nvcr.io/nvidia/k8s-device-plugin":                        "nvidia-device-plugin",
		"registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu": "dra-driver-nvidia-gpu",
		"nvcr.io/nvidia/cuda":                                     "nvidia-smi",
		"docker.io/rocm/k8s-device-plugin":                        "amdgpu-device-plugin",
		"docker.io/rocm/k8s-gpu-dra-driver":                       "amd-gpu-kubeletplugin",
		"docker.io/rocm/rocm-terminal":                            "rocm-smi",
		"registry.k8s.io/pause":                                   "pause",
		"ghcr.io/dramigrate/dramigrate":                           "dramigrate",
	}
}

// shippedCommands are names under which this module's program is in every container.
func shippedCommands() []string {
	return []string{
		"nvidia-device-plugin", "dra-driver-nvidia-gpu", "nvidia-smi",
		"amdgpu-device-plugin", "amd-gpu-kubeletplugin", "rocm-smi", "pause",
	}
}

func (o *Options) complete() error {
	if o.Version == "" {
		o.Version = DefaultVersion
	}
	if o.StatusInterval == 0 {
		o.StatusInterval = time.Second
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	images := DefaultImages()
	maps.Copy(images, o.Images)
	o.Images = images
	if err := o.Kubelet.validate(); err != nil {
		return err
	}
	if o.StatusInterval < 0 {
		return fmt.Errorf("status interval %s is negative", o.StatusInterval)
	}
	if len(o.Nodes) > loopback.MaxNodes {
		return fmt.Errorf("%d real nodes: at most %d are possible", len(o.Nodes), loopback.MaxNodes)
	}
	return o.validateNodes()
}

func (o *Options) validateNodes() error {
	seen := map[string]bool{}
	for _, list := range [][]NodeSpec{o.Nodes, o.SimNodes} {
		for _, n := range list {
			if problems := validation.IsDNS1123Subdomain(n.Name); len(problems) > 0 {
				return fmt.Errorf("node name %q: %s", n.Name, problems[0])
			}
			if seen[n.Name] {
				return fmt.Errorf("node/%s: %w", n.Name, errors.New("two nodes have this name"))
			}
			if n.GPUs < 0 {
				return fmt.Errorf("node/%s: %d GPUs", n.Name, n.GPUs)
			}
			if err := n.Kubelet.validate(); err != nil {
				return fmt.Errorf("node/%s: %w", n.Name, err)
			}
			seen[n.Name] = true
		}
	}
	return nil
}
