package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/engine"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// twoNodes is preparedCluster with a second node, and a pod that a drain evicts.
func twoNodes() []runtime.Object {
	objects := preparedCluster()
	node := objects[1].(*corev1.Node).DeepCopy()
	node.Name, node.UID = "a-2", "a-2"
	plugin := objects[len(objects)-1].(*corev1.Pod).DeepCopy()
	plugin.Name, plugin.UID, plugin.Spec.NodeName = "plugin-2", "p2", "a-2"
	return append(objects, node, plugin, gpuPod("train-1"))
}

func gpuPod(name string) *corev1.Pod {
	one := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "train"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "train", UID: "rs", Controller: ptr.To(true)}}},
		Spec:   corev1.PodSpec{NodeName: "a-1", Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Limits: one, Requests: one}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

// save plans on the cluster and returns the file.
func save(t *testing.T, objects []runtime.Object) (file string, p *plan.Plan) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "plan.yaml")
	if o := invoke(t, objects, nil, done, "plan", "gpu-a", "--helper-image", "h", "--out", file); o.code != ExitOK {
		t.Fatalf("exit code %d\n%s", o.code, o.err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if p, err = plan.Parse(data); err != nil {
		t.Fatal(err)
	}
	return file, p
}

func journal(t *testing.T, runs ...cluster.RunRecord) runtime.Object {
	t.Helper()
	text, err := yaml.Marshal(cluster.Journal{APIVersion: cluster.APIVersion, Kind: cluster.JournalKind, Pool: "gpu-a", Runs: runs})
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "dramigrate-system", Name: "pool-gpu-a", Labels: map[string]string{"dramigrate.dev/kind": "journal"}},
		Data:       map[string]string{"journal.yaml": string(text)},
	}
}

// switched is a node as a run that finished with it leaves it.
func switched(t *testing.T, node *corev1.Node) {
	t.Helper()
	at := metav1.Unix(0, 0)
	text, err := cluster.NodeState{Pool: "gpu-a", Selector: "eks.amazonaws.com/nodegroup=gpu-a", Operation: "migrate", Run: "r1", Epoch: 1,
		Phase: "settle", Resources: []string{"nvidia.com/gpu"}, OpenedAt: &at, SettledAt: &at}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	node.Labels["dramigrate.dev/allocation"] = "dra"
	node.Annotations = map[string]string{"dramigrate.dev/state": text}
	node.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("0")}
}

