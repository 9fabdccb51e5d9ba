package report

import (
	"testing"
	"time"

	"github.com/charmbracelet/colorprofile"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/status"
)

func someStatus() *status.Status {
	two, zero, published, none := int64(2), int64(0), 2, 0
	ended := metav1.NewTime(noon.Add(time.Minute))
	return &status.Status{
		Resource: "nvidia.com/gpu", Driver: "gpu.nvidia.com",
		Pools: []status.Pool{
			{Name: "gpu-a", Selector: "eks.amazonaws.com/nodegroup=gpu-a", Nodes: 3, WithDevices: 3, Plugin: 1, Switching: 1, DRA: 1,
				Lock:     &status.Lock{Holder: "me@host/1", Operation: "migrate"},
				Rollback: &status.Rollback{Result: status.Failed, Nodes: 2, Why: []string{"no DaemonSet serves nvidia.com/gpu any more"}},
				Runs:     []cluster.RunRecord{{ID: "r1", Operation: "migrate", Started: metav1.NewTime(noon)}}},
			{Name: "gpu-b", Selector: "eks.amazonaws.com/nodegroup=gpu-b", Nodes: 2, WithDevices: 1, Plugin: 1,
				Lock: &status.Lock{Holder: "she@host/2", Expired: true}, Rollback: &status.Rollback{Result: status.OK, Nodes: 1},
				Runs: []cluster.RunRecord{{ID: "r0", Operation: "rollback", Outcome: "stopped", Message: "a budget allows no eviction", Started: metav1.NewTime(noon), Ended: &ended}}},
		},
		Nodes: []status.Node{
			{Name: "a-1", Pool: "gpu-a", Mechanism: gate.DRA, Allocatable: &zero, Published: &published, Ready: true},
			{Name: "a-2", Pool: "gpu-a", Mechanism: gate.Switching, Operation: "migrate", Phase: "plugin-off", Run: "r1", Allocatable: &two, Published: &none, Ready: true, Cordoned: true, Closed: true,
				UID: "8b0c5ba2-1f0e-4c1e-9d3b-0a3a86b8b7c1", KubeletVersion: "v1.37.2", GateLabels: map[string]string{"dramigrate.dev/allocation": "switching"},
				Drift: []status.LabelDrift{{Label: "dramigrate.dev/allocation", Want: "dra", Have: "switching"}}},
			{Name: "a-3", Pool: "gpu-a", Mechanism: gate.Plugin, Allocatable: &two, Published: &none, Ready: true, Cordoned: true},
			{Name: "b-1", Pool: "gpu-b", Mechanism: gate.Plugin, Allocatable: &two, Published: &published, Double: true},
			{Name: "c-1", Mechanism: gate.Plugin, Incomplete: "pool c-1 of driver gpu.nvidia.com has 1 of 2 slices of generation 3", Ready: true, Closed: true},
		},
		Strays: []status.Stray{
			{Object: "node/b-1", Pool: "gpu-b", Kind: status.TwoStates, What: "ADVERTISED TWICE: the plugin offers 2 and the driver 2 devices: one may be given away twice", Do: "cordon it"},
			{Object: "node/a-9", Pool: "gpu-a", Kind: status.Gone, What: "runs have worked on it, and it is not in the cluster any more"},
		},
		Unknown: []cluster.Unknown{{Part: "resourceclaims", Reason: "resourceclaims.resource.k8s.io is forbidden: User \"viewer\" cannot list resource \"resourceclaims\""}},
	}
}

func TestStatusTables(t *testing.T) {
	golden(t, "status.txt", func(w *colorprofile.Writer) error { return Status(Sheet{Writer: w}, someStatus(), false) })
	golden(t, "status-wide.txt", func(w *colorprofile.Writer) error { return Status(Sheet{Writer: w}, someStatus(), true) })
	golden(t, "status-names.txt", func(w *colorprofile.Writer) error { return NodeNames(w, someStatus()) })
	golden(t, "pools.txt", func(w *colorprofile.Writer) error { return Pools(Sheet{Writer: w}, someStatus(), false) })
	golden(t, "pools-wide.txt", func(w *colorprofile.Writer) error { return Pools(Sheet{Writer: w}, someStatus(), true) })
	golden(t, "pools-names.txt", func(w *colorprofile.Writer) error { return Names(w, someStatus()) })
	golden(t, "status-empty.txt", func(w *colorprofile.Writer) error {
		return Status(Sheet{Writer: w}, &status.Status{Resource: "r", Driver: "d"}, false)
	})
}

func TestVerificationTable(t *testing.T) {
	golden(t, "verification.txt", func(w *colorprofile.Writer) error {
		return Verification(Sheet{Writer: w}, &status.Verification{
			Pool: "gpu-a", Resource: "nvidia.com/gpu", Driver: "gpu.nvidia.com", Result: status.Double,
			Class: []status.Look{{What: "one DeviceClass carries the resource", Result: status.OK, Detail: "deviceclass/x"}},
			Nodes: []status.NodeVerified{{Name: "a-1", Looks: []status.Look{
				{What: "the node is switched to DRA", Result: status.OK},
				{What: "devices are offered by one mechanism only", Result: status.Double, Detail: "ADVERTISED TWICE"},
				{What: "the driver's pods are ready", Result: status.Failed, Detail: "pod dra/driver-x is not ready CrashLoopBackOff"},
				{What: "the published devices are those that the node had before, by UUID", Result: status.Unknown, Detail: "not recorded"},
			}}},
		})
	})
}
