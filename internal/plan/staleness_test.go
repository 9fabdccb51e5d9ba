package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

// compared makes the plan of an operation, changes the cluster and makes it again.
func compared(t *testing.T, op Operation, runs func(digest string) []cluster.RunRecord, change func(*cluster.Snapshot, *Intent)) (was, now *Plan, look Staleness) {
	t.Helper()
	s, record := prepared(t)
	in := intent(op)
	in.Shared = record
	was = build(t, in, s)
	change(s, &in)
	now = build(t, in, s)
	var list []cluster.RunRecord
	if runs != nil {
		list = runs(was.Digest)
	}
	return was, now, Compare(was, now, list)
}

// What the world may do between the review and the window, and what comes of it.
func TestCompare(t *testing.T) {
	deleteNode := func(s *cluster.Snapshot, in *Intent, name string) {
		s.Nodes = slices.DeleteFunc(s.Nodes, func(n corev1.Node) bool { return n.Name == name })
		in.Pool.Nodes = slices.DeleteFunc(slices.Clone(in.Pool.Nodes), func(n string) bool { return n == name })
	}
	pod := func(s *cluster.Snapshot, name string) *cluster.Pod {
		return &s.Pods[slices.IndexFunc(s.Pods, func(p cluster.Pod) bool { return p.Name == name })]
	}
	for _, c := range []struct {
		title   string
		change  func(*cluster.Snapshot, *Intent)
		verdict Verdict
		want    []string // the reasons, or what has moved, all of them, by a part
	}{
		{"nothing", func(*cluster.Snapshot, *Intent) {}, Same, nil},
		{"a budget's status", func(s *cluster.Snapshot, _ *Intent) { s.Budgets[0].Status.DisruptionsAllowed = 2 }, Same, nil},
		{"a pod of another pool", func(s *cluster.Snapshot, _ *Intent) { pod(s, "x4").Name = "x5" }, Same, nil},

		{"a pod has moved within the pool", func(s *cluster.Snapshot, _ *Intent) { pod(s, "x1").Node = "a-2" }, Moved,
			[]string{"pod to evict gone: default/x1 on a-1", "pod to evict new: default/x1 on a-2"}},
		{"a pod was replaced", func(s *cluster.Snapshot, _ *Intent) { p := pod(s, "x1"); p.Name, p.UID = "x9", "x9" }, Moved,
			[]string{"pod to evict gone: default/x1", "pod to evict new: default/x9"}},
		{"a pod with a budget of its own came", func(s *cluster.Snapshot, _ *Intent) {
			p := gpuPod("infer", "y1", "a-2")
			s.Pods = append(s.Pods, p)
			s.Budgets = append(s.Budgets, policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "infer"},
				Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "infer"}}},
				Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1}})
		}, Moved, []string{"budget new: default/infer", "pod to evict new: default/y1"}},
		{"a control plane's patch release", func(s *cluster.Snapshot, _ *Intent) { s.Identity.ServerVersion = "v1.37.3" }, Moved,
			[]string{"server version v1.37.2, now v1.37.3"}},
		{"the class is there, as this plan would create it", func(s *cluster.Snapshot, in *Intent) { s.Classes = []resourcev1.DeviceClass{*in.Shared.HeldClass} }, Moved,
			[]string{"deviceclass/gpu.nvidia.com is there already", "finding new: info DRM014"}},

		{"a node is gone", func(s *cluster.Snapshot, in *Intent) { deleteNode(s, in, "a-2") }, Outdated, []string{"node gone: a-2 with UID uid-a-2"}},
		{"a node is new", func(s *cluster.Snapshot, in *Intent) {
			s.Nodes = append(s.Nodes, gpuNode("a-4", "gpu-a"))
			s.Pods = append(s.Pods, daemonPod(&s.DaemonSets[1], "a-4", "5"))
			in.Pool.Nodes = append(slices.Clone(in.Pool.Nodes), "a-4")
		}, Outdated, []string{"node new: a-4 with UID uid-a-4", "node a-4 is in a batch now"}},
		{"a node was replaced under its name", func(s *cluster.Snapshot, _ *Intent) { s.Nodes[0].UID = "other" }, Outdated,
			[]string{"node gone: a-1 with UID uid-a-1", "node new: a-1 with UID other"}},
		{"a node lost its GPUs", func(s *cluster.Snapshot, _ *Intent) {
			s.Nodes[1].Status.Capacity, s.Nodes[1].Status.Allocatable = nil, nil
		}, Outdated,
			[]string{"node a-2 is left alone now: has no nvidia.com/gpu"}},
		{"another plan has switched a node", func(s *cluster.Snapshot, _ *Intent) { migrated(t, s, "a-1", true) }, Outdated,
			[]string{"node a-1 is left alone now: is on DRA already, by run r1"}},
		{"the plugin's image", func(s *cluster.Snapshot, _ *Intent) {
			s.DaemonSets[1].Spec.Template.Spec.Containers = []corev1.Container{{Name: "ctr", Image: "nvcr.io/nvidia/k8s-device-plugin:v0.21.0"}}
		}, Outdated, []string{"daemonset/kube-system/nvidia-device-plugin-daemonset has changed"}},
		{"the driver's DaemonSet made anew", func(s *cluster.Snapshot, _ *Intent) { s.DaemonSets[0].UID = "other" }, Outdated,
			[]string{"daemonset/dra/driver has changed"}},
		{"a second plugin", func(s *cluster.Snapshot, _ *Intent) {
			second := *s.DaemonSets[1].DeepCopy()
			second.Name, second.UID = "second", "second"
			s.DaemonSets = append(s.DaemonSets, second)
		}, Outdated, []string{"daemonset/kube-system/second is new", "device plugin DaemonSet new: kube-system/second"}},
		{"another class has the name", func(s *cluster.Snapshot, _ *Intent) {
			s.Classes = []resourcev1.DeviceClass{*OwnClass("nvidia.com/gpu", "gpu.nvidia.com")}
		}, Outdated, []string{"deviceclass/dramigrate-nvidia-gpu carries nvidia.com/gpu and is not the one"}},
		{"the class by that name selects something else", func(s *cluster.Snapshot, in *Intent) {
			class := in.Shared.HeldClass.DeepCopy()
			class.Spec.Selectors[0].CEL.Expression = "true"
			s.Classes = []resourcev1.DeviceClass{*class}
		}, Outdated, []string{"deviceclass/gpu.nvidia.com carries nvidia.com/gpu and is not the one"}},
		{"a budget's spec", func(s *cluster.Snapshot, _ *Intent) { s.Budgets[0].Spec.MinAvailable = new(intstr.FromString("90%")) }, Outdated,
			[]string{"poddisruptionbudget/default/train has changed"}},
		{"a budget over pods that had none", func(s *cluster.Snapshot, _ *Intent) {
			second := *s.Budgets[0].DeepCopy()
			second.Name = "second"
			s.Budgets = append(s.Budgets, second)
		}, Outdated, []string{"poddisruptionbudget/default/second covers pods that it did not",
			"new blocker DRM023 on replicaset/default/train-1"}},
		{"a budget was deleted", func(s *cluster.Snapshot, _ *Intent) { s.Budgets = nil }, Outdated,
			[]string{"poddisruptionbudget/default/train does not cover pods any more that it did"}},
		{"the driver's source", func(_ *cluster.Snapshot, in *Intent) {
			record := *in.Shared
			record.DriverSource = "sha256:other"
			in.Shared = &record
		}, Outdated, []string{"source of the DRA driver: sha256:"}},
		{"a setting", func(_ *cluster.Snapshot, in *Intent) { in.Settings.Soak.Duration = time.Hour }, Outdated,
			[]string{"settings", "step open on nodes"}},
		{"another version of the tool", func(_ *cluster.Snapshot, in *Intent) { in.ToolVersion = "v9" }, Outdated,
			[]string{"made by dramigrate v0.0.0-test, this is v9"}},

		{"another cluster", func(s *cluster.Snapshot, _ *Intent) { s.Identity.UID = "z" }, Refused,
			[]string{"kube-system has UID cluster-uid there and z here"}},
		{"which cluster it is cannot be seen", func(s *cluster.Snapshot, _ *Intent) { s.Identity.UID = "" }, Refused, []string{"cannot be seen"}},
	} {
		t.Run(c.title, func(t *testing.T) {
			_, _, look := compared(t, Migrate, nil, c.change)
			got := look.Reasons
			if look.Runs() {
				got = look.Moved
			}
			if look.Verdict != c.verdict || look.Resumes != "" || (look.Verdict != Moved && look.Runs()) != (c.verdict == Same) {
				t.Fatalf("verdict %s, want %s: %q, moved %q", look.Verdict, c.verdict, look.Reasons, look.Moved)
			}
			wantParts(t, got, c.want)
		})
	}
}

