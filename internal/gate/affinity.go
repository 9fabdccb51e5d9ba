package gate

import (
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/jsonpatch"
)

// AffinityPath is the field of a DaemonSet that the own gate edits, as a JSON
// pointer; its pre-image is recorded.
const AffinityPath = "/spec/template/spec/affinity"

const termsPath = AffinityPath + "/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"

// Edit is a change of a DaemonSet's affinity that has been thought out but not made.
type Edit struct {
	// Patch makes the change, if the field is still what it was. Empty if there is
	// nothing to change.
	Patch jsonpatch.Patch
	// Before and After are the node affinity, for people to read.
	Before, After *corev1.NodeAffinity
	// WholeBefore and WholeAfter are the whole field at AffinityPath.
	WholeBefore, WholeAfter *corev1.Affinity
}

// Empty says that the DaemonSet is as it should be.
func (e Edit) Empty() bool { return len(e.Patch) == 0 }

// PreImage is the record of the field before and after the edit, for Unexclude and
// Unplace.
func (e Edit) PreImage(object cluster.ObjectRef) (cluster.PreImage, error) {
	before, err := json.Marshal(e.WholeBefore)
	if err != nil {
		return cluster.PreImage{}, fmt.Errorf("%s %s/%s: encode affinity: %w", object.Kind, object.Namespace, object.Name, err)
	}
	after, err := json.Marshal(e.WholeAfter)
	if err != nil {
		return cluster.PreImage{}, fmt.Errorf("%s %s/%s: encode affinity: %w", object.Kind, object.Namespace, object.Name, err)
	}
	return cluster.PreImage{Object: object, Path: AffinityPath, Before: before, After: after}, nil
}

// Exclude keeps a device plugin's DaemonSet off every node that the own label
// marks. The terms of a node affinity are alternatives, so each of them needs the
// expression. A term without any expression matches no node and stays as it is: an
// expression would make it match nearly all of them.
func Exclude(ds *appsv1.DaemonSet) (Edit, error) { return insert(ds, excluding()) }

// Unexclude takes back what Exclude did. With the recorded pre-image, an affinity
// that nobody changed since becomes exactly what it was; otherwise the tool's own
// expression is removed and nothing else.
func Unexclude(ds *appsv1.DaemonSet, pre *cluster.PreImage) (Edit, error) {
	return remove(ds, pre, excluding())
}

// PlaceDriver keeps a DRA driver's DaemonSet to the nodes that have been switched.
func PlaceDriver(ds *appsv1.DaemonSet) (Edit, error) { return insert(ds, placing()) }

// Unplace takes back what PlaceDriver did, like Unexclude.
func Unplace(ds *appsv1.DaemonSet, pre *cluster.PreImage) (Edit, error) {
	return remove(ds, pre, placing())
}

// Excluded says whether the DaemonSet keeps off every node that the own label
// marks, by whatever expression.
func Excluded(ds *appsv1.DaemonSet) bool { return holds(ds, excluding()) }

// Placed says whether the DaemonSet keeps to nodes whose own label is "dra".
func Placed(ds *appsv1.DaemonSet) bool { return holds(ds, placing()) }

// rule is one requirement on the own label.
type rule struct {
	own corev1.NodeSelectorRequirement
	// met says that a requirement on the own label amounts to the rule.
	met func(corev1.NodeSelectorRequirement) bool
}

func excluding() rule {
	return rule{
		own: corev1.NodeSelectorRequirement{Key: AllocationLabel, Operator: corev1.NodeSelectorOpDoesNotExist},
		met: func(r corev1.NodeSelectorRequirement) bool {
			return r.Operator == corev1.NodeSelectorOpDoesNotExist ||
				r.Operator == corev1.NodeSelectorOpNotIn && slices.Contains(r.Values, ValueSwitching) && slices.Contains(r.Values, ValueDRA)
		},
	}
}

