package status

import (
	"slices"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// HistoryKind is the kind of the document that History makes.
const HistoryKind = "RunHistory"

// RunHistory is what ran, as the journals tell it.
type RunHistory struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Cluster    cluster.Identity `json:"cluster"`
	// Runs are the newest first. A journal keeps the last of each pool.
	Runs []Run `json:"runs"`
	// Unknown is what could not be read.
	Unknown []cluster.Unknown `json:"unknown,omitempty"`
}

// Run is one run of a pool, or of the shared objects.
type Run struct {
	// Pool is empty for the runs of prepare and unprepare.
	Pool              string `json:"pool,omitempty"`
	cluster.RunRecord `json:",inline"`
	// Active is true while the run holds its lock.
	Active bool `json:"active,omitempty"`
}

// State is how a run ended: its outcome, "running" while it goes on, and
// "unfinished" if nobody has recorded its end: it was killed, or goes on unseen.
func (r Run) State() string {
	switch {
	case r.Ended != nil:
		return r.Outcome
	case r.Active:
		return "running"
	default:
		return "unfinished"
	}
}

// History gathers the runs, those of one pool if it is not empty.
func History(s *cluster.Snapshot, o Options, pool string) *RunHistory {
	g := &gatherer{s: s, o: o}
	out := &RunHistory{APIVersion: cluster.APIVersion, Kind: HistoryKind, Cluster: s.Identity, Runs: []Run{}}
	for _, part := range []string{cluster.PartJournals, cluster.PartLocks} {
		if reason, unknown := s.IsUnknown(part); unknown {
			out.Unknown = append(out.Unknown, cluster.Unknown{Part: part, Reason: reason})
		}
	}
	for _, j := range s.Journals {
		if pool != "" && j.Pool != pool {
			continue
		}
		lock, held := s.Lock(j.Pool)
		for i, r := range slices.Backward(j.Runs) {
			active := held && !g.o.Undated && !lock.Expired(g.o.Now) && i == len(j.Runs)-1 && r.Ended == nil
			out.Runs = append(out.Runs, Run{Pool: j.Pool, RunRecord: r, Active: active})
		}
	}
	slices.SortStableFunc(out.Runs, func(a, b Run) int { return b.Started.Compare(a.Started.Time) })
	return out
}