// wantParts wants one text with each of the parts, and no other, in any order.
func wantParts(t *testing.T, got, parts []string) {
	t.Helper()
	for _, part := range parts {
		if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, part) }) {
			t.Errorf("%q, want one with %q", got, part)
		}
	}
	if len(got) != len(parts) {
		t.Errorf("%d texts, want %d: %q", len(got), len(parts), got)
	}
}

func TestCompareFindings(t *testing.T) {
	for _, c := range []struct {
		severity checks.Severity
		verdict  Verdict
		want     string
	}{
		{checks.Blocker, Outdated, "new blocker DRM099 on node/x"},
		{checks.Unknown, Outdated, "new unknown DRM099 on node/x"},
		{checks.Warning, Moved, "finding new: warning DRM099 on node/x"},
	} {
		was, now := savedPlan(t), savedPlan(t)
		now.Findings = append(now.Findings, checks.Finding{Code: "DRM099", Severity: c.severity, Object: "node/x"})
		look := Compare(was, now, nil)
		if look.Verdict != c.verdict || !slices.Equal(slices.Concat(look.Reasons, look.Moved), []string{c.want}) {
			t.Errorf("%s: %+v", c.severity, look)
		}
		// One that was reviewed is nothing new.
		if look := Compare(now, now, nil); look.Verdict != Same {
			t.Errorf("%s: %+v", c.severity, look)
		}
	}
}

