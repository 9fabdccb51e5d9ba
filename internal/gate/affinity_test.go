package gate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

func in(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

func absent(key string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpDoesNotExist}
}

func term(exprs ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: exprs}
}

func fieldTerm(name string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{in("metadata.name", name)}}
}

func requiring(terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
	}}
}

func preferring() []corev1.PreferredSchedulingTerm {
	return []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: term(in("zone", "a"))}}
}

func withPreferred(a *corev1.Affinity) *corev1.Affinity {
	a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = preferring()
	return a
}

func daemonSet(a *corev1.Affinity) *appsv1.DaemonSet {
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "plugin", UID: "uid-1"}}
	ds.Spec.Template.Spec.Affinity = a
	return ds
}

// patched applies an edit the way the API server does.
func patched(t *testing.T, ds *appsv1.DaemonSet, e Edit) (*appsv1.DaemonSet, error) {
	t.Helper()
	if e.Empty() {
		return ds, nil
	}
	raw, err := e.Patch.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	p, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := json.Marshal(ds)
	if err != nil {
		t.Fatal(err)
	}
	if doc, err = p.Apply(doc); err != nil {
		return nil, err
	}
	out := &appsv1.DaemonSet{}
	if err := json.Unmarshal(doc, out); err != nil {
		t.Fatal(err)
	}
	return out, nil
}

// The nodes that terms are tried on: names stand for their labels.
func tryNodes() map[string]map[string]string {
	return map[string]map[string]string{
		"plain":         {},
		"gpu":           {"gpu": "true"},
		"pci":           {"pci": "true"},
		"gpu switching": {"gpu": "true", AllocationLabel: "switching"},
		"gpu dra":       {"gpu": "true", AllocationLabel: "dra"},
		"pci dra":       {"pci": "true", AllocationLabel: "dra"},
		"plain dra":     {AllocationLabel: "dra"},
		"gpu odd":       {"gpu": "true", AllocationLabel: "something"},
	}
}

// matching are the nodes on which the scheduler's own matcher accepts the DaemonSet.
func matching(t *testing.T, ds *appsv1.DaemonSet) map[string]bool {
	t.Helper()
	spec := &ds.Spec.Template.Spec
	out := map[string]bool{}
	for name, labels := range tryNodes() {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: strings.ReplaceAll(name, " ", "-"), Labels: labels}}
		ok, err := nodeaffinity.NewRequiredNodeAffinity(spec.NodeSelector, spec.Affinity).Match(n)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			out[name] = true
		}
	}
	return out
}

func set(names ...string) map[string]bool {
	out := map[string]bool{}
	for _, n := range names {
		out[n] = true
	}
	return out
}

func TestExclude(t *testing.T) {
	t.Parallel()
	own := absent(AllocationLabel)
	for _, tt := range []struct {
		name   string
		before *corev1.Affinity
		after  *corev1.Affinity
		nodes  map[string]bool // that match afterwards
	}{
		{"no affinity", nil, requiring(term(own)), set("plain", "gpu", "pci")},
		{"an affinity without a word on nodes", &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}},
			&corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}, NodeAffinity: requiring(term(own)).NodeAffinity},
			set("plain", "gpu", "pci")},
		{"preferred terms alone", &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferring()}},
			withPreferred(requiring(term(own))), set("plain", "gpu", "pci")},
		{"one term", requiring(term(in("gpu", "true"))), requiring(term(in("gpu", "true"), own)), set("gpu")},
		{"three terms, all of them", requiring(term(in("gpu", "true")), term(in("pci", "true")), term(in("x", "y"))),
			requiring(term(in("gpu", "true"), own), term(in("pci", "true"), own), term(in("x", "y"), own)), set("gpu", "pci")},
		{"an empty term stays empty", requiring(corev1.NodeSelectorTerm{}, term(in("gpu", "true"))),
			requiring(corev1.NodeSelectorTerm{}, term(in("gpu", "true"), own)), set("gpu")},
		{"empty terms alone match nothing and stay", requiring(corev1.NodeSelectorTerm{}, corev1.NodeSelectorTerm{}),
			requiring(corev1.NodeSelectorTerm{}, corev1.NodeSelectorTerm{}), set()},
		{"a term by a field", requiring(fieldTerm("gpu-dra"), fieldTerm("plain")),
			requiring(
				corev1.NodeSelectorTerm{MatchFields: fieldTerm("gpu-dra").MatchFields, MatchExpressions: []corev1.NodeSelectorRequirement{own}},
				corev1.NodeSelectorTerm{MatchFields: fieldTerm("plain").MatchFields, MatchExpressions: []corev1.NodeSelectorRequirement{own}}),
			set("plain")},
		{"one of two terms has it already", requiring(term(in("gpu", "true"), own), term(in("pci", "true"))),
			requiring(term(in("gpu", "true"), own), term(in("pci", "true"), own)), set("gpu", "pci")},
		{"somebody keeps it off by values", requiring(term(in("gpu", "true"), corev1.NodeSelectorRequirement{
			Key: AllocationLabel, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"dra", "switching"}})),
			requiring(term(in("gpu", "true"), corev1.NodeSelectorRequirement{
				Key: AllocationLabel, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"dra", "switching"}})),
			set("gpu", "gpu odd")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ds := daemonSet(tt.before)
			e, err := Exclude(ds)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.before, ds.Spec.Template.Spec.Affinity); diff != "" {
				t.Fatalf("Exclude wrote into its argument:\n%s", diff)
			}
			after, err := patched(t, ds, e)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.after, after.Spec.Template.Spec.Affinity); diff != "" {
				t.Errorf("affinity (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.after.NodeAffinity, e.After); diff != "" {
				t.Errorf("Edit.After (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.nodes, matching(t, after)); diff != "" {
				t.Errorf("nodes that match (-want +got):\n%s", diff)
			}
			if !Excluded(after) {
				t.Error("Excluded is false after Exclude")
			}
			again, err := Exclude(after)
			if err != nil || !again.Empty() {
				t.Errorf("a second Exclude: %v, %v, want nothing to do", again.Patch, err)
			}
		})
	}
}

