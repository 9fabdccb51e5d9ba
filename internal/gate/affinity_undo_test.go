package gate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// exclude returns the DaemonSet after Exclude, and the recorded pre-image as it is
// read back from a journal.
func exclude(t *testing.T, a *corev1.Affinity) (*appsv1.DaemonSet, *cluster.PreImage) {
	t.Helper()
	ds := daemonSet(a)
	e, err := Exclude(ds)
	if err != nil {
		t.Fatal(err)
	}
	pre, err := e.PreImage(cluster.ObjectRef{Kind: "DaemonSet", Namespace: ds.Namespace, Name: ds.Name})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(pre)
	if err != nil {
		t.Fatal(err)
	}
	var back cluster.PreImage
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	after, err := patched(t, ds, e)
	if err != nil {
		t.Fatal(err)
	}
	return after, &back
}

func TestUnexclude(t *testing.T) {
	t.Parallel()
	own := absent(AllocationLabel)
	for _, tt := range []struct {
		name    string
		before  *corev1.Affinity
		without *corev1.Affinity       // what is left if no pre-image was recorded
		change  func(*corev1.Affinity) // what somebody did in between
		changed *corev1.Affinity       // and what is left then, with the pre-image
	}{
		{name: "no affinity"},
		{name: "an empty affinity", before: &corev1.Affinity{}},
		{name: "an empty node affinity", before: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}},
		{name: "preferred terms alone",
			before:  &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferring()}},
			without: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferring()}}},
		{name: "three terms",
			before:  requiring(term(in("gpu", "true")), term(in("pci", "true")), fieldTerm("x")),
			without: requiring(term(in("gpu", "true")), term(in("pci", "true")), fieldTerm("x"))},
		{name: "an empty term", before: requiring(corev1.NodeSelectorTerm{}, term(in("gpu", "true"))),
			without: requiring(corev1.NodeSelectorTerm{}, term(in("gpu", "true")))},
		{name: "a term was added meanwhile", before: requiring(term(in("gpu", "true"))),
			without: requiring(term(in("gpu", "true"))),
			change: func(a *corev1.Affinity) {
				s := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
				s.NodeSelectorTerms = append(s.NodeSelectorTerms, term(in("new", "true"), own))
			},
			changed: requiring(term(in("gpu", "true")), term(in("new", "true")))},
		{name: "preferred terms were added meanwhile",
			change:  func(a *corev1.Affinity) { withPreferred(a) },
			changed: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferring()}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ds, pre := exclude(t, tt.before)
			undo := func(ds *appsv1.DaemonSet, pre *cluster.PreImage) *corev1.Affinity {
				t.Helper()
				e, err := Unexclude(ds, pre)
				if err != nil {
					t.Fatal(err)
				}
				out, err := patched(t, ds, e)
				if err != nil {
					t.Fatal(err)
				}
				return out.Spec.Template.Spec.Affinity
			}
			if diff := cmp.Diff(tt.before, undo(ds, pre)); diff != "" {
				t.Errorf("with the pre-image (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.without, undo(ds, nil)); diff != "" {
				t.Errorf("without a pre-image (-want +got):\n%s", diff)
			}
			if tt.change == nil {
				return
			}
			tt.change(ds.Spec.Template.Spec.Affinity)
			if diff := cmp.Diff(tt.changed, undo(ds, pre)); diff != "" {
				t.Errorf("after somebody's change (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnexcludeLeavesAlone(t *testing.T) {
	t.Parallel()
	foreign := corev1.NodeSelectorRequirement{Key: AllocationLabel, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"dra", "switching"}}
	for _, tt := range []struct {
		name string
		a    *corev1.Affinity
	}{
		{"never excluded", requiring(term(in("gpu", "true")))},
		{"no affinity", nil},
		{"somebody's own expression", requiring(term(in("gpu", "true"), foreign))},
	} {
		if e, err := Unexclude(daemonSet(tt.a), nil); err != nil || !e.Empty() {
			t.Errorf("%s: %v, %v, want nothing to do", tt.name, e.Patch, err)
		}
	}
	// The tool's lone term stands for every node; without it the DaemonSet would be
	// on the added term's nodes only, which nobody asked for.
	ds := daemonSet(requiring(term(absent(AllocationLabel)), term(in("new", "true"))))
	if _, err := Unexclude(ds, nil); err == nil || !strings.Contains(err.Error(), "daemonset/kube-system/plugin") {
		t.Errorf("a term beside the tool's lone one: error %v, want one that names the DaemonSet", err)
	}
	if _, err := Unexclude(ds, &cluster.PreImage{Path: "/spec/paused", Before: []byte("null"), After: []byte("null")}); err == nil {
		t.Error("a pre-image of another field is no error")
	}
}

func TestUnplace(t *testing.T) {
	t.Parallel()
	ds := daemonSet(requiring(term(in("gpu", "true"), in(AllocationLabel, "dra")), term(in("pci", "true"), in(AllocationLabel, "dra"))))
	e, err := Unplace(ds, nil)
	if err != nil {
		t.Fatal(err)
	}
	after, err := patched(t, ds, e)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(requiring(term(in("gpu", "true")), term(in("pci", "true"))), after.Spec.Template.Spec.Affinity); diff != "" {
		t.Errorf("affinity (-want +got):\n%s", diff)
	}
}

// A patch that was thought out on an old state must not overwrite what somebody
// wrote since, nor hit a DaemonSet that only has the old one's name.
func TestPatchFailsOnAnotherState(t *testing.T) {
	t.Parallel()
	edit := func(a *corev1.Affinity) Edit {
		e, err := Exclude(daemonSet(a))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	for _, tt := range []struct {
		name     string
		seen     *corev1.Affinity
		found    *appsv1.DaemonSet
		conflict bool
	}{
		{"the same", nil, daemonSet(nil), false},
		{"an affinity where there was none", nil, daemonSet(requiring(term(in("a", "b")))), true},
		{"none where there was one", requiring(term(in("a", "b"))), daemonSet(nil), true},
		{"another term", requiring(term(in("a", "b"))), daemonSet(requiring(term(in("a", "c")))), true},
		{"one more term", requiring(term(in("a", "b"))), daemonSet(requiring(term(in("a", "b")), term(in("a", "c")))), true},
		{"other preferred terms do not matter", requiring(term(in("a", "b"))), daemonSet(withPreferred(requiring(term(in("a", "b"))))), false},
	} {
		if _, err := patched(t, tt.found, edit(tt.seen)); (err != nil) != tt.conflict {
			t.Errorf("%s: error %v, want one: %t", tt.name, err, tt.conflict)
		}
	}
	another := daemonSet(nil)
	another.UID = "uid-2"
	if _, err := patched(t, another, edit(nil)); err == nil {
		t.Error("another DaemonSet of that name was patched")
	}
}
