package report

import (
	"testing"

	"github.com/charmbracelet/colorprofile"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/pending"
	"github.com/dramigrate/dramigrate/internal/status"
)

func TestDiagnosis(t *testing.T) {
	golden(t, "diagnosis.txt", func(w *colorprofile.Writer) error {
		return Diagnosis(Sheet{Writer: w}, &pending.Diagnosis{
			Pod: "team/train-0", Cause: pending.ClassSelectsNothing, Certain: true,
			Why: `deviceclass/gpu selects none of the 8 devices that are published where it may go: type is "mig", the class wants "gpu"`,
			Evidence: []string{
				"scheduler, Unschedulable: 0/3 nodes are available: 1 cannot allocate all claims, 2 node(s) didn't match Pod's node affinity/selector.",
				"published: gpu.nvidia.com (8)\x1b[31m",
			},
			Remedy: "correct the expression: `kubectl get deviceclass gpu -o yaml`",
			Unseen: []cluster.Unknown{{Part: "events", Reason: "the files hold none about pods"}},
		})
	})
	golden(t, "diagnosis-none.txt", func(w *colorprofile.Writer) error {
		return Diagnosis(Sheet{Writer: w}, &pending.Diagnosis{Pod: "team/train-0", Node: "gpu-1", Cause: pending.None, Why: "it runs", Certain: true})
	})
}

func someWaiters() *pending.Waiters {
	return &pending.Waiters{
		Owners: []pending.Waiter{
			{Owner: "deployment/team/serve", Pods: 12, Pod: "team/serve-1", Cause: pending.DriverGone, Why: "driver gpu.nvidia.com is not registered with the kubelet of node/gpu-1", Remedy: "bring the driver's pod back to the node"},
			{Owner: "pod/team/train-0", Pods: 1, Pod: "team/train-0", Cause: pending.Quota, Why: "resourcequota/team/gpus refuses the claim that is made for it", Remedy: "raise the limit", Certain: true},
			{Owner: "job/team/eval", Pods: 1, Pod: "team/eval-x", Cause: pending.Unknown, Why: "nothing that is known explains it"},
		},
		More: 2, MorePods: 40,
	}
}

func TestWaiting(t *testing.T) {
	golden(t, "status-waiting.txt", func(w *colorprofile.Writer) error {
		return Status(Sheet{Writer: w}, &status.Status{Resource: "r", Driver: "d", Waiting: someWaiters()}, false)
	})
	golden(t, "verification-waiting.txt", func(w *colorprofile.Writer) error {
		return Verification(Sheet{Writer: w}, &status.Verification{Pool: "gpu-a", Resource: "r", Driver: "d", Result: status.Unknown, Waiting: someWaiters()})
	})
}