func TestCompareOperations(t *testing.T) {
	was, now := savedPlan(t), savedPlan(t)
	now.Operation = Rollback
	if look := Compare(was, now, nil); look.Verdict != Refused || look.Reasons[0] != "it is a plan to migrate, not to rollback" {
		t.Errorf("%+v", look)
	}
}

// A plan that was edited by hand has the steps of somebody; they are named.
func TestCompareEditedSteps(t *testing.T) {
	was, now := savedPlan(t), savedPlan(t)
	was.NodeSteps[0].Changes[0].Patch = "[]"
	was.Batches = []Batch{{Nodes: []string{"a-1", "a-2", "a-3"}}}
	look := Compare(was, now, nil)
	if look.Verdict != Outdated {
		t.Fatalf("%+v", look)
	}
	wantParts(t, look.Reasons, []string{"step mark on nodes", "the order or the size of the batches"})
}

func run(id, digest, outcome string) cluster.RunRecord {
	r := cluster.RunRecord{ID: id, PlanDigest: digest, Outcome: outcome, Who: "me@host"}
	if outcome != "" {
		r.Ended = new(metav1.Unix(0, 0))
	}
	return r
}

// partWay is the cluster in which the run of the migration stopped: a-1 is done, a-2
// is closed and not switched yet, the class is there.
func partWay(t *testing.T) func(*cluster.Snapshot, *Intent) {
	return func(s *cluster.Snapshot, in *Intent) {
		migrated(t, s, "a-1", true)
		node, _ := s.Node("a-3")
		node.Spec.Taints = append(node.Spec.Taints, gate.SwitchingTaint())
		s.Pods = slices.DeleteFunc(s.Pods, func(p cluster.Pod) bool { return p.Node == "a-1" || p.Node == "a-3" && p.Owner.Kind == "ReplicaSet" })
		s.Classes = []resourcev1.DeviceClass{*in.Shared.HeldClass}
	}
}

