package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

var poolB = cluster.NodePool{Name: "gpu-b", Selector: "eks.amazonaws.com/nodegroup=gpu-b", Nodes: []string{"b-1", "b-2"}}

// twoPools is a cluster whose pool gpu-b (b-1, b-2) has the driver and no plugin; the
// pods of gpu-a are x1, x2 on a-1 and x3 on a-3.
func twoPools(t *testing.T) (*cluster.Snapshot, Intent) {
	t.Helper()
	s, record := prepared(t)
	s.Nodes = append(s.Nodes, gpuNode("b-2", "gpu-b"))
	for _, name := range poolB.Nodes {
		n, _ := s.Node(name)
		n.Labels[allocation] = "dra"
		n.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("0")}
	}
	s.Pods = slices.DeleteFunc(s.Pods, func(p cluster.Pod) bool { return p.Node == "b-1" })
	in := intent(Migrate)
	in.Shared, in.Into = record, poolB
	return s, in
}

// taken writes what a run of a move from gpu-a into gpu-b leaves on a node.
func taken(t *testing.T, s *cluster.Snapshot, name string, role cluster.Role, op Operation) {
	t.Helper()
	n, _ := s.Node(name)
	now := metav1.Unix(1000, 0)
	st := cluster.NodeState{
		Pool: "gpu-a", Selector: "eks.amazonaws.com/nodegroup=gpu-a", Operation: string(op), Run: "r1", Epoch: 1, Role: role,
		Into: &cluster.PoolRef{Name: poolB.Name, Selector: poolB.Selector},
	}
	if left := (role == cluster.RoleOld) == (op == Migrate); left {
		st.RetiredAt = &now
		n.Spec.Unschedulable = true
		n.Spec.Taints = []corev1.Taint{{Key: "dramigrate.dev/switching", Effect: corev1.TaintEffectNoSchedule}}
	} else {
		st.OpenedAt = &now
	}
	text, err := st.Encode()
	if err != nil {
		t.Fatal(err)
	}
	n.Annotations = map[string]string{record: text}
}

// nodesByBatch are the nodes of each batch.
func nodesByBatch(p *Plan) [][]string {
	var out [][]string
	for _, b := range p.Batches {
		out = append(out, b.Nodes)
	}
	return out
}

func ids(steps []Step) []StepID { return names(steps, func(s Step) StepID { return s.ID }) }

// All new nodes are open before the first old one is left, and no node is switched.
func TestMigrateIntoPlan(t *testing.T) {
	s, in := twoPools(t)
	p := build(t, in, s)
	// Half of three nodes, rounded up, are two; the first batch is one.
	if diff := cmp.Diff([][]string{{"b-1"}, {"b-2"}, {"a-1"}, {"a-2", "a-3"}}, nodesByBatch(p)); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]StepID{StepMark, StepDriverReady, StepDeviceClass, StepCanary, StepOpen}, ids(p.StepsOn("b-1"))); diff != "" {
		t.Errorf("steps on a new node (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]StepID{StepMark, StepDrain, StepRetire}, ids(p.StepsOn("a-1"))); diff != "" {
		t.Errorf("steps on an old node (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"default/x1", "default/x2", "default/x3"}, names(p.Evictions, func(e Eviction) string { return e.Pod })); diff != "" {
		t.Errorf("evictions (-want +got):\n%s", diff)
	}
	for _, c := range p.NodeChanges {
		left := p.Leaves(c.Nodes[0])
		if !cmp.Equal(c.Before.Labels, c.After.Labels) || c.After.Unschedulable != left || (len(c.After.Taints) > 0) != left {
			t.Errorf("nodes %v: %+v become %+v; want the labels as they are, and the old nodes closed alone", c.Nodes, c.Before, c.After)
		}
	}
	for _, step := range p.NodeSteps {
		for _, c := range step.Changes {
			if strings.Contains(c.Patch, "/metadata/labels/") {
				t.Errorf("step %s changes a label: %s", step.ID, c.Patch)
			}
		}
	}
}

// A node that somebody else has cordoned is not opened; one that a run has is.
func TestMigrateIntoLeavesForeignCordons(t *testing.T) {
	s, in := twoPools(t)
	b1, _ := s.Node("b-1")
	b1.Spec.Unschedulable = true
	taken(t, s, "b-2", cluster.RoleNew, Rollback) // closed since an earlier rollback
	p := build(t, in, s)
	if diff := cmp.Diff([][]string{{"b-2"}, {"a-1"}, {"a-2", "a-3"}}, nodesByBatch(p)); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Skip{{Node: "b-1", Why: cordonedWhy}}, p.Skipped); diff != "" {
		t.Errorf("left alone (-want +got):\n%s", diff)
	}
}

