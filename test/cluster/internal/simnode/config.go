// Package simnode simulates nodes for batches that are too large for real ones:
// Node objects with heartbeats whose pods run and end as records, and on which
// the pods of the device plugin and of the DRA driver have the effects that they
// have through a kubelet.
//
// There is no kubelet, no runtime and no process: no logs, no exec, no probes,
// no device that a container could see. Nothing that is claimed of a kubelet is
// ever proven here, and a pod that has to look at its devices (a canary, a node
// probe) cannot do its work here. The nodes carry the label type=simulated.
package simnode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/test/cluster/internal/gpu"
)

// Command is the hidden subcommand that runs all simulated nodes of a cluster:
//
//	sim-nodes --config FILE
const Command = "sim-nodes"

// Config is the content of its file.
type Config struct {
	// Kubeconfig is the path of an administrator's kubeconfig.
	Kubeconfig string `json:"kubeconfig"`
	// KubeletVersion is what the nodes report; empty means the API server's version.
	KubeletVersion string `json:"kubeletVersion,omitempty"`
	// WipeDelay is the time from the driver's end to the removal of its slices,
	// EndpointGrace that from the plugin's end to capacity 0. Zero means the
	// kubelet's constant.
	WipeDelay     metav1.Duration `json:"wipeDelay,omitzero"`
	EndpointGrace metav1.Duration `json:"endpointGrace,omitzero"`
	Nodes         []Node          `json:"nodes"`
}

// Node is one simulated node.
type Node struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	Taints []corev1.Taint    `json:"taints,omitempty"`
	GPUs   gpu.Set           `json:"gpus"`
}

// LoadConfig reads and validates a config file.
func LoadConfig(path string) (Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("simulated nodes: %w", err)
	}
	var c Config
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return Config{}, fmt.Errorf("simulated nodes: %s: %w", path, err)
	}
	for _, n := range c.Nodes {
		if n.Name == "" {
			return Config{}, fmt.Errorf("simulated nodes: %s: %w", path, errors.New("a node has no name"))
		}
	}
	return c, nil
}

// timings are how long things take on a node. Where the kubelet has a constant it
// is that one; the others are about what was measured on kubelets with little to do.
type timings struct {
	podStart      time.Duration // from the binding of a pod to its running
	podStop       time.Duration // from the deletion of a pod to its end, within its grace
	jobRun        time.Duration // how long a Job's pod runs
	nodeStatus    time.Duration // from a change to the status that tells it
	publish       time.Duration // from the driver's start to its slices
	wipe          time.Duration // from the driver's end to the removal of its slices
	endpointGrace time.Duration // from the plugin's end to capacity 0
}

// timings of the config's nodes, with the kubelet's constants (Kubernetes
// 1.37, pkg/kubelet/cm/dra/manager.go, defaultWipingDelay, and
// pkg/kubelet/cm/devicemanager/types.go, endpointStopGracePeriod) unless it says
// otherwise.
func (c Config) timings() timings {
	t := timings{
		podStart:      700 * time.Millisecond,
		podStop:       time.Second,
		jobRun:        2 * time.Second,
		nodeStatus:    time.Second,
		publish:       time.Second,
		wipe:          30 * time.Second,
		endpointGrace: 5 * time.Minute,
	}
	if c.WipeDelay.Duration > 0 {
		t.wipe = c.WipeDelay.Duration
	}
	if c.EndpointGrace.Duration > 0 {
		t.endpointGrace = c.EndpointGrace.Duration
	}
	return t
}
