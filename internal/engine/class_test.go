package engine

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// The run takes what the check of several classes lets pass, and nothing else: up to
// Kubernetes 1.37 one class alone, since 1.38 the one in force.
func TestAdoptClass(t *testing.T) {
	t.Parallel()
	made := func(name string, at int64) runtime.Object {
		return &resourcev1.DeviceClass{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(at, 0)},
			Spec:       resourcev1.DeviceClassSpec{ExtendedResourceName: ptr.To("nvidia.com/gpu")},
		}
	}
	adopt := func(name string) *plan.Class { return &plan.Class{Action: plan.Adopt, Name: name} }
	for _, tt := range []struct {
		name, version string
		classes       []runtime.Object
		planned       *plan.Class
		adopted       bool
		fails         bool
	}{
		{"the planned one alone", "v1.37.2", []runtime.Object{made("a", 1)}, adopt("a"), true, false},
		{"another one alone", "v1.37.2", []runtime.Object{made("b", 1)}, adopt("a"), false, true},
		{"it is gone", "v1.37.2", nil, adopt("a"), false, true},
		{"none yet, and one to be made", "v1.37.2", nil, &plan.Class{Action: plan.Create, Name: "a"}, false, false},
		{"another run was first", "v1.37.2", []runtime.Object{made("a", 1)}, &plan.Class{Action: plan.Create, Name: "a"}, true, false},
		{"two in 1.37", "v1.37.2", []runtime.Object{made("a", 9), made("b", 1)}, adopt("a"), false, true},
		{"two in 1.38, the planned one in force", "v1.38.0", []runtime.Object{made("a", 9), made("b", 1)}, adopt("a"), true, false},
		{"two in 1.38, the other one in force", "v1.38.0", []runtime.Object{made("a", 1), made("b", 9)}, adopt("a"), false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &session{
				Engine: &Engine{client: newServer(t, tt.classes...)},
				plan:   &plan.Plan{Resource: "nvidia.com/gpu", Class: tt.planned, Cluster: cluster.Identity{ServerVersion: tt.version}},
			}
			n := (&poolRun{session: s}).node(plan.NodeRef{Name: "n1"}, nil)
			adopted, err := n.adoptClass(t.Context())
			if adopted != tt.adopted || (err != nil) != tt.fails {
				t.Errorf("adopted %t, error %v; want adopted %t, an error %t", adopted, err, tt.adopted, tt.fails)
			}
		})
	}
}