func TestSavedPlan(t *testing.T) {
	for _, c := range []struct {
		title  string
		change func(t *testing.T, objects []runtime.Object, saved *plan.Plan) []runtime.Object
		code   int
		want   string // on stderr
	}{
		{"the same", func(_ *testing.T, o []runtime.Object, _ *plan.Plan) []runtime.Object { return o }, ExitOK, "is on DRA"},
		{"a pod was replaced", func(_ *testing.T, o []runtime.Object, _ *plan.Plan) []runtime.Object {
			return append(o[:len(o)-1], gpuPod("train-2"))
		}, ExitOK, "without harm to it: pod to evict gone: default/train-1 on a-1; pod to evict new: default/train-2 on a-1."},
		{"a budget came", func(_ *testing.T, o []runtime.Object, _ *plan.Plan) []runtime.Object {
			return append(o, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "train"},
				Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(0)),
					Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "train"}}},
				Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1, ExpectedPods: 1}})
		}, ExitRefused, "the cluster asks for another plan now: poddisruptionbudget/default/train covers pods that it did not; look at a new plan"},
		{"the pool is gone", func(_ *testing.T, o []runtime.Object, _ *plan.Plan) []runtime.Object {
			for i := range o {
				if n, ok := o[i].(*corev1.Node); ok {
					n.Labels["eks.amazonaws.com/nodegroup"] = "other"
				}
			}
			return o
		}, ExitRefused, "the cluster asks for another plan now: "},
		{"another cluster", func(_ *testing.T, o []runtime.Object, _ *plan.Plan) []runtime.Object {
			o[0].(*corev1.Namespace).UID = "other"
			return o
		}, ExitRefused, "is not run: it is a plan for another cluster: kube-system has UID cluster-uid there and other here"},
		{"applied already", func(t *testing.T, o []runtime.Object, p *plan.Plan) []runtime.Object {
			return append(o, journal(t, cluster.RunRecord{ID: "r1", Operation: "migrate", Who: "me", PlanDigest: p.Digest, Outcome: "done"}))
		}, ExitRefused, "is not run: it was applied already, by run r1 of me"},
		{"stopped part-way", func(t *testing.T, o []runtime.Object, p *plan.Plan) []runtime.Object {
			switched(t, o[1].(*corev1.Node))
			return append(o[:len(o)-1], journal(t, cluster.RunRecord{ID: "r1", Operation: "migrate", Who: "me", PlanDigest: p.Digest, Outcome: "stopped"}))
		}, ExitOK, "Goes on with run r1 of this plan; done already: a-1."},
		{"stopped part-way by another plan", func(t *testing.T, o []runtime.Object, _ *plan.Plan) []runtime.Object {
			switched(t, o[1].(*corev1.Node))
			return append(o[:len(o)-1], journal(t, cluster.RunRecord{ID: "r1", Operation: "migrate", Who: "me", PlanDigest: "x", Outcome: "stopped"}))
		}, ExitRefused, "node a-1 is left alone now: is on DRA already, by run r1"},
		{"another run is under way", func(t *testing.T, o []runtime.Object, _ *plan.Plan) []runtime.Object {
			switched(t, o[1].(*corev1.Node))
			return append(o, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "dramigrate-system", Name: "pool-gpu-a"},
				Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("she@host/1"), LeaseDurationSeconds: ptr.To[int32](60),
					RenewTime: &metav1.MicroTime{Time: metav1.Unix(0, 0).Time}}})
		}, ExitLocked, "another run is under way, by she@host/1"},
	} {
		t.Run(c.title, func(t *testing.T) {
			file, saved := save(t, twoNodes())
			objects := c.change(t, twoNodes(), saved)
			for _, args := range [][]string{{"apply", "--plan", file, "--yes"}, {"apply", file, "--yes"}} {
				var payload engine.Payload
				o := invoke(t, objects, nil, func(_ context.Context, _ *plan.Plan, p engine.Payload) error { payload = p; return nil }, args...)
				if o.code != c.code || !strings.Contains(o.err, c.want) {
					t.Fatalf("exit code %d, want %d; stderr:\n%s\nwant %q", o.code, c.code, o.err, c.want)
				}
				if c.code != ExitOK {
					if len(o.ran) != 0 || o.stdout != "" {
						t.Errorf("%d runs; stdout:\n%s", len(o.ran), o.stdout)
					}
					continue
				}
				if len(o.ran) != 1 || o.ran[0].Digest != saved.Digest || !payload.Saved || !strings.Contains(o.stdout, saved.Digest) {
					t.Errorf("%d runs, saved %v; want one with the digest that was reviewed, %s", len(o.ran), payload.Saved, saved.Digest)
				}
			}
		})
	}
}

