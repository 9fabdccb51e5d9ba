// Package config is the intent file: what a person wants of the pools of a cluster,
// for what does not fit on a command line. Flags override it. It is strict, because
// a field that is not read is a wish that nobody keeps: an unknown field, one that
// stands twice and a value of the wrong type are errors with line and column.
package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// APIVersion and Kind of the file.
const (
	APIVersion = cluster.APIVersion
	Kind       = "MigrationConfig"
)

// Config is an intent file. What it leaves out has the default of the flag.
type Config struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// ToolNamespace is where the tool's own objects live: journal, locks, helper pods
	// (--tool-namespace).
	ToolNamespace string `json:"toolNamespace,omitempty"`
	// Resource is the extended resource that workloads ask for (--resource).
	Resource string `json:"resource,omitempty"`
	// Driver is the DRA driver that serves the resource.
	Driver Driver `json:"driver,omitzero"`
	// PluginRollout is how prepare's edit of the device plugin's DaemonSet reaches its
	// pods: rolling-update restarts each, on-delete restarts none (--plugin-rollout).
	PluginRollout Rollout `json:"pluginRollout,omitempty"`
	// Helper is the image of the pods that the tool runs on nodes, and how they get at the
	// nodes' GPUs.
	Helper Helper `json:"helper,omitzero"`
	// Class is the DeviceClass that a migration creates.
	Class Class `json:"class,omitzero"`
	// The settings of all pools; a pool may have its own instead.
	PoolSettings `json:",inline"`
	// Batches are how all pools are cut; a pool may have its own instead.
	Batches Batches `json:"batches,omitzero"`
	// Pools are the pools of this file. If it names any, no other pool is worked on
	// with it.
	Pools []Pool `json:"pools,omitempty"`
}

// Driver is the DRA driver and where it comes from.
type Driver struct {
	// Name is the driver's DRA name (--driver).
	Name string `json:"name,omitempty"`
	// Manifests is the folder with the driver's manifests, which prepare installs;
	// relative to this file. Without it the driver must run already
	// (--driver-manifests).
	Manifests string `json:"manifests,omitempty"`
}

// Rollout is a value of Config.PluginRollout.
type Rollout string

// The rollouts of the plugin's DaemonSet, as in plan.Settings. They stand here for the
// schema, which knows literals alone.
const (
	RollingUpdate Rollout = "rolling-update"
	OnDelete      Rollout = "on-delete"
)

// Helper is the image of the helper pods, and how they get at the nodes' GPUs.
type Helper struct {
	// Image has this program as its entry point; a digest is best (--helper-image).
	Image string `json:"image,omitempty"`
	// PullSecret is a Secret of the tool's namespace to pull the image with
	// (--helper-pull-secret).
	PullSecret string `json:"pullSecret,omitempty"`
	// RuntimeClass is that of the NVIDIA container runtime, where it is not the default
	// (--runtime-class).
	RuntimeClass string `json:"runtimeClass,omitempty"`
	// DriverRoot is the nodes' folder of the driver's libraries, where there is no such
	// runtime; the pods are privileged then. Not beside runtimeClass (--driver-root).
	DriverRoot string `json:"driverRoot,omitempty"`
}

// Class is the DeviceClass that maps the extended resource to the driver.
type Class struct {
	// Name is that of the class which a migration creates. It is an error if another
	// class carries the resource already, or came with the driver's manifests.
	Name string `json:"name,omitempty"`
}

// PoolSettings are the settings of a pool that are not about its batches.
type PoolSettings struct {
	// Drain is what is evicted, and for how long.
	Drain Drain `json:"drain,omitzero"`
	// Soak is how long opened nodes are watched before the next batch (--soak).
	Soak *metav1.Duration `json:"soak,omitempty"`
	// KubeletGrace is how long kubelets remember a device plugin that left; 5 minutes
	// in every release (--kubelet-grace).
	KubeletGrace *metav1.Duration `json:"kubeletGrace,omitempty"`
	// Deadlines bound what a run waits for on a node.
	Deadlines plan.Deadlines `json:"deadlines,omitzero"`
	// Skips are the findings that do not stop a run, each with its reason (--skip,
	// --skip-reason). A pool has its own and the file's.
	Skips []checks.FindingSkip `json:"skips,omitempty"`
}

// Drain is what a drain evicts.
type Drain struct {
	// Evict is what to evict: gpu (pods that hold devices) or all (as kubectl drain
	// does) (--drain).
	Evict Evict `json:"evict,omitempty"`
	// Timeout is how long the eviction of one node's pods may take (--drain-timeout).
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// DeleteEmptyDirData evicts pods with emptyDir volumes, whose data is lost
	// (--delete-emptydir-data).
	DeleteEmptyDirData *bool `json:"deleteEmptyDirData,omitempty"`
	// EvictUnmanaged evicts pods without a controller, which nothing makes again
	// (--evict-unmanaged).
	EvictUnmanaged *bool `json:"evictUnmanaged,omitempty"`
}

// Evict is a value of Drain.Evict.
type Evict string

// What a drain evicts, as in plan.Settings.
const (
	EvictGPU Evict = "gpu"
	EvictAll Evict = "all"
)

// Share is a number of nodes, or a share of a pool's nodes such as "10%".
type Share string

// Batches are the nodes that are switched at the same time.
type Batches struct {
	// MaxUnavailable is the number of nodes that are closed at the same time, or the
	// share of the pool, rounded up (--max-unavailable).
	MaxUnavailable Share `json:"maxUnavailable,omitempty"`
	// First is the number of nodes in the first batch, which shows whether the move
	// works at all. Default 1.
	First int `json:"first,omitempty"`
}

// Pool is one pool of the file.
type Pool struct {
	// Name is the pool's name. Lock and journal go by it.
	Name string `json:"name"`
	// Selector is the label selector of the pool's nodes; without it the name must be
	// one that `dramigrate pools` shows.
	Selector string `json:"selector,omitempty"`
	// Into is the pool that the workloads move to, where the pool's own nodes cannot be
	// switched: one that `dramigrate pools` shows, or one of this file (--into).
	Into string `json:"into,omitempty"`
	// The pool's own settings; what they leave out has the file's.
	PoolSettings `json:",inline"`
	// Batches are how the pool is cut.
	Batches PoolBatches `json:"batches,omitzero"`
}

// PoolBatches are the batches of one pool.
type PoolBatches struct {
	Batches `json:",inline"`
	// Explicit are the first batches, node by node. Nodes of the pool that are in none
	// of them follow in batches of maxUnavailable.
	Explicit []plan.Batch `json:"explicit,omitempty"`
}

// ForPool are the pool's settings with the file's behind them.
func (c *Config) ForPool(name string) Pool {
	out := Pool{Name: name, PoolSettings: c.PoolSettings, Batches: PoolBatches{Batches: c.Batches}}
	for _, p := range c.Pools {
		if p.Name == name {
			out.Selector, out.Into = p.Selector, p.Into
			out.PoolSettings = p.PoolSettings.over(c.PoolSettings)
			out.Batches = PoolBatches{Batches: p.Batches.over(c.Batches), Explicit: p.Batches.Explicit}
			if len(p.Batches.Explicit) > 0 {
				out.Batches.First = 0
			}
		}
	}
	return out
}

// PoolNames are the names of the file's pools, in its order.
func (c *Config) PoolNames() []string {
	out := make([]string, len(c.Pools))
	for i, p := range c.Pools {
		out[i] = p.Name
	}
	return out
}
