package cluster

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestParseYAML(t *testing.T) {
	objects, err := parseYAML([]byte("# only a comment\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: b}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range objects {
		names = append(names, o.(*unstructured.Unstructured).GetName())
	}
	if len(names) != 2 || names[0] != "a" || names[1] != "b" {
		t.Errorf("objects %v, want a and b", names)
	}
	for _, text := range []string{"kind: ConfigMap\nmetadata: {name: a}\n", "apiVersion: v1\nkind: ConfigMap\n", "- a\n", "a: [\n"} {
		if _, err := parseYAML([]byte(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestToUnstructured(t *testing.T) {
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "y"}, Status: appsv1.DaemonSetStatus{NumberReady: 3}}
	u, err := toUnstructured(ds)
	if err != nil {
		t.Fatal(err)
	}
	if u.GetAPIVersion() != "apps/v1" || u.GetKind() != "DaemonSet" {
		t.Errorf("kind %s %s, want apps/v1 DaemonSet", u.GetAPIVersion(), u.GetKind())
	}
	if _, has := u.Object["status"]; has {
		t.Error("the status would be applied")
	}
}
