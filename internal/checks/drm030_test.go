package checks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dramigrate/dramigrate/internal/access"
	"github.com/dramigrate/dramigrate/internal/cluster"
)

func TestDRM030(t *testing.T) {
	t.Parallel()
	patch := cluster.Right{Verb: "patch", Resource: "nodes"}
	watch := cluster.Right{Verb: "watch", Resource: "nodes"}
	evict := cluster.Right{Verb: "create", Resource: "pods/eviction", Namespace: "train"}
	role := cluster.Right{Verb: "delete", Group: "resource.k8s.io", Resource: "resourceslices"}
	escalate := cluster.Right{Verb: "escalate", Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: "driver"}
	needs := []access.Need{
		{Right: patch, Why: "to close a node"}, {Right: watch, Why: "to wait"}, {Right: evict, Why: "to evict pods"},
		{Right: role, Or: []cluster.Right{escalate}, Why: "the driver's role grants it", Manifests: true},
	}
	answers := func(of map[cluster.Right]cluster.Answer) *cluster.Access {
		var out []cluster.AccessReview
		for r, a := range of {
			out = append(out, cluster.AccessReview{Right: r, Answer: a, Reason: "because"})
		}
		return &cluster.Access{Reviews: cluster.SortAccess(out)}
	}
	for _, tt := range []struct {
		name    string
		access  *cluster.Access
		looks   bool // the caller does not run the plan
		offline bool
		want    []string
		says    []string // parts of the first finding's text
	}{
		{name: "an administrator", access: &cluster.Access{All: true}},
		{name: "nobody has asked yet"},
		{
			name:   "everything needed, one right by another that does as well",
			access: answers(map[cluster.Right]cluster.Answer{patch: cluster.Allowed, watch: cluster.Allowed, evict: cluster.Allowed, role: cluster.Denied, escalate: cluster.Allowed}),
		},
		{
			name:   "no eviction in one namespace",
			access: answers(map[cluster.Right]cluster.Answer{patch: cluster.Allowed, watch: cluster.Allowed, evict: cluster.Denied, role: cluster.Allowed}),
			want:   []string{"blocker access/train/pods.eviction"},
			says:   []string{"create pods/eviction in namespace train", "to evict pods", "because", "dramigrate rbac apply --tool-namespace tool --user NAME | kubectl apply -f -"},
		},
		{
			name:   "rights to one resource are one finding",
			access: answers(map[cluster.Right]cluster.Answer{patch: cluster.Denied, watch: cluster.Denied, evict: cluster.Allowed, role: cluster.Denied, escalate: cluster.Denied}),
			want:   []string{"blocker access/nodes", "blocker access/resourceslices"},
			says:   []string{"may not patch nodes, watch nodes"},
		},
		{
			name:   "no answer is no permission",
			access: answers(map[cluster.Right]cluster.Answer{patch: cluster.Unanswered, watch: cluster.Allowed, evict: cluster.Allowed, role: cluster.Allowed}),
			want:   []string{"unknown access/nodes"},
			says:   []string{"does not say whether the caller may patch nodes"},
		},
		{
			name:   "who looks at a plan may be somebody else than who runs it",
			access: answers(map[cluster.Right]cluster.Answer{patch: cluster.Denied, watch: cluster.Allowed, evict: cluster.Unanswered, role: cluster.Allowed}),
			looks:  true,
			want:   []string{"warning access/nodes", "warning access/train/pods.eviction"},
			says:   []string{"may not patch nodes"},
		},
		{name: "files without a caller", looks: true, offline: true, want: []string{"info access"}, says: []string{"4 rights", "when the plan is run"}},
		{
			name:   "a snapshot whose caller was asked for less",
			access: answers(map[cluster.Right]cluster.Answer{patch: cluster.Allowed, watch: cluster.Allowed, evict: cluster.Allowed}),
			looks:  true, offline: true, want: []string{"info access"}, says: []string{"1 rights"},
		},
		{name: "a snapshot of an administrator", access: &cluster.Access{All: true}, looks: true, offline: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := prepared()
			s.Access = tt.access
			in := s.of(Migrate)
			in.Rights, in.Runs, in.Offline, in.Namespace = needs, !tt.looks, tt.offline, "tool"
			findings := Run(in)
			if diff := cmp.Diff(tt.want, brief(findings, "DRM030")); diff != "" {
				t.Fatalf("findings (-want +got):\n%s", diff)
			}
			for _, says := range tt.says {
				if text := findings[0].Message + " " + findings[0].Remedy; !strings.Contains(text, says) {
					t.Errorf("%q, want %q in it", text, says)
				}
			}
		})
	}
}
