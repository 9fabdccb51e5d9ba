package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// written is an entry as the API server makes it: one for each writer and subresource.
func written(manager, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
		FieldsType: "FieldsV1", Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields)}
}

func TestLabelWriter(t *testing.T) {
	t.Parallel()
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{StateAnnotation: "{}"},
		ManagedFields: []metav1.ManagedFieldsEntry{
			written("dramigrate", "", `{"f:metadata":{"f:labels":{"f:gate":{}}},"f:spec":{"f:taints":{}}}`),
			written("kubelet", "status", `{"f:status":{"f:images":{}}}`),
			written("gpu-operator", "", `{"f:metadata":{"f:annotations":{"f:x":{}},"f:labels":{".":{},"f:deploy":{}}}}`),
			written("broken", "", `{`),
		},
	}}
	for key, want := range map[string]string{"deploy": "gpu-operator", "gate": "", "gone": ""} {
		if got := LabelWriter(&node, key, "dramigrate"); got != want {
			t.Errorf("label %s was written by %q, want %q", key, got, want)
		}
	}
	slim := SlimNode(&node)
	want := []metav1.ManagedFieldsEntry{
		written("dramigrate", "", `{"f:metadata":{"f:labels":{"f:gate":{}}}}`),
		written("gpu-operator", "", `{"f:metadata":{"f:labels":{".":{},"f:deploy":{}}}}`),
	}
	if diff := cmp.Diff(want, slim.ManagedFields); diff != "" {
		t.Errorf("kept of a marked node (-want +got):\n%s", diff)
	}
	delete(node.Annotations, StateAnnotation)
	if slim := SlimNode(&node); slim.ManagedFields != nil {
		t.Errorf("kept of a node that no run has marked: %v", slim.ManagedFields)
	}
}