func TestCompareWithTheJournal(t *testing.T) {
	nothing := func(*cluster.Snapshot, *Intent) {}
	for _, c := range []struct {
		title   string
		change  func(*cluster.Snapshot, *Intent)
		runs    func(digest string) []cluster.RunRecord
		verdict Verdict
		resumes string
		want    []string // reasons
	}{
		{"applied already", nothing, func(d string) []cluster.RunRecord {
			return []cluster.RunRecord{run("r1", "x", "done"), run("r2", d, "done"), run("r3", "rollback", "done")}
		}, Refused, "", []string{"it was applied already at 1970-01-01T00:00:00Z, by run r2 of me@host"}},
		{"refused before anything was changed", nothing, func(d string) []cluster.RunRecord { return []cluster.RunRecord{run("r1", d, "refused")} }, Same, "", nil},
		{"stopped and rolled back since", nothing, func(d string) []cluster.RunRecord {
			return []cluster.RunRecord{run("r1", d, "stopped"), run("r2", "rollback", "done")}
		}, Same, "", nil},
		{"stopped part-way", partWay(t), func(d string) []cluster.RunRecord {
			return []cluster.RunRecord{run("r1", "x", "done"), run("r2", d, "stopped")}
		}, Moved, "r2", nil},
		{"killed part-way, then refused", partWay(t), func(d string) []cluster.RunRecord {
			return []cluster.RunRecord{run("r2", d, ""), run("r3", "y", "refused")}
		}, Moved, "r2", nil},
		{"stopped part-way, but by another plan", partWay(t), func(string) []cluster.RunRecord { return []cluster.RunRecord{run("r1", "x", "stopped")} },
			Outdated, "", []string{"node a-1 is left alone now: is on DRA already, by run r1"}},
		{"stopped part-way, and another plan since", partWay(t), func(d string) []cluster.RunRecord {
			return []cluster.RunRecord{run("r1", d, "stopped"), run("r2", "x", "stopped")}
		}, Outdated, "", []string{"node a-1 is left alone now"}},
		{"stopped part-way, and a node is gone since", func(s *cluster.Snapshot, in *Intent) {
			partWay(t)(s, in)
			s.Nodes = slices.DeleteFunc(s.Nodes, func(n corev1.Node) bool { return n.Name == "a-2" })
			in.Pool.Nodes = []string{"a-1", "a-3"}
		}, func(d string) []cluster.RunRecord { return []cluster.RunRecord{run("r1", d, "stopped")} },
			Outdated, "", []string{"node gone: a-2"}},
		{"stopped part-way, and a node has lost its GPUs since", func(s *cluster.Snapshot, in *Intent) {
			partWay(t)(s, in)
			s.Nodes[1].Status.Capacity, s.Nodes[1].Status.Allocatable = nil, nil
		}, func(d string) []cluster.RunRecord { return []cluster.RunRecord{run("r1", d, "stopped")} },
			Outdated, "", []string{"node a-2 is left alone now: has no nvidia.com/gpu"}},
	} {
		t.Run(c.title, func(t *testing.T) {
			was, now, look := compared(t, Migrate, c.runs, c.change)
			if look.Verdict != c.verdict || look.Resumes != c.resumes {
				t.Fatalf("verdict %s, resumes %q: %q, moved %q", look.Verdict, look.Resumes, look.Reasons, look.Moved)
			}
			wantParts(t, look.Reasons, c.want)
			if c.resumes == "" {
				return
			}
			if !slices.Equal(look.Done, []string{"a-1"}) {
				t.Errorf("done %v, want a-1", look.Done)
			}
			// The closed node comes first; what runs is what was reviewed, and the engine's
			// own look at it, under the lock, agrees.
			left := Rebase(was, now)
			if diff := cmp.Diff([]Batch{{Nodes: []string{"a-2", "a-3"}}}, left.Batches); diff != "" || left.Digest != was.Digest {
				t.Errorf("digest %s, batches (-want +got):\n%s", left.Digest, diff)
			}
			if again := Compare(left, now, c.runs(was.Digest)); !again.Runs() {
				t.Errorf("under the lock: %+v", again)
			}
		})
	}
}

func TestRebaseKeepsTheReviewedBatchesAndBeginsWithTheClosed(t *testing.T) {
	batch := func(nodes ...string) Batch { return Batch{Nodes: nodes} }
	was := &Plan{Digest: "was", Batches: []Batch{batch("a"), batch("b", "c"), batch("d", "e"), batch("f")}}
	// b and c are done, d was left closed.
	now := &Plan{Digest: "now", Batches: []Batch{batch("d"), batch("a", "e"), batch("f")}}
	got := Rebase(was, now)
	if diff := cmp.Diff([]Batch{batch("d", "e"), batch("a"), batch("f")}, got.Batches); diff != "" || got.Digest != "was" {
		t.Errorf("digest %s, batches (-want +got):\n%s", got.Digest, diff)
	}
}

