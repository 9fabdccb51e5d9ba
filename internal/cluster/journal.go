package cluster

import (
	"encoding/json"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Journal is the record of a pool's runs, or of the shared objects' runs. It says
// who did what and what shared fields held before; what a node holds now is told by
// the node itself (NodeState), never by the journal. It is plain data here so that
// plans and reports can read it; the engine keeps it in a ConfigMap.
type Journal struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Pool is the pool's true name, or empty for the shared objects' journal.
	Pool     string `json:"pool,omitempty"`
	Selector string `json:"selector,omitempty"`
	// Nodes are the nodes that runs of the pool have worked on and that no rollback
	// has finished with since: a rollback takes them in, whatever became of their
	// labels.
	Nodes []string `json:"nodes,omitempty"`
	// Into is the pool that the workloads have moved to, or are on their way to; nil if
	// the pool's own nodes are switched, and once a rollback has taken it back.
	Into *PoolRef `json:"into,omitempty"`
	// Runs are the last runs, the newest last.
	Runs []RunRecord `json:"runs,omitempty"`
	// Shared is set in the shared objects' journal only.
	Shared *SharedRecord `json:"shared,omitempty"`
}

// JournalKind is the kind of a Journal document; its API version is APIVersion.
const (
	JournalKind = "Journal"
	APIVersion  = "dramigrate.dev/v1alpha1"
)

// The values of RunRecord.Outcome.
const (
	RunDone    = "done"
	RunStopped = "stopped" // part-way; the same command goes on
	RunRefused = "refused" // nothing was changed
)

// RunRecord is one execution of a plan.
type RunRecord struct {
	ID        string `json:"id"`
	Operation string `json:"operation"`
	// Into is the name of the pool that the workloads move to, or come back from.
	Into        string       `json:"into,omitempty"`
	Who         string       `json:"who"`
	ToolVersion string       `json:"toolVersion"`
	Epoch       int64        `json:"epoch"` // of the lock the run holds
	PlanDigest  string       `json:"planDigest"`
	Started     metav1.Time  `json:"started"`
	Ended       *metav1.Time `json:"ended,omitempty"`
	// HelperImage, PullSecret, RuntimeClass and DriverRoot are those of the run's helper
	// pods. A later run of the pool takes them if it is given none: whoever rolls back in
	// a hurry needs no more than the pool's name.
	HelperImage  string `json:"helperImage,omitempty"`
	PullSecret   string `json:"helperPullSecret,omitempty"`
	RuntimeClass string `json:"helperRuntimeClass,omitempty"`
	DriverRoot   string `json:"helperDriverRoot,omitempty"`
	// Outcome is RunDone, RunStopped or RunRefused; empty while the run goes on, or
	// if it was killed.
	Outcome string `json:"outcome,omitempty"`
	Message string `json:"message,omitempty"`
}

// SharedRecord says how prepare found the shared objects, so that unprepare can
// put back exactly the fields that prepare changed and remove exactly the objects
// that it made.
type SharedRecord struct {
	PreImages []PreImage      `json:"preImages,omitempty"`
	Created   []CreatedObject `json:"created,omitempty"`
	// HeldClass is the DeviceClass with the extended resource name that came with
	// the driver's manifests. It is created when the first node needs it, because
	// the mapping goes live for the whole cluster.
	HeldClass *resourcev1.DeviceClass `json:"heldClass,omitempty"`
	// DriverSource is the digest of the driver's manifests, or "installed".
	DriverSource string `json:"driverSource,omitempty"`
}

// PreImage is one field of a shared object before and after prepare's edit.
type PreImage struct {
	Object ObjectRef `json:"object"`
	// Path is a JSON pointer (RFC 6901).
	Path string `json:"path"`
	// Before is null if the field was absent.
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// CreatedObject is an object that the tool created and may therefore delete, as
// long as it is still the same one.
type CreatedObject struct {
	ObjectRef `json:",inline"`
}

// ObjectRef names one object, and the one incarnation behind the name.
type ObjectRef struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid,omitempty"`
}
