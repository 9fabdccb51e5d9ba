package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
)

// samePlanOffline wants a plan that is made from a snapshot to be, byte for byte, the
// plan that is made live. Pods come and go, so that the two may be of different
// moments; they must be the same when nothing moves.
func (f *fixture) samePlanOffline(args ...string) {
	f.Helper()
	file := filepath.Join(f.TempDir(), "snapshot.yaml")
	args = append([]string{"plan", "-o", "yaml"}, args...)
	f.ok(Eventually(f.ctx, patience, func() string {
		if r := f.Tool.Run(f.ctx, "snapshot", "--out", file, "--force"); r.Code != 0 {
			return r.String()
		}
		live := f.Tool.Run(f.ctx, args...)
		offline := Tool{Binary: f.Tool.Binary, Kubeconfig: filepath.Join(f.TempDir(), "none")}.Run(f.ctx, append(args, "--from", file)...)
		if live.Code != offline.Code || !strings.Contains(live.Stdout, "kind: MigrationPlan") {
			return "exit codes differ, or there is no plan: " + live.String() + offline.String()
		}
		if live.Stdout != offline.Stdout {
			return "the live plan is\n" + live.Stdout + "and from the snapshot\n" + offline.Stdout
		}
		return ""
	}))
}

// TestSavedPlan takes a plan through a change review: it runs as it was reviewed, goes
// on where it was stopped, and does not run twice, edited, or once the cluster asks for
// another one.
func TestSavedPlan(t *testing.T) {
	t.Parallel()
	f := newFixture(t, BenchOptions{Kubelet: cluster.KubeletQuick, Nodes: []cluster.NodeSpec{
		GPUNode("gpu-a-1", "gpu-a", 1), GPUNode("gpu-a-2", "gpu-a", 1),
	}})
	before := map[string]nodeIs{"gpu-a-1": f.look("gpu-a-1"), "gpu-a-2": f.look("gpu-a-2")}
	f.prepare()
	f.ok(f.RunWorkload(f.ctx, "train", "gpu-a", 2))

	file := filepath.Join(t.TempDir(), "plan.yaml")
	f.run(0, "plan", "gpu-a", "--out", file, "--soak", "0s", "--kubelet-grace", "1s", "--helper-image", HelperImage)
	f.samePlanOffline("gpu-a", "--helper-image", HelperImage)
	saved := slices.Concat([]string{"apply", file, "--yes"}, locked)

	// Somebody has a better idea after the review.
	text, err := os.ReadFile(file)
	f.ok(err)
	edited := filepath.Join(t.TempDir(), "edited.yaml")
	f.ok(os.WriteFile(edited, []byte(strings.Replace(string(text), "maxUnavailable: 10%", "maxUnavailable: 100%", 1)), 0o600))
	f.run(4, "apply", edited, "--yes")

	// The program is killed when the first of two nodes is done.
	p, err := f.Tool.Start(f.ctx, slices.Concat(saved, mortal)...)
	f.ok(err)
	f.ok(Eventually(f.ctx, patience, func() string {
		if !strings.Contains(p.Stderr(), "batch 1/2  done") {
			return "the first batch is not done yet:\n" + p.Stderr()
		}
		return ""
	}))
	f.ok(p.Signal(syscall.SIGKILL))
	p.Wait()
	f.samePlanOffline("gpu-a", "--helper-image", HelperImage)

	r := f.run(0, saved...)
	if !strings.Contains(r.Stderr, "Goes on with run") {
		t.Errorf("nothing says that an earlier run of the plan is gone on with:\n%s", r.Stderr)
	}
	f.ok(f.WorkloadReady(f.ctx, "train", 2))
	f.onDRA("train", "gpu-a-1", "gpu-a-2")
	r = f.run(4, saved...)
	if !strings.Contains(r.Stderr, "applied already") {
		t.Errorf("the plan is refused for another reason than that it was applied:\n%s", r.Stderr)
	}
	r = f.run(0, "status", "--history", "gpu-a")
	if !strings.Contains(r.Stdout, "done") {
		t.Errorf("the history has no run that is done:\n%s", r.Stdout)
	}

	f.samePlanOffline("gpu-a", "--for", "rollback", "--helper-image", HelperImage)
	f.run(0, rollback("gpu-a")...)
	for node, was := range before {
		f.asBefore(node, was)
	}
	f.samePlanOffline("--for", "unprepare")
	f.run(0, "unprepare", "--yes")
	f.samePlanOffline("--for", "prepare", "--driver-manifests", f.DriverDir)
}
