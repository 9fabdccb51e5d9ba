package checks

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func TestOwnerGroups(t *testing.T) {
	t.Parallel()
	g := ownerGroups{}
	deployed := func(i int) *cluster.Pod {
		return &cluster.Pod{
			Namespace: "team", Name: fmt.Sprintf("web-5d8f9-%d", i), Node: fmt.Sprintf("n%d", i%2),
			Labels: map[string]string{"pod-template-hash": "5d8f9"}, Owner: cluster.Owner{Kind: "ReplicaSet", Name: "web-5d8f9"},
		}
	}
	for i := range 500 {
		g.add(deployed(i), "asks")
	}
	g.add(&cluster.Pod{Namespace: "team", Name: "alone", Node: "n7"}, "asks")
	g.add(&cluster.Pod{Namespace: "team", Name: "waits"}, "asks")
	for i := range 1000 {
		g.add(&cluster.Pod{Namespace: "batch", Name: fmt.Sprintf("run-%04d-x", i), Node: "n1", Owner: cluster.Owner{Kind: "Job", Name: fmt.Sprintf("run-%04d", i)}}, "asks")
	}
	g.addTemplate(&cluster.Workload{Kind: cluster.KindCronJob, Namespace: "team", Name: "nightly"}, "its template asks")
	var got []string
	for _, f := range g.findings(Finding{Severity: Warning}) {
		got = append(got, f.Object+" "+f.Message)
	}
	want := []string{
		"cronjob/team/nightly its template asks",
		"deployment/team/web 500 pods on nodes n0, n1: asks",
		"namespace/batch 1000 of kind job (run-0000, run-0001, run-0002, run-0003, run-0004 and 995 more) with 1000 pods: asks",
		"pod/team/alone on node n7: asks",
		"pod/team/waits asks",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}
