package checks

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func results(r *Report) map[string]Result {
	out := map[string]Result{}
	for _, o := range r.Checks {
		out[o.Code] = o.Result
	}
	return out
}

// Prepare warns of a pod that the migration stops at: one finding, the worse.
func TestExamine(t *testing.T) {
	t.Parallel()
	s := prepared()
	s.addPod("both", "m1", 1).Claims = []string{"channel"}
	s.Unknown = []cluster.Unknown{{Part: cluster.PartBudgets, Reason: "no"}}
	r := Examine([]Input{s.of(Prepare), s.of(Migrate)}, nil)
	if diff := cmp.Diff([]string{"blocker replicaset/team/both"}, brief(r.Findings, "DRM006")); diff != "" {
		t.Errorf("DRM006 (-want +got):\n%s", diff)
	}
	got := results(r)
	for code, want := range map[string]Result{
		"DRM001": Passed, "DRM006": Found, "DRM018": NotRun, "DRM023": NotRun, "DRM011": Found,
	} {
		if got[code] != want {
			t.Errorf("%s: %q, want %q", code, got[code], want)
		}
	}
	if _, asked := got["DRM024"]; asked {
		t.Error("DRM024 is for unprepare alone")
	}
	if !slices.IsSortedFunc(r.Findings, func(a, b Finding) int { return rank(a) - rank(b) }) {
		t.Errorf("findings are not sorted: %+v", r.Findings)
	}
}

// A cluster on which prepare has not been run: asked about both verbs, that is no reason
// to stop, for prepare comes first. A DaemonSet with an owner is one finding.
func TestExamineUnprepared(t *testing.T) {
	t.Parallel()
	s := untouched()
	if diff := cmp.Diff([]string{"blocker daemonset/kube-system/plugin", "blocker driver/gpu.nvidia.com"}, brief(Examine([]Input{s.of(Migrate)}, nil).Findings, "DRM015")); diff != "" {
		t.Errorf("for apply alone (-want +got):\n%s", diff)
	}
	both := Examine([]Input{s.of(Prepare), s.of(Migrate)}, nil).Findings
	if diff := cmp.Diff([]string{"info daemonset/kube-system/plugin", "info driver/gpu.nvidia.com"}, brief(both, "DRM015")); diff != "" {
		t.Errorf("for both (-want +got):\n%s", diff)
	}

	s.daemonSet("plugin").Annotations = map[string]string{"meta.helm.sh/release-name": "nvdp", "meta.helm.sh/release-namespace": "kube-system"}
	s.daemonSet("plugin").Labels = map[string]string{"app.kubernetes.io/managed-by": "Helm"}
	owned := Examine([]Input{s.of(Prepare), s.of(Migrate)}, nil).Findings
	if diff := cmp.Diff([]string{"blocker daemonset/kube-system/plugin"}, brief(owned, "DRM003")); diff != "" {
		t.Errorf("DRM003 of an owned plugin (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"info driver/gpu.nvidia.com"}, brief(owned, "DRM015")); diff != "" {
		t.Errorf("DRM015 of an owned plugin (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"blocker daemonset/kube-system/plugin", "blocker driver/gpu.nvidia.com"}, brief(Examine([]Input{s.of(Migrate)}, []string{"DRM015"}).Findings, "DRM015")); diff != "" {
		t.Errorf("DRM015 alone (-want +got):\n%s", diff)
	}
}

// What two operations lack is one warning, with the checks of both: DRM103 is asked by
// both, DRM109 and DRM150 by the migration alone.
func TestExamineUnadvised(t *testing.T) {
	t.Parallel()
	s := prepared()
	s.Unknown = []cluster.Unknown{{Part: cluster.PartJobs, Reason: "no"}, {Part: cluster.PartPriorityClasses, Reason: "no"}}
	r := Examine([]Input{s.of(Prepare), s.of(Migrate)}, nil)
	if diff := cmp.Diff([]string{"warning jobs"}, brief(r.Findings, "DRM011")); diff != "" {
		t.Errorf("DRM011 (-want +got):\n%s", diff)
	}
	for _, f := range r.Findings {
		if f.Code == "DRM011" && (!strings.Contains(f.Message, "jobs, priorityclasses could not be read") || !strings.Contains(f.Message, "DRM103") || !strings.Contains(f.Message, "DRM109")) {
			t.Errorf("message %q, want both parts and the checks of both operations", f.Message)
		}
	}
}

func TestExamineOnly(t *testing.T) {
	t.Parallel()
	s := prepared()
	s.addPod("both", "m1", 1).Claims = []string{"channel"}
	s.node("n1").Status.NodeInfo.KubeletVersion = "v1.30.0"
	r := Examine([]Input{s.of(Migrate)}, []string{"DRM002"})
	if len(r.Checks) != 1 || len(r.Findings) != 1 || r.Findings[0].Code != "DRM002" {
		t.Errorf("checks %+v, findings %+v; want DRM002 alone", r.Checks, r.Findings)
	}
}

// Without a pool every node with devices is looked at, whoever's run it belongs to.
func TestExamineCluster(t *testing.T) {
	t.Parallel()
	s := migrated()
	s.node("m1").Status.NodeInfo.KubeletVersion = "v1.30.0"
	in := s.of(Migrate)
	in.Pool = cluster.NodePool{}
	r := Examine([]Input{in}, nil)
	if diff := cmp.Diff([]string{"blocker node/m1"}, brief(r.Findings, "DRM002")); diff != "" {
		t.Errorf("DRM002 (-want +got):\n%s", diff)
	}
	if got := brief(r.Findings, "DRM012"); len(got) > 0 {
		t.Errorf("DRM012: %v: a run of a pool is no fault of the cluster", got)
	}
}
