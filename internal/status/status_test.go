package status

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

const poolLabel = "eks.amazonaws.com/nodegroup"

// world is a cluster under test: pool gpu-a of a-1 and a-2, both migrated by run r1;
// pool gpu-b of b-1, on the plugin; the plugin as prepare left it, with a pod on b-1.
type world struct {
	t *testing.T
	*cluster.Snapshot
}

func newWorld(t *testing.T) world {
	w := world{t, &cluster.Snapshot{}}
	w.DaemonSets = []appsv1.DaemonSet{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "plugin", UID: "plugin"},
		Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"name": "nvidia-device-plugin-ds"}},
			Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "c", Image: "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"}},
				Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
					HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/kubelet/device-plugins"}}}},
				Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
						{Key: "dramigrate.dev/allocation", Operator: corev1.NodeSelectorOpDoesNotExist}}}}}}},
			},
		}},
	}}
	w.Pods = []cluster.Pod{{Namespace: "kube-system", Name: "plugin-b", UID: "pb", Node: "b-1", Phase: corev1.PodRunning, Ready: true,
		Owner: cluster.Owner{Kind: "DaemonSet", Name: "plugin", UID: "plugin"}}}
	for _, n := range []string{"a-1", "a-2", "b-1"} {
		w.add(n, "gpu-"+n[:1])
	}
	w.toDRA("a-1")
	w.toDRA("a-2")
	ended := metav1.Unix(600, 0)
	w.Journals = []cluster.Journal{{Pool: "gpu-a", Selector: poolLabel + "=gpu-a", Nodes: []string{"a-1", "a-2"}, Runs: []cluster.RunRecord{
		{ID: "r1", Operation: "migrate", Who: "me@host/1", PlanDigest: "d1", Started: metav1.Unix(0, 0), Ended: &ended, Outcome: "done"}}}}
	return w
}

func (w world) node(name string) *corev1.Node {
	w.t.Helper()
	n, ok := w.Node(name)
	if !ok {
		w.t.Fatal("no node " + name)
	}
	return n
}

// add makes a node on the plugin with two GPUs.
func (w world) add(name, pool string) {
	two := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}
	w.Nodes = append(w.Nodes, corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{poolLabel: pool}},
		Status: corev1.NodeStatus{Capacity: two, Allocatable: two, NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.37.2"},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	})
}

func (w world) record(name string, st cluster.NodeState) {
	w.t.Helper()
	if st.Pool == "" {
		st.Pool, st.Selector = "gpu-a", poolLabel+"=gpu-a"
	}
	st.Epoch = 1
	text, err := st.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	w.node(name).Annotations = map[string]string{"dramigrate.dev/state": text}
}

func (w world) offer(name string, plugin int, published ...string) {
	w.node(name).Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(fmt.Sprint(plugin))}
	w.Slices = slices.DeleteFunc(w.Slices, func(s resourcev1.ResourceSlice) bool { return s.Name == name })
	if len(published) == 0 {
		return
	}
	s := resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceSliceSpec{Driver: "gpu.nvidia.com",
		NodeName: &name, Pool: resourcev1.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: 1}}}
	for _, d := range published {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: d})
	}
	w.Slices = append(w.Slices, s)
}

// toDRA makes a node what a finished migration leaves.
func (w world) toDRA(name string) {
	at := metav1.Unix(100, 0)
	w.record(name, cluster.NodeState{Operation: "migrate", Run: "r1", Phase: "settle", OpenedAt: &at, SettledAt: &at, PluginGoneAt: &at})
	w.node(name).Labels["dramigrate.dev/allocation"] = "dra"
	w.offer(name, 0, "gpu-0", "gpu-1")
}

func (w world) lock(pool string, expires time.Time) {
	w.Locks = append(w.Locks, cluster.LockInfo{Name: cluster.RecordName(pool), Holder: "me", ExpiresAt: expires, Info: map[string]string{"operation": "migrate"}})
}

var noon = time.Unix(1000, 0)

func (w world) status() *Status {
	return New(w.Snapshot, Options{Resource: "nvidia.com/gpu", Driver: "gpu.nvidia.com", Now: noon})
}

