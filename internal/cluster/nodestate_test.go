package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestNodeState(t *testing.T) {
	t.Parallel()
	gone := metav1.NewTime(time.Date(2026, 9, 1, 10, 0, 0, 0, time.UTC))
	want := NodeState{
		Pool: "gpu", Selector: "pool=gpu", Operation: "migrate", Run: "r1", Epoch: 7, Phase: "drain", Gate: "own-key",
		Prior: Prior{
			Unschedulable: true,
			Labels:        map[string]*string{"a": nil, "b": ptr.To(""), "c": ptr.To("x")},
			Annotations:   map[string]*string{"d": nil},
		},
		Resources: []string{"nvidia.com/gpu"}, Advertised: []string{"GPU-a"}, PluginGoneAt: &gone,
	}
	n := withState(node("n1"), want)
	got, err := ParseNodeState(&n)
	if err != nil {
		t.Fatal(err)
	}
	// An absent label, one with an empty value, and one with a value must be told
	// apart, or a rollback would set what was not there.
	if diff := cmp.Diff(&want, got, cmp.Comparer(func(a, b metav1.Time) bool { return a.Equal(&b) })); diff != "" {
		t.Errorf("after Encode and ParseNodeState (-want +got):\n%s", diff)
	}
}

func TestParseNodeState(t *testing.T) {
	t.Parallel()
	n := node("n1")
	if s, err := ParseNodeState(&n); s != nil || err != nil {
		t.Errorf("without the annotation: %v, %v, want nil, nil", s, err)
	}
	for _, raw := range []string{"", "{", "[]", "{}", `{"pool":"gpu","operation":"migrate"}`} {
		n.Annotations = map[string]string{StateAnnotation: raw}
		s, err := ParseNodeState(&n)
		if s != nil || err == nil || !strings.HasPrefix(err.Error(), "node/n1: annotation dramigrate.dev/state: ") {
			t.Errorf("annotation %q: %v, %v, want an error that names node and annotation", raw, s, err)
		}
	}
}
