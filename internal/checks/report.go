package checks

import (
	"slices"
	"sync"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// ReportKind is the kind of Report; its API version is cluster.APIVersion.
const ReportKind = "CheckReport"

// Report is what the catalogue says of a cluster, or of one pool of it.
type Report struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Cluster    cluster.Identity `json:"cluster"`
	// Pool is the pool that was looked at; empty is every node with devices.
	Pool string `json:"pool,omitempty"`
	// Into is the pool that the workloads move to, or have moved to; empty if the nodes of
	// Pool are switched.
	Into     string `json:"into,omitempty"`
	Resource string `json:"resource"`
	Driver   string `json:"driver"`
	// Operations are what the checks were asked about, as a plan names them.
	Operations []string `json:"operations"`
	// Checks are all checks that apply to the operations and were asked for, in the order
	// of the catalogue.
	Checks   []Outcome `json:"checks"`
	Findings []Finding `json:"findings,omitempty"`
	// Unknown is what could not be seen.
	Unknown []cluster.Unknown `json:"unknown,omitempty"`
	// Source says where the cluster was read from, if from files that may hold less than
	// all of it.
	Source *cluster.Source `json:"source,omitempty"`
}

// Result is how a check ended.
type Result string

// The results. NotRun is the result of a check that could not see what it needs: it
// has not passed.
const (
	Passed Result = "passed"
	Found  Result = "found"
	NotRun Result = "not-run"
)

// Outcome is how one check ended.
type Outcome struct {
	Code   string `json:"code"`
	Title  string `json:"title"`
	Group  Group  `json:"group"`
	Result Result `json:"result"`
	// Missing are the parts of the cluster that the check needs and that could not be
	// read, with NotRun.
	Missing []string `json:"missing,omitempty"`
}

// Examine runs the catalogue for each of the inputs, which are about one cluster and
// pool and differ in their operation; with codes, these checks alone.
func Examine(inputs []Input, codes []string) *Report {
	first := inputs[0]
	r := &Report{
		APIVersion: cluster.APIVersion, Kind: ReportKind,
		Cluster: first.Snapshot.Identity, Pool: first.Pool.Name,
		Resource: first.Resource, Driver: first.Driver,
		Unknown: slices.Clone(first.Snapshot.Unknown), Source: first.Snapshot.Source,
	}
	asked := func(c Check) bool { return len(codes) == 0 || slices.Contains(codes, c.Code) }
	var sides []string
	for _, in := range inputs {
		sides = append(sides, in.Operation)
		if op := verb(in.Operation); !slices.Contains(r.Operations, op) {
			r.Operations = append(r.Operations, op)
		}
		if r.Into == "" && in.Other.Name != r.Pool {
			r.Into = in.Other.Name
		}
	}
	// Each run reads the Snapshot alone, and has indexes of its own.
	found := make([][]Finding, len(inputs))
	var runs sync.WaitGroup
	for i, in := range inputs {
		in.reported = sides
		runs.Go(func() { found[i] = run(in, asked) })
	}
	runs.Wait()
	for _, findings := range found {
		r.merge(findings)
	}
	Sort(r.Findings)
	for _, c := range All() {
		if asked(c) && slices.ContainsFunc(inputs, c.applies) {
			r.Checks = append(r.Checks, r.outcome(c, first.Snapshot))
		}
	}
	return r
}

// merge adds findings. What two operations find alike is one finding, as severe as the
// worse of them.
func (r *Report) merge(findings []Finding) {
	earlier := r.Findings
	for _, f := range findings {
		at := slices.IndexFunc(earlier, func(have Finding) bool {
			return have.Code == f.Code && have.Object == f.Object && (have.Message == f.Message || have.Severity != f.Severity)
		})
		switch {
		case at < 0:
			r.Findings = append(r.Findings, f)
		case rank(f) < rank(earlier[at]):
			r.Findings[at] = f
		}
	}
}

func (r *Report) outcome(c Check, s *cluster.Snapshot) Outcome {
	o := Outcome{Code: c.Code, Title: c.Title, Group: c.Group, Result: Passed, Missing: c.missing(s)}
	switch {
	case len(o.Missing) > 0:
		o.Result = NotRun
	case slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Code == c.Code }):
		o.Result = Found
	}
	return o
}