// brief are the strays as "kind object: what".
func brief(s *Status) []string {
	var out []string
	for _, x := range s.Strays {
		out = append(out, fmt.Sprintf("%s %s: %s", x.Kind, x.Object, x.What))
	}
	return out
}

func TestStatus(t *testing.T) {
	w := newWorld(t)
	w.add("b-2", "gpu-b")
	w.node("b-2").Status = corev1.NodeStatus{} // has no GPU
	w.lock("gpu-a", noon.Add(time.Minute))
	s := w.status()

	var names []string
	for _, n := range s.Nodes {
		names = append(names, n.Name)
	}
	if want := []string{"a-1", "a-2", "b-1"}; !slices.Equal(names, want) {
		t.Fatalf("nodes %v, want %v", names, want)
	}
	a, b := s.Nodes[0], s.Nodes[2]
	if a.Mechanism != gate.DRA || *a.Published != 2 || *a.Allocatable != 0 || !a.Ready || a.Operation != "" || a.Pool != "gpu-a" ||
		a.UID != "uid-a-1" || a.KubeletVersion != "v1.37.2" || a.GateLabels["dramigrate.dev/allocation"] != "dra" {
		t.Errorf("a-1: %+v", a)
	}
	if b.Mechanism != gate.Plugin || *b.Allocatable != 2 || *b.Published != 0 || len(b.GateLabels) != 0 {
		t.Errorf("b-1: %+v", b)
	}
	if diff := cmp.Diff([]string(nil), brief(s)); diff != "" {
		t.Errorf("strays of a cluster that is as it has to be (-want +got):\n%s", diff)
	}
	pa, pb := s.Pools[0], s.Pools[1]
	if pa.Nodes != 2 || pa.DRA != 2 || pa.Lock == nil || pa.Lock.Expired || pa.Rollback == nil || pa.Rollback.Result != OK || pa.Rollback.Nodes != 2 {
		t.Errorf("gpu-a: %+v, rollback %+v", pa, pa.Rollback)
	}
	if pb.Nodes != 2 || pb.WithDevices != 1 || pb.Plugin != 1 || pb.Lock != nil || pb.Rollback != nil {
		t.Errorf("gpu-b: %+v", pb)
	}

	one := New(w.Snapshot, Options{Pool: &cluster.NodePool{Name: "gpu-b", Nodes: []string{"b-1", "b-2"}}, Resource: "nvidia.com/gpu", Driver: "gpu.nvidia.com"})
	if len(one.Nodes) != 1 || one.Nodes[0].Name != "b-1" || len(one.Pools) != 1 {
		t.Errorf("one pool: %+v", one)
	}
}

// A pool that no label names is known by its journal, or by its nodes' records.
func TestPoolsThatOnlyRunsKnow(t *testing.T) {
	w := newWorld(t)
	w.node("a-1").Labels["gpu"], w.node("a-2").Labels["gpu"] = "a100", "a100"
	w.Journals[0].Pool, w.Journals[0].Selector = "mine", "gpu=a100"
	at := metav1.Unix(1, 0)
	for _, n := range []string{"a-1", "a-2"} {
		w.record(n, cluster.NodeState{Pool: "mine", Selector: "gpu=a100", Operation: "migrate", Run: "r1", Phase: "settle", OpenedAt: &at, SettledAt: &at})
	}
	s := w.status()
	i := slices.IndexFunc(s.Pools, func(p Pool) bool { return p.Name == "mine" })
	if i < 0 || s.Pools[i].DRA != 2 || s.Pools[i].Rollback == nil || len(s.Pools[i].Runs) != 1 || s.Nodes[0].Pool != "mine" {
		t.Errorf("pools %+v", s.Pools)
	}
	if len(s.Strays) != 0 {
		t.Errorf("strays %v", brief(s))
	}
}

