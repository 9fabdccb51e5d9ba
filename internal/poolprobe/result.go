// Package poolprobe has the nodes of a pool probed, many at a time, and holds what each
// of them says against the API server: who offers its devices and who has them.
package poolprobe

import (
	"cmp"
	"slices"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/nodeprobe"
)

// Kind of the document that Gather makes; its API version is cluster.APIVersion.
const Kind = "PoolProbe"

// Result is what the nodes of a pool said.
type Result struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Cluster    cluster.Identity `json:"cluster"`
	Pool       string           `json:"pool"`
	Resource   string           `json:"resource"`
	Driver     string           `json:"driver"`
	// Verdict is the worst of the nodes'. A pool of which no node has devices was not
	// proven clean.
	Verdict nodeprobe.Verdict `json:"verdict"`
	// Nodes are those that have devices, or had, by name.
	Nodes []Node `json:"nodes"`
	// Unknown is what of the API could not be read.
	Unknown []cluster.Unknown `json:"unknown,omitempty"`
}

// Source is whose word a verdict rests on.
type Source string

// The sources. FromAPI is second hand: the API does not know which device a pod has by
// the plugin, so that its word proves a double advertisement and never its absence.
const (
	FromNode Source = "node"
	FromAPI  Source = "api"
)

// Node is one node of the pool.
type Node struct {
	Name    string            `json:"name"`
	Verdict nodeprobe.Verdict `json:"verdict"`
	Source  Source            `json:"source"`
	// GPUs are the boards that the hardware shows; null if it could not be looked at.
	GPUs *int `json:"gpus,omitempty"`
	// Plugin, DRA and Both count the devices by who offers them; Both are in neither of
	// the others. Zero where the source is the API.
	Plugin int `json:"plugin"`
	DRA    int `json:"dra"`
	Both   int `json:"both"`
	// Holders are the pods that have a device, and the processes that were given none,
	// sorted.
	Holders []Holder `json:"holders,omitempty"`
	// Reasons say why the verdict is not clean.
	Reasons []string `json:"reasons,omitempty"`
	// Error says why there is no report.
	Error string `json:"error,omitempty"`
	// Report is the node's own, judged with the API's view.
	Report *nodeprobe.NodeReport `json:"report,omitempty"`
}

// Holder is who has devices of a node.
type Holder struct {
	// Name is "namespace/name" of a pod, or "process PID (command)".
	Name string       `json:"name"`
	By   nodeprobe.By `json:"by"`
	// Devices is how many the holder has.
	Devices int `json:"devices"`
}

// rank orders verdicts, the worst first.
func rank(v nodeprobe.Verdict) int {
	return slices.Index([]nodeprobe.Verdict{
		nodeprobe.DoubleHeld, nodeprobe.DoubleAdvertised, nodeprobe.Undecided, nodeprobe.Clean,
	}, v)
}

// Worst is the verdict that a person has to know first; unknown if there is none.
func Worst(list ...nodeprobe.Verdict) nodeprobe.Verdict {
	if len(list) == 0 {
		return nodeprobe.Undecided
	}
	return slices.MinFunc(list, func(a, b nodeprobe.Verdict) int { return cmp.Compare(rank(a), rank(b)) })
}

// IsDouble says that a device is offered or held by both mechanisms.
func IsDouble(v nodeprobe.Verdict) bool {
	return v == nodeprobe.DoubleAdvertised || v == nodeprobe.DoubleHeld
}
