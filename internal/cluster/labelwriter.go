package cluster

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// labelFields is the part of an entry of metadata.managedFields that is about labels.
type labelFields struct {
	Metadata struct {
		Labels map[string]json.RawMessage `json:"f:labels,omitempty"`
	} `json:"f:metadata"`
}

func labelsOf(m *metav1.ManagedFieldsEntry) (labelFields, bool) {
	var f labelFields
	if m.FieldsV1 == nil || json.Unmarshal(m.FieldsV1.GetRawBytes(), &f) != nil {
		return labelFields{}, false
	}
	return f, len(f.Metadata.Labels) > 0
}

// LabelWriter is the field manager that wrote a label of the node last; empty if nothing
// tells, or it was but. The server keeps one owner of a value that was set by an update,
// and none of a label that was removed.
func LabelWriter(node *corev1.Node, key, but string) string {
	for i := range node.ManagedFields {
		m := &node.ManagedFields[i]
		if m.Manager == but {
			continue
		}
		if f, ok := labelsOf(m); ok && f.Metadata.Labels["f:"+key] != nil {
			return m.Manager
		}
	}
	return ""
}

// labelManagers are the entries of a node's managedFields that are about labels, reduced
// to these.
func labelManagers(list []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var out []metav1.ManagedFieldsEntry
	for i := range list {
		m := list[i]
		f, ok := labelsOf(&m)
		if !ok {
			continue
		}
		raw, err := json.Marshal(f)
		if err != nil {
			continue // it was JSON a moment ago
		}
		m.FieldsV1 = metav1.NewFieldsV1(string(raw))
		out = append(out, m)
	}
	return out
}
