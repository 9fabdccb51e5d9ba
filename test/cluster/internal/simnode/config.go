// Package simnode runs simulated nodes: objects without a kubelet, for batches
// that are too large for real ones.
package simnode

import (
	corev1 "k8s.io/api/core/v1"

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
	Nodes      []Node `json:"nodes"`
}

// Node is one simulated node.
type Node struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	Taints []corev1.Taint    `json:"taints,omitempty"`
	GPUs   gpu.Set           `json:"gpus"`
}
