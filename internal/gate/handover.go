package gate

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/dramigrate/dramigrate/internal/vendor"
)

// Handover is an edit of a DaemonSet as its owner has to make it, for a person to take
// there.
type Handover struct {
	// Where says what the body is and where it goes.
	Where string
	// Body is chart values, or the part of the manifest that changes. The list of terms
	// in it is whole: both replace such a list and do not merge it.
	Body map[string]any
	// Also are the DaemonSets that the same values move, as namespace/name.
	Also []string
}

// HandOver turns an edit over to the DaemonSet's owner. all are the cluster's
// DaemonSets.
func HandOver(ds *appsv1.DaemonSet, owner Owner, edit Edit, all []appsv1.DaemonSet) Handover {
	affinity := map[string]any{"affinity": edit.WholeAfter}
	if owner.Kind == Helm {
		if path, known := chartValue(ds); known {
			h := Handover{Where: "values of " + owner.String() + ", by `helm upgrade --reuse-values -f FILE`", Body: affinity}
			for _, key := range slices.Backward(path) {
				h.Body = map[string]any{key: h.Body}
			}
			h.Also = sameValues(ds, all)
			return h
		}
	}
	h := Handover{
		Where: "the part of the manifest that changes, where " + owner.String() + " has it from",
		Body: map[string]any{
			"apiVersion": "apps/v1", "kind": "DaemonSet",
			"metadata": map[string]any{"name": ds.Name, "namespace": ds.Namespace},
			"spec":     map[string]any{"template": map[string]any{"spec": affinity}},
		},
	}
	if _, chart := ds.Labels["helm.sh/chart"]; chart || owner.Kind == Helm {
		h.Where += "; it is rendered from a chart, so set it by the value that the chart has for the pods' affinity"
	}
	return h
}

// chartValue is below which keys of the chart's values the affinity stands, for the
// charts that are known.
func chartValue(ds *appsv1.DaemonSet) (path []string, known bool) {
	for _, v := range vendor.All() {
		for _, c := range v.Charts {
			if strings.HasPrefix(ds.Labels["helm.sh/chart"], c.Prefix) {
				return c.Values, true
			}
		}
	}
	return nil, false
}

// sameValues are the other DaemonSets of the release whose affinity is the same: one
// value of the chart sets it for all of them.
func sameValues(ds *appsv1.DaemonSet, all []appsv1.DaemonSet) []string {
	const name, namespace = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"
	affinity := func(d *appsv1.DaemonSet) *corev1.Affinity { return d.Spec.Template.Spec.Affinity }
	var out []string
	for i := range all {
		other := &all[i]
		if other.Namespace == ds.Namespace && other.Name == ds.Name || other.Annotations[name] != ds.Annotations[name] ||
			other.Annotations[namespace] != ds.Annotations[namespace] || other.Labels["helm.sh/chart"] != ds.Labels["helm.sh/chart"] ||
			!equality.Semantic.DeepEqual(affinity(other), affinity(ds)) {
			continue
		}
		out = append(out, other.Namespace+"/"+other.Name)
	}
	slices.Sort(out)
	return out
}

// EditedHere says that this tool wrote to the DaemonSet's fields. On one that somebody
// owns such an edit lasts until its owner writes them again.
func EditedHere(ds *appsv1.DaemonSet) bool {
	_, wrote := manager(ds, FieldManager)
	return wrote
}