func TestStrays(t *testing.T) {
	started := func(w world, outcome string) { // r2, another migration
		r := cluster.RunRecord{ID: "r2", Operation: "migrate", Started: metav1.Unix(700, 0), Outcome: outcome}
		w.Journals[0].Runs = append(w.Journals[0].Runs, r)
	}
	for _, c := range []struct {
		title  string
		change func(world)
		want   []string
	}{
		{"the autoscaler added a node", func(w world) { w.add("a-3", "gpu-a") }, []string{"on-plugin node/a-3: came after run r1 had migrated the pool"}},
		{"to a pool that never was migrated", func(w world) { w.add("b-9", "gpu-b") }, nil},
		{"a node was made anew under its name", func(w world) {
			n := w.node("a-2")
			n.Annotations, n.UID = nil, "other"
			delete(n.Labels, "dramigrate.dev/allocation")
			w.offer("a-2", 2)
		}, []string{"on-plugin node/a-2: was migrated by run r1 and is on the plugin again"}},
		{"a run has yet to come to the node", func(w world) {
			w.add("a-3", "gpu-a")
			started(w, "stopped")
			w.Journals[0].Nodes = append(w.Journals[0].Nodes, "a-3")
		}, nil},
		{"a node came while a run is stopped", func(w world) { w.add("a-3", "gpu-a"); started(w, "stopped") }, []string{"on-plugin node/a-3: came after run r2 was planned"}},
		{"a run was refused since", func(w world) { w.add("a-3", "gpu-a"); started(w, "refused") }, []string{"on-plugin node/a-3: came after run r1 had migrated"}},
		{"the pool is on its way back", func(w world) {
			w.add("a-3", "gpu-a")
			w.Journals[0].Runs = append(w.Journals[0].Runs, cluster.RunRecord{ID: "r2", Operation: "rollback"})
		}, nil},
		{"the journal is lost", func(w world) { w.add("a-3", "gpu-a"); w.Journals = nil }, []string{"on-plugin node/a-3: is on the plugin while others of the pool are on DRA, and there is no journal"}},
		{"the journal may not be read", func(w world) {
			w.add("a-3", "gpu-a")
			w.Journals, w.Unknown = nil, []cluster.Unknown{{Part: cluster.PartJournals, Reason: "forbidden"}}
		}, []string{"on-plugin node/a-3: is on the plugin while others of the pool are on DRA; whether a run has yet to come to it is not known"}},

		{"both mechanisms", func(w world) { w.offer("a-1", 2, "gpu-0", "gpu-1") }, []string{"two-states node/a-1: ADVERTISED TWICE: the plugin offers 2 and the driver 2 devices"}},
		{"one device of each mechanism", func(w world) { w.offer("a-1", 1, "gpu-0") }, []string{"two-states node/a-1: ADVERTISED TWICE: the plugin offers 1 and the driver 1 device: "}},
		{"one device of the plugin on a switched node", func(w world) { w.offer("a-1", 1) }, []string{"two-states node/a-1: its label says dra, and the plugin offers 1 device"}},
		{"the plugin on a switched node", func(w world) { w.offer("a-1", 2) }, []string{"two-states node/a-1: its label says dra, and the plugin offers 2 devices"}},
		{"the driver on a node of the plugin", func(w world) { w.offer("b-1", 0, "gpu-0") }, []string{"two-states node/b-1: its label says plugin, and the driver publishes 1 device"}},

		{"the label without a record", func(w world) { w.node("b-1").Labels["dramigrate.dev/allocation"] = "dra"; w.offer("b-1", 0) },
			[]string{"unmarked node/b-1: label dramigrate.dev/allocation=dra without annotation dramigrate.dev/state"}},
		{"somebody took the label away", func(w world) { delete(w.node("a-1").Labels, "dramigrate.dev/allocation"); w.offer("a-1", 0) },
			[]string{"drifted node/a-1: label dramigrate.dev/allocation is absent, the record says dra"}},
		{"somebody set it to something else", func(w world) { w.node("a-1").Labels["dramigrate.dev/allocation"] = "no" },
			[]string{"drifted node/a-1: label dramigrate.dev/allocation is no, the record says dra"}},
		{"somebody who is known set it to something else", func(w world) {
			n := w.node("a-1")
			n.Labels["dramigrate.dev/allocation"] = "no"
			n.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl-label", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:dramigrate.dev/allocation":{}}}}`)}}
		}, []string{"drifted node/a-1: label dramigrate.dev/allocation is no (by kubectl-label), the record says dra"}},

		{"a run was killed", func(w world) {
			w.record("a-2", cluster.NodeState{Operation: "migrate", Run: "r2", Phase: "plugin-off"})
			w.node("a-2").Labels["dramigrate.dev/allocation"] = "switching"
			w.node("a-2").Spec.Taints = []corev1.Taint{gate.SwitchingTaint()}
			w.offer("a-2", 2)
		}, []string{"part-way node/a-2: run r2 (migrate) has left it at step plugin-off"}},
		{"its lock has expired", func(w world) {
			w.record("a-2", cluster.NodeState{Operation: "rollback", Run: "r2", Phase: "driver-off"})
			w.node("a-2").Labels["dramigrate.dev/allocation"] = "switching"
			w.lock("gpu-a", noon)
		}, []string{"part-way node/a-2: run r2 (rollback) has left it at step driver-off"}},
		{"a run is at work", func(w world) {
			w.record("a-2", cluster.NodeState{Operation: "migrate", Run: "r2", Phase: "plugin-off"})
			w.node("a-2").Labels["dramigrate.dev/allocation"] = "switching"
			w.node("a-2").Spec.Taints = []corev1.Taint{gate.SwitchingTaint()}
			w.offer("a-2", 2)
			w.lock("gpu-a", noon.Add(time.Second))
		}, nil},

		{"a node left its pool", func(w world) { w.node("a-2").Labels[poolLabel] = "gpu-b" },
			[]string{"left-pool node/a-2: carries the record of pool gpu-a"}},
		{"a node is gone", func(w world) {
			w.Nodes = slices.DeleteFunc(w.Nodes, func(n corev1.Node) bool { return n.Name == "a-2" })
		},
			[]string{"gone node/a-2: runs have worked on it"}},
		{"the plugin's affinity was taken back", func(w world) { w.DaemonSets[0].Spec.Template.Spec.Affinity = nil },
			[]string{"gate-open daemonset/kube-system/plugin: nothing keeps the plugin off a-1, a-2"}},
		{"a record that cannot be read", func(w world) { w.node("a-2").Annotations["dramigrate.dev/state"] = "{" },
			[]string{"unreadable node/a-2: annotation dramigrate.dev/state: "}},
		{"a record of a pool that no pool is called", func(w world) {
			w.node("a-2").Annotations["dramigrate.dev/state"] = `{"pool":"x;touch /tmp/y","operation":"migrate","run":"r1"}`
		}, []string{"unreadable node/a-2: annotation dramigrate.dev/state: pool"}},
	} {
		t.Run(c.title, func(t *testing.T) {
			w := newWorld(t)
			c.change(w)
			got := brief(w.status())
			for i, want := range c.want {
				if i >= len(got) || !strings.HasPrefix(got[i], want) {
					t.Errorf("strays %q, want %q", got, c.want)
				}
			}
			if len(got) != len(c.want) {
				t.Errorf("%d strays, want %d: %q", len(got), len(c.want), got)
			}
		})
	}
}

// Of files that do not say when they were made, nobody knows whether who holds a lock is
// alive: neither that he is, nor that nobody is.
func TestLockOfUndatedFiles(t *testing.T) {
	w := newWorld(t)
	w.record("a-2", cluster.NodeState{Operation: "rollback", Run: "r2", Phase: "driver-off"})
	w.node("a-2").Labels["dramigrate.dev/allocation"] = "switching"
	w.lock("gpu-a", noon.Add(-time.Hour))
	s := New(w.Snapshot, Options{Resource: "nvidia.com/gpu", Driver: "gpu.nvidia.com", Now: noon, Undated: true})
	if lock := s.Pools[0].Lock; lock == nil || !lock.Unknown || lock.Expired {
		t.Errorf("lock %+v, want it unknown whether it has expired", lock)
	}
	got := brief(s)
	if len(got) != 1 || !strings.Contains(got[0], "whether me, who holds the pool's lock since ") || strings.Contains(got[0], "nobody holds") {
		t.Errorf("strays %q, want one that says that it is not known", got)
	}
	w.Journals[0].Runs[0].Ended = nil
	if h := History(w.Snapshot, Options{Now: noon.Add(-2 * time.Hour), Undated: true}, "gpu-a"); h.Runs[0].Active {
		t.Error("the run is said to go on")
	}
}

// What a node's record says about its label, step by step: a step writes its name and
// its labels in one PATCH, and a run that goes on finds a node further on.
func TestDrift(t *testing.T) {
	gone := metav1.Unix(1, 0)
	for _, c := range []struct {
		operation, phase string
		pluginGone       bool
		right            []string // values without drift; "" is absent
	}{
		{"migrate", "mark", false, []string{"", "switching"}},
		{"migrate", "probe-before", false, []string{"", "switching"}},
		{"migrate", "mark", true, []string{"", "switching", "dra"}},
		{"migrate", "plugin-off", false, []string{"switching"}},
		{"migrate", "plugin-off", true, []string{"switching", "dra"}},
		{"migrate", "podresources-list", true, []string{"switching", "dra"}},
		{"migrate", "driver-on", true, []string{"dra"}},
		{"migrate", "open", true, []string{"dra"}},
		{"migrate", "settle", true, []string{"dra"}},
		{"rollback", "mark", true, []string{"", "switching", "dra"}},
		{"rollback", "driver-off", true, []string{"switching"}},
		{"rollback", "plugin-on", true, []string{""}},
	} {
		for _, value := range []string{"", "switching", "dra", "other"} {
			w := newWorld(t)
			st := cluster.NodeState{Operation: c.operation, Run: "r", Phase: c.phase}
			if c.pluginGone {
				st.PluginGoneAt = &gone
			}
			w.record("a-1", st)
			w.node("a-1").Labels["dramigrate.dev/allocation"] = value
			if value == "" {
				delete(w.node("a-1").Labels, "dramigrate.dev/allocation")
			}
			n := w.status().Nodes[0]
			if drifted, want := len(n.Drift) > 0, !slices.Contains(c.right, value); drifted != want {
				t.Errorf("%s at %s, label %q: drift %v, want %v", c.operation, c.phase, value, n.Drift, want)
			}
			if len(n.Drift) > 0 && (n.Drift[0].Have != value || !slices.Contains(c.right, n.Drift[0].Want)) {
				t.Errorf("%s at %s, label %q: %+v", c.operation, c.phase, value, n.Drift)
			}
		}
	}
	w := newWorld(t)
	w.record("a-1", cluster.NodeState{Operation: "migrate", Run: "r", Phase: "settle", Gate: "of-tomorrow"})
	if n := w.status().Nodes[0]; !strings.Contains(n.Problem, "of-tomorrow") || len(n.Drift) != 0 {
		t.Errorf("a gate that is not known: %+v", n)
	}
}

func TestRollbackReadiness(t *testing.T) {
	prepared := func(w world, uid types.UID) {
		w.Journals = append([]cluster.Journal{{Shared: &cluster.SharedRecord{PreImages: []cluster.PreImage{{
			Object: cluster.ObjectRef{Kind: "DaemonSet", Namespace: "kube-system", Name: "plugin", UID: uid}, Path: "/spec/template/spec/affinity"}}}}}, w.Journals...)
	}
	for _, c := range []struct {
		title  string
		change func(world)
		result Result
		why    []string
	}{
		{"ready", func(w world) { prepared(w, "plugin") }, OK, nil},
		{"a cordon and our own taint do not matter", func(w world) {
			w.node("a-1").Spec.Unschedulable = true
			w.node("a-1").Spec.Taints = []corev1.Taint{gate.SwitchingTaint()}
		}, OK, nil},
		{"the plugin was uninstalled", func(w world) { prepared(w, "plugin"); w.DaemonSets, w.Pods = nil, nil }, Failed,
			[]string{"no DaemonSet serves nvidia.com/gpu any more", "daemonset/kube-system/plugin, which prepare edited, is gone"}},
		{"its selector wants a label that is gone", func(w world) {
			w.DaemonSets[0].Spec.Template.Spec.NodeSelector = map[string]string{"nvidia.com/gpu.present": "true"}
			w.node("a-1").Labels["nvidia.com/gpu.present"] = "true"
		}, Failed, []string{"the plugin would not come back on a-2: daemonset/kube-system/plugin: its node selector or node affinity does not match"}},
		{"a taint that it does not tolerate", func(w world) {
			for _, n := range []string{"a-1", "a-2"} {
				w.node(n).Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
			}
		}, Failed, []string{"the plugin would not come back on a-1, a-2: daemonset/kube-system/plugin: it does not tolerate the node's taint gpu:NoSchedule"}},
		{"its image is gone", func(w world) { w.Pods[0].Ready, w.Pods[0].Waiting = false, "ImagePullBackOff" }, Failed,
			[]string{"daemonset/kube-system/plugin: none of its pods is ready: pod kube-system/plugin-b on node b-1 ImagePullBackOff"}},
		{"it runs nowhere, as every node is switched", func(w world) { w.Pods = nil }, OK, nil},
		{"daemonsets may not be read", func(w world) {
			w.DaemonSets, w.Unknown = nil, []cluster.Unknown{{Part: cluster.PartDaemonSets, Reason: "forbidden"}}
		}, Unknown, []string{"daemonsets could not be read: forbidden"}},
		{"pods may not be read", func(w world) {
			w.Pods, w.Unknown = nil, []cluster.Unknown{{Part: cluster.PartPods, Reason: "forbidden"}}
		}, Unknown,
			[]string{"whether the plugin's image runs is not known: pods could not be read: forbidden"}},
	} {
		t.Run(c.title, func(t *testing.T) {
			w := newWorld(t)
			c.change(w)
			r := w.status().Pools[0].Rollback
			if r == nil || r.Result != c.result || r.Nodes != 2 || len(r.Why) != len(c.why) {
				t.Fatalf("%+v, want %s: %q", r, c.result, c.why)
			}
			for i := range c.why {
				if !strings.HasPrefix(r.Why[i], c.why[i]) {
					t.Errorf("%q, want %q", r.Why[i], c.why[i])
				}
			}
		})
	}
}

// What may not be read is not shown as none.
func TestStatusWithLessRights(t *testing.T) {
	w := newWorld(t)
	w.Slices, w.Journals = nil, nil
	w.Unknown = []cluster.Unknown{{Part: cluster.PartSlices, Reason: "forbidden"}, {Part: cluster.PartJournals, Reason: "forbidden"}, {Part: cluster.PartLocks, Reason: "forbidden"}}
	s := w.status()
	if s.Nodes[0].Published != nil || len(s.Unknown) != 3 || len(s.Strays) != 0 {
		t.Errorf("published %v, unknown %v, strays %v", s.Nodes[0].Published, s.Unknown, brief(s))
	}
}

func TestHistory(t *testing.T) {
	w := newWorld(t)
	w.Journals[0].Runs = append(w.Journals[0].Runs, cluster.RunRecord{ID: "r3", Operation: "rollback", Started: metav1.Unix(900, 0)})
	w.Journals = append([]cluster.Journal{{Runs: []cluster.RunRecord{{ID: "r0", Operation: "prepare", Started: metav1.Unix(-5, 0), Ended: new(metav1.Unix(-1, 0)), Outcome: "done"}}}}, w.Journals...)
	w.Journals = append(w.Journals, cluster.Journal{Pool: "gpu-b", Runs: []cluster.RunRecord{{ID: "r2", Started: metav1.Unix(500, 0)}}})
	w.lock("gpu-a", noon.Add(time.Minute))
	states := func(pool string) []string {
		var out []string
		for _, r := range History(w.Snapshot, Options{Now: noon}, pool).Runs {
			out = append(out, r.Pool+" "+r.ID+" "+r.State())
		}
		return out
	}
	if diff := cmp.Diff([]string{"gpu-a r3 running", "gpu-b r2 unfinished", "gpu-a r1 done", " r0 done"}, states("")); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"gpu-a r3 running", "gpu-a r1 done"}, states("gpu-a")); diff != "" {
		t.Errorf("one pool (-want +got):\n%s", diff)
	}
}