func placing() rule {
	return rule{
		own: corev1.NodeSelectorRequirement{Key: AllocationLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{ValueDRA}},
		met: func(r corev1.NodeSelectorRequirement) bool {
			return r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 && r.Values[0] == ValueDRA
		},
	}
}

// in says whether a term obeys the rule.
func (r rule) in(t *corev1.NodeSelectorTerm) bool {
	return slices.ContainsFunc(t.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
		return e.Key == AllocationLabel && r.met(e)
	})
}

func (r rule) isOwn(e corev1.NodeSelectorRequirement) bool {
	return e.Key == r.own.Key && e.Operator == r.own.Operator && slices.Equal(e.Values, r.own.Values)
}

// onlyOwn says that a term has the tool's expression and nothing else: it stands for
// "everywhere else" where there was no required affinity at all.
func (r rule) onlyOwn(t *corev1.NodeSelectorTerm) bool {
	return len(t.MatchFields) == 0 && len(t.MatchExpressions) == 1 && r.isOwn(t.MatchExpressions[0])
}

// blank says that a term matches no node
// (component-helpers/scheduling/corev1/nodeaffinity, isEmptyNodeSelectorTerm).
func blank(t *corev1.NodeSelectorTerm) bool {
	return len(t.MatchExpressions) == 0 && len(t.MatchFields) == 0
}

func required(a *corev1.Affinity) *corev1.NodeSelector {
	if a == nil || a.NodeAffinity == nil {
		return nil
	}
	return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func holds(ds *appsv1.DaemonSet, r rule) bool {
	spec := &ds.Spec.Template.Spec
	if value, ok := spec.NodeSelector[AllocationLabel]; ok {
		return r.met(corev1.NodeSelectorRequirement{Operator: corev1.NodeSelectorOpIn, Values: []string{value}})
	}
	sel := required(spec.Affinity)
	if sel == nil {
		return false
	}
	for i := range sel.NodeSelectorTerms {
		if t := &sel.NodeSelectorTerms[i]; !blank(t) && !r.in(t) {
			return false
		}
	}
	return true
}

func insert(ds *appsv1.DaemonSet, r rule) (Edit, error) {
	spec := &ds.Spec.Template.Spec
	if holds(ds, r) {
		return edit(ds, spec.Affinity), nil
	}
	if value, ok := spec.NodeSelector[AllocationLabel]; ok {
		return Edit{}, fmt.Errorf("%s: its node selector already asks for %s=%s, against the tool's use of that label", name(ds), AllocationLabel, value)
	}
	after := spec.Affinity.DeepCopy()
	if after == nil {
		after = &corev1.Affinity{}
	}
	if after.NodeAffinity == nil {
		after.NodeAffinity = &corev1.NodeAffinity{}
	}
	sel := after.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if sel == nil {
		after.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{r.own}}},
		}
		return edit(ds, after), nil
	}
	for i := range sel.NodeSelectorTerms {
		t := &sel.NodeSelectorTerms[i]
		if blank(t) || r.in(t) {
			continue
		}
		for _, e := range t.MatchExpressions {
			if e.Key == AllocationLabel {
				return Edit{}, fmt.Errorf("%s: term %d of its node affinity uses %s with %s %v, against the tool's use of that label",
					name(ds), i, AllocationLabel, e.Operator, e.Values)
			}
		}
		t.MatchExpressions = append(t.MatchExpressions, r.own)
	}
	return edit(ds, after), nil
}

