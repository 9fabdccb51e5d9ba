package engine

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// Under the lock the plan is judged by the same rule as before it; the journal counts
// for a saved plan alone: one that was made a moment ago may well equal an old one.
func TestStillTrue(t *testing.T) {
	reviewed := func() *plan.Plan {
		return &plan.Plan{
			Operation: plan.Migrate, Cluster: cluster.Identity{UID: "c"}, Digest: "d",
			Pool:    &plan.Pool{Name: "a", Nodes: []plan.NodeRef{{Name: "n1", UID: "1"}, {Name: "n2", UID: "2"}}},
			Batches: []plan.Batch{{Nodes: []string{"n1"}}, {Nodes: []string{"n2"}}},
		}
	}
	partWay := func(p *plan.Plan) {
		p.Digest, p.Batches = "e", p.Batches[1:]
		p.Skipped = []plan.Skip{{Node: "n1", Why: "is on DRA already, by run r1"}}
	}
	for _, c := range []struct {
		title   string
		saved   bool
		outcome string // of the plan's run in the journal; "-" is no run
		change  func(*plan.Plan)
		want    string // of the refusal; "" is none
	}{
		{"the same", true, "-", func(*plan.Plan) {}, ""},
		{"a pod more", true, "-", func(p *plan.Plan) { p.Digest, p.Evictions = "e", []plan.Eviction{{Pod: "x/y", Node: "n1"}} }, ""},
		{"a node less", true, "-", func(p *plan.Plan) { p.Digest, p.Pool.Nodes = "e", p.Pool.Nodes[:1] }, "the cluster has changed since the plan was made: node gone: n2"},
		{"applied meanwhile", true, "done", func(*plan.Plan) {}, "it was applied already"},
		{"a fresh plan, as one that was applied once", false, "done", func(*plan.Plan) {}, ""},
		{"stopped part-way", true, "stopped", partWay, ""},
		{"done by somebody else", true, "-", partWay, "node n1 is left alone now"},
		{"a fresh plan, and somebody else has begun since", false, "stopped", partWay, "node n1 is left alone now"},
	} {
		t.Run(c.title, func(t *testing.T) {
			journals := &Journals{Client: newServer(t), Namespace: "tool"}
			if c.outcome != "-" {
				journal := newJournal("a")
				StartRun(journal, cluster.RunRecord{ID: "r1", PlanDigest: "d", Outcome: c.outcome, Started: metav1.Unix(0, 0)})
				data, err := encodeJournal(journal)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := journals.Client.CoreV1().ConfigMaps("tool").Create(t.Context(), journals.newConfigMap("a", data), metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			now := reviewed()
			c.change(now)
			s := &session{Engine: &Engine{journals: journals}, plan: reviewed(),
				payload: Payload{Saved: c.saved, Replan: func(context.Context) (*plan.Plan, error) { return now, nil }}}
			err := s.stillTrue(t.Context(), "a")
			var refused *RefusedError
			if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