func TestCompareRollbackPartWay(t *testing.T) {
	s, record := prepared(t)
	for _, n := range []string{"a-1", "a-2", "a-3"} {
		migrated(t, s, n, true)
	}
	in := intent(Rollback)
	in.Shared = record
	was := build(t, in, s)
	node, _ := s.Node("a-1")
	delete(node.Labels, "dramigrate.dev/allocation")
	node.Annotations = nil
	now := build(t, in, s)
	look := Compare(was, now, []cluster.RunRecord{run("r2", was.Digest, "stopped")})
	if !look.Runs() || look.Resumes != "r2" || !slices.Equal(look.Done, []string{"a-1"}) {
		t.Errorf("%+v", look)
	}
	if look := Compare(was, now, nil); look.Verdict != Outdated {
		t.Errorf("without a run: %+v", look)
	}
}

// prepare that stopped after the plugin's DaemonSet was edited.
func TestComparePreparePartWay(t *testing.T) {
	in := intent(Prepare)
	in.Manifests = readManifests(t, manifestFiles())
	s := testCluster()
	was := build(t, in, s)
	plugin := &s.DaemonSets[0]
	plugin.Spec.Template.Spec.Affinity = excludedAffinity()
	now := build(t, in, s)
	runs := []cluster.RunRecord{run("r1", was.Digest, "")}
	look := Compare(was, now, runs)
	if !look.Runs() || look.Resumes != "r1" {
		t.Fatalf("%+v", look)
	}
	if look := Compare(was, now, nil); look.Verdict != Outdated {
		t.Errorf("without a run: %+v", look)
	}
	ids := names(Rebase(was, now).Shared, func(s Step) StepID { return s.ID })
	if !slices.Equal(ids, []StepID{StepNamespace, StepDriverInstall, StepRecord}) {
		t.Errorf("steps %v", ids)
	}

	// Another DaemonSet of the plugin would have to be edited as well.
	second := pluginDaemonSet()
	second.Name, second.UID = "second", "second"
	s.DaemonSets = append(s.DaemonSets, second)
	look = Compare(was, build(t, in, s), runs)
	if look.Verdict != Outdated || !slices.Contains(look.Reasons, "step plugin-exclude on kube-system/second") {
		t.Errorf("%+v", look)
	}
}

// More restarts than the reviewers agreed to.
func TestComparePrepareRestarts(t *testing.T) {
	in := intent(Prepare)
	in.Manifests = readManifests(t, manifestFiles())
	s := testCluster()
	was := build(t, in, s)
	plugin := s.DaemonSets[0]
	moved := slices.IndexFunc(s.Pods, func(p cluster.Pod) bool { return p.Node == "a-2" && p.Owner.Kind == "DaemonSet" })
	s.Pods[moved].Name = "nvidia-device-plugin-daemonset-new"
	if look := Compare(was, build(t, in, s), nil); look.Verdict != Moved {
		t.Errorf("a plugin pod was replaced: %+v", look)
	}
	s.Nodes = append(s.Nodes, gpuNode("a-4", "gpu-a"))
	s.Pods = append(s.Pods, daemonPod(&plugin, "a-4", "4"))
	if look := Compare(was, build(t, in, s), nil); look.Verdict != Outdated || !slices.Equal(look.Reasons, []string{"a pod on node a-4 would restart"}) {
		t.Errorf("a plugin pod more: %+v", look)
	}
}

// unprepare that stopped after the class was deleted and the driver was gone.
func TestCompareUnpreparePartWay(t *testing.T) {
	s, record := prepared(t)
	record.Created = append(record.Created, cluster.CreatedObject{ObjectRef: cluster.ObjectRef{
		APIVersion: "resource.k8s.io/v1", Kind: "DeviceClass", Name: record.HeldClass.Name, UID: types.UID("made")}})
	s.Classes = []resourcev1.DeviceClass{*record.HeldClass}
	in := intent(Unprepare)
	in.Shared = record
	was := build(t, in, s)
	s.Classes = nil
	s.DaemonSets = slices.DeleteFunc(s.DaemonSets, func(d appsv1.DaemonSet) bool { return d.Name == "driver" })
	now := build(t, in, s)
	look := Compare(was, now, []cluster.RunRecord{run("r1", was.Digest, "stopped")})
	if !look.Runs() || look.Resumes != "r1" {
		t.Errorf("%+v", look)
	}
	if look := Compare(was, now, nil); look.Verdict != Outdated {
		t.Errorf("without a run: %+v", look)
	}
}