func TestExcluded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		a    *corev1.Affinity
		want bool
	}{
		{"no affinity", nil, false},
		{"preferred only", &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
			{Weight: 1, Preference: term(absent(AllocationLabel))}}}}, false},
		{"one of two terms", requiring(term(absent(AllocationLabel)), term(in("gpu", "true"))), false},
		{"only one value", requiring(term(corev1.NodeSelectorRequirement{Key: AllocationLabel, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"dra"}})), false},
		{"another label", requiring(term(absent("x"))), false},
		{"every term", requiring(term(absent(AllocationLabel)), term(in("gpu", "true"), absent(AllocationLabel))), true},
	} {
		if got := Excluded(daemonSet(tt.a)); got != tt.want {
			t.Errorf("%s: Excluded = %t, want %t", tt.name, got, tt.want)
		}
	}
}

func TestExcludeRefuses(t *testing.T) {
	t.Parallel()
	_, err := Exclude(daemonSet(requiring(term(in("gpu", "true")), term(in(AllocationLabel, "dra")))))
	if err == nil || !strings.Contains(err.Error(), "daemonset/kube-system/plugin: term 1") {
		t.Errorf("a term that wants the label: error %v, want one that names the DaemonSet and the term", err)
	}
	ds := daemonSet(nil)
	ds.Spec.Template.Spec.NodeSelector = map[string]string{AllocationLabel: "dra"}
	if _, err := Exclude(ds); err == nil {
		t.Error("a node selector that wants the label is no error")
	}
}

func TestPlaceDriver(t *testing.T) {
	t.Parallel()
	own := in(AllocationLabel, "dra")
	for _, tt := range []struct {
		name          string
		before, after *corev1.Affinity
		nodes         map[string]bool
	}{
		{"no affinity", nil, requiring(term(own)), set("gpu dra", "pci dra", "plain dra")},
		{"the chart's alternatives", requiring(term(in("pci", "true")), term(in("gpu", "true"))),
			requiring(term(in("pci", "true"), own), term(in("gpu", "true"), own)), set("gpu dra", "pci dra")},
		{"an empty term", requiring(corev1.NodeSelectorTerm{}, term(in("pci", "true"))),
			requiring(corev1.NodeSelectorTerm{}, term(in("pci", "true"), own)), set("pci dra")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ds := daemonSet(tt.before)
			e, err := PlaceDriver(ds)
			if err != nil {
				t.Fatal(err)
			}
			after, err := patched(t, ds, e)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.after, after.Spec.Template.Spec.Affinity); diff != "" {
				t.Errorf("affinity (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.nodes, matching(t, after)); diff != "" {
				t.Errorf("nodes that match (-want +got):\n%s", diff)
			}
			if !Placed(after) || Placed(ds) {
				t.Errorf("Placed before %t, after %t, want false, true", Placed(ds), Placed(after))
			}
		})
	}
	ds := daemonSet(nil)
	ds.Spec.Template.Spec.NodeSelector = map[string]string{AllocationLabel: "dra"}
	if e, err := PlaceDriver(ds); err != nil || !e.Empty() || !Placed(ds) {
		t.Errorf("placed by a chart's node selector: %v, %v, Placed %t, want nothing to do", e.Patch, err, Placed(ds))
	}
	ds.Spec.Template.Spec.NodeSelector[AllocationLabel] = "plugin"
	if _, err := PlaceDriver(ds); err == nil {
		t.Error("a node selector for another value is no error")
	}
}