// Run again there is nothing to do; what was part-way goes on with what is left.
func TestMigrateIntoAgain(t *testing.T) {
	s, in := twoPools(t)
	was := build(t, in, s)
	taken(t, s, "b-1", cluster.RoleNew, Migrate)
	taken(t, s, "b-2", cluster.RoleNew, Migrate)
	taken(t, s, "a-1", cluster.RoleOld, Migrate)
	s.Pods = slices.DeleteFunc(s.Pods, func(p cluster.Pod) bool { return p.Name == "x1" || p.Name == "x2" })
	now := build(t, in, s)
	look := Compare(was, now, []cluster.RunRecord{{ID: "r1", PlanDigest: was.Digest}})
	if !look.Runs() || look.Resumes != "r1" || !cmp.Equal(look.Done, []string{"b-1", "b-2", "a-1"}) {
		t.Errorf("%+v, want that it goes on with r1", look)
	}
	if diff := cmp.Diff([][]string{{"a-2", "a-3"}}, nodesByBatch(Rebase(was, now))); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
	// Somebody has opened a node that was left: it is closed again.
	for _, name := range []string{"a-2", "a-3"} {
		taken(t, s, name, cluster.RoleOld, Migrate)
	}
	if again := build(t, in, s); again.Pending() {
		t.Errorf("batches %v, want none", again.Batches)
	}
	a2, _ := s.Node("a-2")
	a2.Spec.Unschedulable = false
	if diff := cmp.Diff([][]string{{"a-2"}}, nodesByBatch(build(t, in, s))); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
}

// The reviewers agreed to one new pool and its nodes.
func TestCompareInto(t *testing.T) {
	for _, c := range []struct {
		title  string
		change func(*cluster.Snapshot, *Intent)
		want   string
	}{
		{"a new node more", func(s *cluster.Snapshot, in *Intent) {
			s.Nodes = append(s.Nodes, gpuNode("b-3", "gpu-b"))
			in.Into.Nodes = []string{"b-1", "b-2", "b-3"}
		}, "node new: b-3 with UID uid-b-3"},
		{"in place", func(_ *cluster.Snapshot, in *Intent) { in.Into = cluster.NodePool{} }, "pool"},
	} {
		t.Run(c.title, func(t *testing.T) {
			s, in := twoPools(t)
			was := build(t, in, s)
			c.change(s, &in)
			if look := Compare(was, build(t, in, s), nil); look.Verdict != Outdated || !slices.Contains(look.Reasons, c.want) {
				t.Errorf("%+v, want %q", look, c.want)
			}
		})
	}
}

// A rollback knows by the nodes' records where the workloads went, and opens the old
// nodes before it leaves the new ones.
func TestRollbackIntoPlan(t *testing.T) {
	s, in := twoPools(t)
	for _, n := range []string{"a-1", "a-3"} {
		taken(t, s, n, cluster.RoleOld, Migrate)
	}
	for _, n := range poolB.Nodes {
		taken(t, s, n, cluster.RoleNew, Migrate)
	}
	back := intent(Rollback)
	back.Shared = in.Shared
	p := build(t, back, s)
	if diff := cmp.Diff([][]string{{"a-1"}, {"a-3"}, {"b-1"}, {"b-2"}}, nodesByBatch(p)); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Skip{{Node: "a-2", Why: onPluginWhy}}, p.Skipped); diff != "" {
		t.Errorf("left alone (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]StepID{StepMark, StepRestore}, ids(p.StepsOn("a-1"))); diff != "" {
		t.Errorf("steps on an old node (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]StepID{StepMark, StepDrainClaims, StepRetire}, ids(p.StepsOn("b-1"))); diff != "" {
		t.Errorf("steps on a new node (-want +got):\n%s", diff)
	}

	// The old nodes are gone: the plan has nothing of them, and a finding stops it.
	s.Nodes = slices.DeleteFunc(s.Nodes, func(n corev1.Node) bool { return strings.HasPrefix(n.Name, "a-") })
	back.Pool.Nodes = nil
	p = build(t, back, s)
	if !slices.ContainsFunc(names(p.Findings, findingName), func(f string) bool { return f == "blocker DRM056 on pool/gpu-a" }) {
		t.Errorf("findings %v, want DRM056", names(p.Findings, findingName))
	}

	// Over with: the new nodes stay closed, and there is nothing to do.
	s, _ = twoPools(t)
	for _, n := range poolB.Nodes {
		taken(t, s, n, cluster.RoleNew, Rollback)
	}
	if p = build(t, intent(Rollback), s); p.Pending() {
		t.Errorf("batches %v, want none", p.Batches)
	}
}

// Where the records of all nodes are lost the journal still tells.
func TestRollbackIntoWithoutRecords(t *testing.T) {
	s, _ := twoPools(t)
	a1, _ := s.Node("a-1")
	a1.Spec.Unschedulable = true
	a1.Spec.Taints = []corev1.Taint{{Key: "dramigrate.dev/switching", Effect: corev1.TaintEffectNoSchedule}}
	s.Journals = []cluster.Journal{{Pool: "gpu-a", Into: &cluster.PoolRef{Name: poolB.Name, Selector: poolB.Selector}}}
	p := build(t, intent(Rollback), s)
	if diff := cmp.Diff([][]string{{"a-1"}}, nodesByBatch(p)); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
}

func TestMigrateIntoRefuses(t *testing.T) {
	for want, into := range map[string]cluster.NodePool{
		"into itself":        {Name: "gpu-a", Nodes: []string{"b-1"}},
		"node a-2 is in bot": {Name: "gpu-c", Nodes: []string{"a-2", "b-1"}},
		"has no node":        {Name: "gpu-c"},
	} {
		s, in := twoPools(t)
		in.Into = into
		if _, err := Build(in, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
