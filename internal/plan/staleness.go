package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// Verdict is what a comparison of a reviewed plan with the cluster comes to.
type Verdict string

// The verdicts. A plan runs by the first two.
const (
	// Same says that the cluster is as it was when the plan was made.
	Same Verdict = "same"
	// Moved says that what has changed leaves every step as it was reviewed: pods came
	// and went, or an earlier run of the plan has done a part of it.
	Moved Verdict = "moved"
	// Outdated says that the cluster asks for another plan, which somebody has to look
	// at first.
	Outdated Verdict = "outdated"
	// Refused says that the plan is not to be run here, whatever the cluster looks like.
	Refused Verdict = "refused"
)

// Staleness is how a reviewed plan stands to the cluster as it is now.
type Staleness struct {
	Verdict Verdict
	// Reasons say why the plan does not run.
	Reasons []string
	// Moved is what has changed and does no harm to the plan.
	Moved []string
	// Resumes is the ID of the run of this plan that stopped part-way and that a run
	// would go on with; Done are the nodes that nothing is left to do on.
	Resumes string
	Done    []string
}

// Runs says whether the plan may be run.
func (s Staleness) Runs() bool { return s.Verdict == Same || s.Verdict == Moved }

// Compare holds a plan that was reviewed against the one that is made now, with the
// same settings. runs are those of the journal; they tell whether the plan was applied
// already or stopped part-way. Without them, as for a plan that was made a moment ago,
// it is neither.
func Compare(was, now *Plan, runs []cluster.RunRecord) Staleness {
	if why := refusal(was, now, runs); why != "" {
		return Staleness{Verdict: Refused, Reasons: []string{why}}
	}
	c := &comparison{was: was, now: now, resumes: unfinished(runs, was.Digest)}
	c.origin()
	c.pools()
	c.daemonSets()
	c.class()
	c.batches()
	c.nodeSteps()
	c.shared()
	c.restarts()
	c.budgets()
	c.findings()
	c.pods()

	out := Staleness{Verdict: Same, Reasons: c.reasons, Moved: c.moved, Done: c.done}
	switch {
	case len(c.reasons) > 0:
		out.Verdict = Outdated
	case c.resumes != "":
		out.Verdict, out.Resumes = Moved, c.resumes
	case len(c.moved) > 0 || was.Digest != now.Digest:
		out.Verdict = Moved
	}
	return out
}

// Rebase is the plan to run if Compare lets was run: what is left of it, in its
// batches, as the program makes it now and never as a file says it. It has the digest
// of the plan that was reviewed, because by that the journal knows the run. Batches
// with nodes that a run left closed go first.
func Rebase(was, now *Plan) *Plan {
	place := map[string]int{}
	for i, n := range batched(now.Batches) {
		place[n] = i
	}
	out := *now
	out.Digest, out.Batches = was.Digest, nil
	for _, b := range was.Batches {
		var left []string
		for _, n := range b.Nodes {
			if _, todo := place[n]; todo {
				left = append(left, n)
			}
		}
		if len(left) > 0 {
			out.Batches = append(out.Batches, Batch{Nodes: left})
		}
	}
	first := func(b Batch) int {
		i := len(place)
		for _, n := range b.Nodes {
			i = min(i, place[n])
		}
		return i
	}
	slices.SortStableFunc(out.Batches, func(a, b Batch) int { return cmp.Compare(first(a), first(b)) })
	return &out
}

// Elsewhere says why the plan is not one for this cluster, or "".
func (p *Plan) Elsewhere(now cluster.Identity) string {
	switch {
	case p.Cluster.UID == now.UID && now.UID != "":
		return ""
	case p.Cluster.UID == "":
		return "the plan does not say which cluster it is for: namespace kube-system was not read when it was made"
	case now.UID == "":
		return "which cluster this is cannot be seen: namespace kube-system cannot be read"
	default:
		return fmt.Sprintf("it is a plan for another cluster: kube-system has UID %s there and %s here", p.Cluster.UID, now.UID)
	}
}

// refusal is what no new look at the plan can mend.
func refusal(was, now *Plan, runs []cluster.RunRecord) string {
	if was.Operation != now.Operation {
		return fmt.Sprintf("it is a plan to %s, not to %s", was.Operation, now.Operation)
	}
	if why := was.Elsewhere(now.Cluster); why != "" {
		return why
	}
	for _, r := range slices.Backward(runs) {
		if r.PlanDigest == was.Digest && r.Outcome == cluster.RunDone {
			when := ""
			if r.Ended != nil {
				when = " at " + r.Ended.UTC().Format("2006-01-02T15:04:05Z")
			}
			return fmt.Sprintf("it was applied already%s, by run %s of %s; a plan is good for one time", when, r.ID, r.Who)
		}
	}
	return ""
}

// unfinished is the run of the plan that a new one would go on with: the last that
// changed anything, if it is of this plan and did not come to its end. A run of
// another plan since then has made the cluster into what that one asked for.
func unfinished(runs []cluster.RunRecord, digest string) string {
	for _, r := range slices.Backward(runs) {
		switch {
		case r.Outcome == cluster.RunRefused:
		case r.PlanDigest == digest && r.Outcome != cluster.RunDone:
			return r.ID
		default:
			return ""
		}
	}
	return ""
}

// batched are the nodes of all batches, in their order.
func batched(list []Batch) []string {
	var out []string
	for _, b := range list {
		out = append(out, b.Nodes...)
	}
	return out
}