func TestEditedPlan(t *testing.T) {
	file, saved := save(t, twoNodes())
	for _, c := range []struct {
		title    string
		from, to string
		allowed  bool
		code     int
		want     string
	}{
		{"not allowed", "maxUnavailable: 10%", "maxUnavailable: 50%", false, ExitRefused, "give --allow-edited"},
		{"a setting that leaves the steps as they are", "maxUnavailable: 10%", "maxUnavailable: 50%", true, ExitOK, ""},
		{"a setting that is none", "maxUnavailable: 10%", "maxUnavailable: 500%", true, ExitUsage, `settings: max-unavailable "500%": must not be more than 100%`},
		{"a setting that asks for other steps", "drainTimeout: 15m0s", "drainTimeout: 20m0s", true, ExitRefused, "step drain on nodes"},
		{"a patch", `"dramigrate.dev/allocation":null`, `"somebody.else/label":null`, true, ExitRefused, ""},
		{"batches", "batches:\n- nodes:\n  - a-1\n- nodes:\n  - a-2\n", "batches:\n- nodes:\n  - a-1\n  - a-2\n", true, ExitRefused, "the order or the size of the batches"},
		{"no pool", "\npool:", "\nclaims: {now: 1, atMost: 2}\n#pool:", true, ExitRefused, ""},
		{"a field that is none", "kind: MigrationPlan", "kind: MigrationPlan\nsurprise: 1", true, ExitRefused, `unknown field "surprise"`},
	} {
		t.Run(c.title, func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			edited := filepath.Join(t.TempDir(), "edited.yaml")
			text := strings.Replace(string(data), c.from, c.to, 1)
			if c.title == "a patch" {
				head, steps, _ := strings.Cut(string(data), "\nnodeSteps:")
				text = head + "\nnodeSteps:" + strings.Replace(steps, "dramigrate.dev~1allocation", "somebody.else~1label", 1)
			}
			if text == string(data) {
				t.Fatalf("no %q in the plan:\n%s", c.from, data)
			}
			if err := os.WriteFile(edited, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"apply", edited, "--yes"}
			if c.allowed {
				args = append(args, "--allow-edited")
			}
			o := invoke(t, twoNodes(), nil, done, args...)
			if o.code != c.code || !strings.Contains(o.err, c.want) || (len(o.ran) == 1) != (c.code == ExitOK) {
				t.Fatalf("exit code %d, want %d; %d runs; stderr:\n%s", o.code, c.code, len(o.ran), o.err)
			}
			if c.code == ExitOK && (o.ran[0].Settings.MaxUnavailable != "50%" || o.ran[0].Digest == saved.Digest) {
				t.Errorf("ran %s with %s", o.ran[0].Digest, o.ran[0].Settings.MaxUnavailable)
			}
		})
	}
}

// A file in place of the pool is one that exists and is named like one.
func TestPlanFileInPlaceOfThePool(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("gpu-a", []byte("not a plan"), 0o600); err != nil {
		t.Fatal(err)
	}
	if o := invoke(t, preparedCluster(), nil, done, "apply", "gpu-a", "--yes", "--helper-image", "h"); o.code != ExitOK {
		t.Errorf("a file without an ending is not taken for a plan: exit code %d\n%s", o.code, o.err)
	}
	if o := invoke(t, preparedCluster(), nil, done, "apply", "gpu-a.yaml", "--yes", "--helper-image", "h"); o.code != ExitUsage || !strings.Contains(o.err, `pool "gpu-a.yaml"`) {
		t.Errorf("no such file: exit code %d\n%s", o.code, o.err)
	}
	if err := os.WriteFile("gpu-a.yaml", []byte("not: a plan"), 0o600); err != nil {
		t.Fatal(err)
	}
	if o := invoke(t, preparedCluster(), nil, done, "apply", "gpu-a.yaml", "--yes"); o.code != ExitRefused {
		t.Errorf("exit code %d\n%s", o.code, o.err)
	}
	if o := invoke(t, preparedCluster(), nil, done, "apply", "--pool", "gpu-a.yaml", "--yes", "--helper-image", "h"); o.code != ExitUsage || !strings.Contains(o.err, `pool "gpu-a.yaml"`) {
		t.Errorf("the pool of that name: exit code %d\n%s", o.code, o.err)
	}
	if o := invoke(t, preparedCluster(), nil, done, "apply", "gpu-a", "--yes", "--helper-image", "h", "--allow-edited"); o.code != ExitUsage {
		t.Errorf("--allow-edited without a file: exit code %d\n%s", o.code, o.err)
	}
}
