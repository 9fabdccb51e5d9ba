package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// authority answers reviews by rights that it grants, as RBAC does: one without a
// namespace is for all of them. It notes what it was asked.
type authority struct {
	granted []Right
	fails   error

	mu    sync.Mutex
	asked []string
}

func (a *authority) client() *fake.Clientset {
	client := fake.NewClientset()
	client.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if a.fails != nil {
			return true, nil, a.fails
		}
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
		var r Right
		if q := review.Spec.ResourceAttributes; q != nil {
			r = Right{Verb: q.Verb, Group: q.Group, Resource: q.Resource, Namespace: q.Namespace, Name: q.Name}
			if q.Subresource != "" {
				r.Resource += "/" + q.Subresource
			}
		} else {
			r = Right{Verb: review.Spec.NonResourceAttributes.Verb, Path: review.Spec.NonResourceAttributes.Path}
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.asked = append(a.asked, r.String())
		review.Status.Allowed = slices.ContainsFunc(a.granted, func(g Right) bool {
			return g == Everything() && r.Path == "" || g.Verb == r.Verb && g.Group == r.Group && g.Resource == r.Resource && g.Path == r.Path &&
				(g.Namespace == "" || g.Namespace == r.Namespace) && (g.Name == "" || g.Name == r.Name)
		})
		if !review.Status.Allowed {
			review.Status.Reason = "no rule"
		}
		return true, review, nil
	})
	return client
}

func TestReviewAccess(t *testing.T) {
	t.Parallel()
	evict := func(namespace string) Right {
		return Right{Verb: "create", Resource: "pods/eviction", Namespace: namespace}
	}
	lease := Right{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "tool"}
	version := Right{Verb: "get", Path: "/version"}
	wanted := []Right{evict("a"), evict("b"), lease, version}
	for _, tt := range []struct {
		name    string
		granted []Right
		want    []Answer
		asked   []string
	}{
		{"an administrator costs one request, and one for what is no resource", []Right{Everything(), version},
			[]Answer{Allowed, Allowed, Allowed, Allowed}, []string{"* *.*", "get /version"}},
		{"several namespaces are asked for at once where all are granted", []Right{evict(""), lease, version},
			[]Answer{Allowed, Allowed, Allowed, Allowed}, []string{"* *.*", "create pods/eviction", "get /version", "update leases.coordination.k8s.io in namespace tool"}},
		{"a right in one namespace is not one in the other", []Right{evict("a"), version},
			[]Answer{Allowed, Denied, Denied, Allowed}, []string{"* *.*", "create pods/eviction", "create pods/eviction in namespace a",
				"create pods/eviction in namespace b", "get /version", "update leases.coordination.k8s.io in namespace tool"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := &authority{granted: tt.granted}
			got, err := ReviewAccess(t.Context(), a.client(), wanted)
			if err != nil {
				t.Fatal(err)
			}
			var answers []Answer
			for _, r := range wanted {
				answer, reason := got.Look(r)
				answers = append(answers, answer)
				if answer == Denied && reason != "no rule" {
					t.Errorf("%s: reason %q, want the server's", r, reason)
				}
			}
			if diff := cmp.Diff(tt.want, answers); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			slices.Sort(a.asked)
			if diff := cmp.Diff(tt.asked, a.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

// What nobody answers is not granted, and is asked for once only.
func TestReviewAccessUnanswered(t *testing.T) {
	t.Parallel()
	right := Right{Verb: "list", Resource: "nodes"}
	got, err := ReviewAccess(t.Context(), (&authority{fails: errors.New("webhook down")}).client(), []Right{right})
	if err != nil {
		t.Fatal(err)
	}
	if answer, reason := got.Look(right); answer != Unanswered || reason != "webhook down" {
		t.Errorf("%q because of %q, want it unanswered with the server's reason", answer, reason)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := errors.New("interrupted")
	cancel(ended)
	if _, err := ReviewAccess(ctx, (&authority{}).client(), []Right{right}); !errors.Is(err, ended) {
		t.Errorf("error %v, want the end of the context", err)
	}
}

func TestAccessLook(t *testing.T) {
	t.Parallel()
	review := func(answer Answer, r Right) AccessReview { return AccessReview{Right: r, Answer: answer} }
	a := &Access{Reviews: SortAccess([]AccessReview{
		review(Allowed, Right{Verb: "get", Resource: "pods"}),
		review(Denied, Right{Verb: "patch", Resource: "pods"}),
		review(Denied, Right{Verb: "get", Resource: "pods", Namespace: "x"}),
		review(Allowed, Right{Verb: "get", Resource: "secrets", Namespace: "x"}),
	})}
	for _, tt := range []struct {
		right Right
		want  Answer
	}{
		{Right{Verb: "get", Resource: "pods", Namespace: "x"}, Allowed}, // by the right in all namespaces
		{Right{Verb: "get", Resource: "pods", Namespace: "y", Name: "p"}, Allowed},
		{Right{Verb: "patch", Resource: "pods"}, Denied},
		{Right{Verb: "patch", Resource: "pods", Namespace: "x"}, NotAsked}, // a Role may grant it there
		{Right{Verb: "get", Resource: "secrets", Namespace: "x", Name: "s"}, Allowed},
		{Right{Verb: "get", Resource: "secrets"}, NotAsked},
	} {
		if got, _ := a.Look(tt.right); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.right, got, tt.want)
		}
	}
	if got, _ := (*Access)(nil).Look(Right{Verb: "get", Resource: "pods"}); got != NotAsked {
		t.Errorf("nobody asked: %q", got)
	}
}
