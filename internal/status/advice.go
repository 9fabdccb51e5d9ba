package status

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/words"
)

// LockPools are the pools whose locks a verification of the pool has to know: the pool's
// own, and those that the runs which marked its nodes knew it by.
func LockPools(s *cluster.Snapshot, pool cluster.NodePool) []string {
	var out []string
	add := func(name string) {
		if name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	add(pool.Name)
	in := sets.New(pool.Nodes...)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if !in.Has(n.Name) {
			continue
		}
		if mark, err := cluster.ParseNodeState(n); err == nil && mark != nil {
			add(mark.Pool)
		}
	}
	return out
}

// then adds to a reason what to do about it, and what speaks against that: somebody who
// holds the lock of one of the pools. do is empty where there is nothing to do.
func (v *verifier) then(why, do string, pools ...string) string {
	busy, first := v.busy(pools)
	switch {
	case busy == "":
		return why + prefixed(": ", do)
	case first == "":
		return why + "; " + busy
	}
	return why + "; " + busy + prefixed(": "+first, do)
}

// busy says who is, or may be, at work on one of the pools, and what has to be so before
// anybody else does something; first is empty for a run, which nobody has to help.
func (v *verifier) busy(pools []string) (who, first string) {
	for _, pool := range pools {
		lock := v.t.Locks[pool]
		if !lock.Held() || !v.t.Undated && lock.Expired(v.t.Now) {
			continue
		}
		since := lock.Since.UTC().Format(time.RFC3339)
		canary := lock.Info["operation"] == checks.Verify // which ends without having settled anything
		switch {
		case !v.t.Undated && !canary:
			return fmt.Sprintf("a run %s under way%s, by %s since %s: wait for its end, or follow it by %s",
				v.tense("is", "was"), v.asOf(), lock.Holder, since, words.Command("status", pool, "--watch")), ""
		case who != "":
		case v.t.Undated:
			who = fmt.Sprintf("whether %s, who holds the lock of pool %s since %s, is at it still is not known, as the files do not say when they were made", lock.Holder, pool, since)
			first = "if not, "
		default:
			who = fmt.Sprintf("`dramigrate verify --canary` %s the lock of pool %s%s, by %s since %s", v.tense("holds", "held"), pool, v.asOf(), lock.Holder, since)
			first = "when it is over, "
		}
	}
	if who == "" && v.t.Unseen != "" {
		return "whether a run is under way is not known, as locks could not be read: " + v.t.Unseen, "if none is, "
	}
	return who, first
}

// tense chooses between what is, of a cluster, and what was, of a snapshot.
func (v *verifier) tense(now, then string) string {
	if v.s.Taken.IsZero() {
		return now
	}
	return then
}

// asOf is the time of a snapshot; of a cluster there is none to tell.
func (v *verifier) asOf() string {
	if v.s.Taken.IsZero() {
		return ""
	}
	return " at " + v.s.Taken.UTC().Format(time.RFC3339)
}

// prefixed leaves nothing as it is.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}
