// Package plan turns a Snapshot and an intent into a Plan: inert data that says
// everything a run will do, in order, with what each step waits for and how it is
// undone. A Plan never changes anything; the engine executes what it says or stops.
package plan

import (
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

// APIVersion and Kind of the plan file.
const (
	APIVersion = "dramigrate.dev/v1alpha1"
	Kind       = "MigrationPlan"
)

// Operation is what a plan does.
type Operation string

// The operations. Prepare and Unprepare change shared objects, Migrate and
// Rollback the nodes of one pool and nothing else.
const (
	Prepare   Operation = "prepare"
	Migrate   Operation = "migrate"
	Rollback  Operation = "rollback"
	Unprepare Operation = "unprepare"
)

// Verb is the command that runs the operation.
func (o Operation) Verb() string {
	if o == Migrate {
		return "apply"
	}
	return string(o)
}

// verify is the operation of nodes as they stand, which no plan is for.
const verify = Operation(checks.Verify)

// Plan is the whole of one run, for a reviewer and for the engine.
type Plan struct {
	APIVersion  string           `json:"apiVersion"`
	Kind        string           `json:"kind"`
	Operation   Operation        `json:"operation"`
	ToolVersion string           `json:"toolVersion"`
	Cluster     cluster.Identity `json:"cluster"`
	// Namespace is the tool's namespace, where journal, Lease and helper pods live.
	Namespace string `json:"namespace"`
	// Resource is the extended resource that workloads ask for ("nvidia.com/gpu").
	Resource string `json:"resource"`
	// Resources are all extended resources of the plugin that must reach 0 on a
	// node before the driver may start there, Resource included.
	Resources []string `json:"resources,omitempty"`
	Pool      *Pool    `json:"pool,omitempty"`
	// Into is the pool that the workloads of Pool move to, or for a rollback come back
	// from; nil if the pool's own nodes are switched.
	Into    *Pool     `json:"into,omitempty"`
	Gate    gate.Gate `json:"gate"`
	Plugins []Object  `json:"plugins,omitempty"`
	Driver  Driver    `json:"driver"`
	Class   *Class    `json:"class,omitempty"`
	// Shared are the steps on shared objects (prepare, unprepare), in order.
	Shared []Step `json:"shared,omitempty"`
	// NodeSteps are done on each node of each batch, in order.
	NodeSteps []Step  `json:"nodeSteps,omitempty"`
	Batches   []Batch `json:"batches,omitempty"`
	// NodeChanges are how the batches' nodes are and how the run leaves them.
	NodeChanges []NodeChange `json:"nodeChanges,omitempty"`
	// Skipped are the nodes of the pool that are left alone, and why.
	Skipped []Skip `json:"skipped,omitempty"`
	// Evictions are the pods that the drain will evict, as they were seen.
	Evictions []Eviction `json:"evictions,omitempty"`
	// Restarts are the pods that the shared steps restart, as they were seen: the
	// blast radius of prepare and unprepare.
	Restarts []Restart `json:"restarts,omitempty"`
	// Claims is set for Migrate, if pods, claims and slices could be read.
	Claims   *Claims          `json:"claims,omitempty"`
	Settings Settings         `json:"settings"`
	Findings []checks.Finding `json:"findings,omitempty"`
	// Unknown is what could not be seen when the plan was made. What a finding or a
	// list of this plan would say about it is not known, and is never taken for fine.
	Unknown []cluster.Unknown `json:"unknown,omitempty"`
	// Source says where the plan was made from, if not from a cluster or from a
	// snapshot that the tool wrote: files that others wrote may hold less than all.
	Source *cluster.Source `json:"source,omitempty"`
	// Forecast is what the drain is expected to do to workloads; nil if it was not
	// computed.
	Forecast *Forecast `json:"forecast,omitempty"`
	// Inputs tell what the plan was made from, so that apply can say what has moved.
	Inputs Inputs `json:"inputs,omitzero"`
	// Digest is the SHA-256 of the plan without this field.
	Digest string `json:"digest,omitempty"`
}

// Forecast is what a run is expected to do to workloads.
type Forecast struct {
	// Summary are sentences for a reviewer, the most important first.
	Summary []string `json:"summary,omitempty"`
	// Ignored is what the forecast did not take into account.
	Ignored []string `json:"ignored,omitempty"`
}

// Pool is the set of nodes that a plan is about.
type Pool struct {
	Name     string    `json:"name"`
	Selector string    `json:"selector"`
	Nodes    []NodeRef `json:"nodes"`
}

// NodeRef names one node, and the one machine behind the name.
type NodeRef struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// Object names an object of the cluster.
type Object struct {
	// APIVersion is set where an object is deleted by the plan alone.
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Note says what is worth knowing about it here, in one line.
	Note string `json:"note,omitempty"`
}

// Driver is the DRA driver and how it gets onto nodes.
type Driver struct {
	// Name is the driver's DRA name ("gpu.nvidia.com").
	Name string `json:"name"`
	// Names are all DRA names that its DaemonSets serve, Name included: a claim of any
	// of them needs the DaemonSet's pod.
	Names []string `json:"names,omitempty"`
	// DaemonSets place the driver. Empty until prepare has installed it.
	DaemonSets []Object `json:"daemonSets,omitempty"`
	// Source says where it comes from: SourceInstalled, the digest of the manifests,
	// or nothing while there is no driver.
	Source string `json:"source,omitempty"`
}

// ClassAction is what becomes of the DeviceClass that carries the resource name.
type ClassAction string

// Adopt uses the class that already carries the name; Create makes one.
const (
	Adopt  ClassAction = "adopt"
	Create ClassAction = "create"
)

// Class is the DeviceClass that maps the extended resource to the driver.
type Class struct {
	Action ClassAction             `json:"action"`
	Name   string                  `json:"name"`
	Object *resourcev1.DeviceClass `json:"object,omitempty"` // with Create: what is created
}

// StepID names a kind of step. The engine has one implementation for each.
type StepID string

// Step is one thing done to one target.
type Step struct {
	ID StepID `json:"id"`
	// Role is which nodes the step is done on, where the plan has an Into.
	Role  cluster.Role `json:"role,omitempty"`
	Title string       `json:"title"`
	// Target is the object of a shared step; a node step's target is the node.
	Target *Object `json:"target,omitempty"`
	// Needs must hold before the step.
	Needs []string `json:"needs,omitempty"`
	// Changes are the API changes, exactly: a patch or an object for each.
	Changes []Change `json:"changes,omitempty"`
	Waits   []Wait   `json:"waits,omitempty"`
	Undo    string   `json:"undo,omitempty"`
}

// Change is one write. Exactly one of Patch and Object is set, or neither for a
// deletion or an eviction, which Verb names.
type Change struct {
	Verb   string `json:"verb"` // create, apply, patch, delete, evict, ask its owner for
	Object Object `json:"object"`
	// Patch is the JSON patch as it is sent, but for the values that only the run
	// knows (run ID, epoch), which stand as <run> and <epoch>.
	Patch string `json:"patch,omitempty"`
	// Body is the object as it is created or applied, in YAML.
	Body string `json:"body,omitempty"`
}

// Wait is what must come true after a step, and by when.
type Wait struct {
	For      string          `json:"for"`
	Deadline metav1.Duration `json:"deadline"`
}

// Batch is a set of nodes that are switched at the same time.
type Batch struct {
	Nodes []string `json:"nodes"`
}

// Skip is a node of the pool that is in no batch.
type Skip struct {
	Node string `json:"node"`
	Why  string `json:"why"`
}

// Eviction is one pod that a drain will evict.
type Eviction struct {
	Pod     string        `json:"pod"` // namespace/name
	Node    string        `json:"node"`
	Owner   cluster.Owner `json:"owner,omitzero"`
	Budgets []string      `json:"budgets,omitempty"` // namespace/name of each budget that covers it
	Why     string        `json:"why"`               // "requests nvidia.com/gpu", "holds claim x"
}

// Restart is one pod that a shared step restarts or removes.
type Restart struct {
	Pod  string `json:"pod"`
	Node string `json:"node"`
	Why  string `json:"why"`
}

// Values of Settings.Drain: evict only pods that hold a device of the plugin or of
// the driver, or all that kubectl drain evicts.
const (
	DrainGPU = "gpu"
	DrainAll = "all"
)

// Values of Settings.PluginRollout: let the edit of the plugin's DaemonSet restart
// its pods node by node, or leave them running by the strategy OnDelete.
const (
	RollingUpdate = "rolling-update"
	OnDelete      = "on-delete"
)

// SourceInstalled is Driver.Source of a driver that the tool did not install.
const SourceInstalled = "installed"

// Settings are the choices that a person made, as the run will use them.
type Settings struct {
	MaxUnavailable string          `json:"maxUnavailable,omitempty"`
	Drain          string          `json:"drain,omitempty"` // DrainGPU or DrainAll
	DrainTimeout   metav1.Duration `json:"drainTimeout,omitzero"`
	DeleteEmptyDir bool            `json:"deleteEmptyDirData,omitempty"`
	EvictUnmanaged bool            `json:"evictUnmanaged,omitempty"`
	PluginRollout  string          `json:"pluginRollout,omitempty"` // RollingUpdate or OnDelete
	// EditOwned lets prepare edit DaemonSets that somebody else owns and takes back.
	EditOwned bool `json:"editOwned,omitempty"`
	// WaitForOwner is how long prepare waits until the owners of DaemonSets have made
	// its edits; 0 is not at all.
	WaitForOwner metav1.Duration `json:"waitForOwner,omitzero"`
	Soak         metav1.Duration `json:"soak,omitzero"`
	// KubeletGrace is how long a kubelet remembers a device plugin that left: 5
	// minutes in every release (endpointStopGracePeriod,
	// pkg/kubelet/cm/devicemanager/types.go, v1.37.2).
	KubeletGrace metav1.Duration `json:"kubeletGrace,omitzero"`
	HelperImage  string          `json:"helperImage,omitempty"`
	PullSecret   string          `json:"pullSecret,omitempty"`
	// RuntimeClass and DriverRoot are how the probes reach the node's GPUs: by the
	// class of a container runtime that hands them out, or by the node's folder with the
	// driver's libraries, for which the pod is privileged.
	RuntimeClass string `json:"runtimeClass,omitempty"`
	DriverRoot   string `json:"driverRoot,omitempty"`
	// FirstBatch is the number of nodes in the first batch; 0 is one node.
	FirstBatch int `json:"firstBatch,omitempty"`
	// Batches are the first batches, node by node, if a person chose them. Nodes of
	// the pool that are in none follow in batches of MaxUnavailable.
	Batches []Batch `json:"batches,omitempty"`
	// ClassName is the name of the DeviceClass that is created where none carries the
	// resource; empty is the tool's own choice.
	ClassName string    `json:"className,omitempty"`
	Deadlines Deadlines `json:"deadlines,omitzero"`
	// Skips are the findings that a person has decided not to be stopped by.
	Skips []checks.FindingSkip `json:"skips,omitempty"`
}