func remove(ds *appsv1.DaemonSet, pre *cluster.PreImage, r rule) (Edit, error) {
	now := ds.Spec.Template.Spec.Affinity
	if pre != nil {
		before, untouched, err := recorded(ds, pre)
		if err != nil {
			return Edit{}, err
		}
		if untouched {
			return edit(ds, before), nil
		}
	}
	sel := required(now)
	if sel == nil {
		return edit(ds, now), nil
	}
	after := now.DeepCopy()
	terms := after.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	var kept []corev1.NodeSelectorTerm
	var everywhere bool
	for i := range terms {
		t := terms[i]
		if r.onlyOwn(&t) {
			everywhere = true
			continue
		}
		t.MatchExpressions = slices.DeleteFunc(t.MatchExpressions, r.isOwn)
		if len(t.MatchExpressions) == 0 {
			t.MatchExpressions = nil
		}
		kept = append(kept, t)
	}
	if everywhere && slices.ContainsFunc(kept, func(t corev1.NodeSelectorTerm) bool { return !blank(&t) }) {
		return Edit{}, fmt.Errorf("%s: somebody added a term to the node affinity beside the tool's own, which stands for every node; remove the expression on %s by hand",
			name(ds), AllocationLabel)
	}
	if everywhere {
		return edit(ds, withoutRequired(after)), nil
	}
	after.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms = kept
	return edit(ds, after), nil
}

// recorded reads a pre-image, and says whether the field still is what the tool
// made of it.
func recorded(ds *appsv1.DaemonSet, pre *cluster.PreImage) (before *corev1.Affinity, untouched bool, err error) {
	if pre.Path != AffinityPath {
		return nil, false, fmt.Errorf("%s: the recorded pre-image is of %s, not of %s", name(ds), pre.Path, AffinityPath)
	}
	var after *corev1.Affinity
	if err := json.Unmarshal(pre.Before, &before); err != nil {
		return nil, false, fmt.Errorf("%s: recorded affinity before prepare: %w", name(ds), err)
	}
	if err := json.Unmarshal(pre.After, &after); err != nil {
		return nil, false, fmt.Errorf("%s: recorded affinity after prepare: %w", name(ds), err)
	}
	return before, equality.Semantic.DeepEqual(after, ds.Spec.Template.Spec.Affinity), nil
}

// withoutRequired drops the required node affinity, and what is empty without it:
// that is how a DaemonSet looks which never had one.
func withoutRequired(a *corev1.Affinity) *corev1.Affinity {
	a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
	if len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
		a.NodeAffinity = nil
	}
	if a.NodeAffinity == nil && a.PodAffinity == nil && a.PodAntiAffinity == nil {
		return nil
	}
	return a
}

// edit is the change of the DaemonSet's affinity to after. Where terms stand on
// both sides only they are replaced, so that what others do to the rest of the
// affinity does not matter.
func edit(ds *appsv1.DaemonSet, after *corev1.Affinity) Edit {
	before := ds.Spec.Template.Spec.Affinity
	e := Edit{WholeBefore: before.DeepCopy(), WholeAfter: after.DeepCopy()}
	if before != nil {
		e.Before = e.WholeBefore.NodeAffinity
	}
	if after != nil {
		e.After = e.WholeAfter.NodeAffinity
	}
	if equality.Semantic.DeepEqual(before, after) {
		return e
	}
	if ds.UID != "" {
		e.Patch = append(e.Patch, jsonpatch.Test("/metadata/uid", ds.UID))
	}
	old, changed := required(before), required(after)
	switch {
	case old != nil && changed != nil && sameButTerms(before, after):
		e.Patch = append(e.Patch, jsonpatch.Test(termsPath, old.NodeSelectorTerms), jsonpatch.Replace(termsPath, changed.NodeSelectorTerms))
	case before == nil:
		e.Patch = append(e.Patch, jsonpatch.Test(AffinityPath, nil), jsonpatch.Add(AffinityPath, after))
	case after == nil:
		e.Patch = append(e.Patch, jsonpatch.Test(AffinityPath, before), jsonpatch.Remove(AffinityPath))
	default:
		e.Patch = append(e.Patch, jsonpatch.Test(AffinityPath, before), jsonpatch.Replace(AffinityPath, after))
	}
	return e
}

// sameButTerms says that two affinities with required terms differ in these alone.
func sameButTerms(a, b *corev1.Affinity) bool {
	c := b.DeepCopy()
	c.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = required(a)
	return equality.Semantic.DeepEqual(a, c)
}

func name(ds *appsv1.DaemonSet) string { return "daemonset/" + ds.Namespace + "/" + ds.Name }
