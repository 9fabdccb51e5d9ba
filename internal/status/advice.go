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

// then adds to a reason what to do about it, or what speaks against that: somebody who
// holds the lock of one of the pools. do is empty where there is nothing to do.
func (v *verifier) then(why, do string, pools ...string) string {
	during, other := "", ""
	for _, pool := range pools {
		lock, held := v.t.Locks[pool]
		held = held && lock.Held()
		who := fmt.Sprintf("%s since %s", lock.Holder, lock.Since.UTC().Format(time.RFC3339))
		switch {
		case !held || !v.t.Undated && lock.Expired(v.t.Now):
		case v.t.Undated && other == "":
			other = fmt.Sprintf("whether %s, who holds the lock of pool %s since %s, is at it still is not known, as the files do not say when they were made",
				lock.Holder, pool, lock.Since.UTC().Format(time.RFC3339))
			do = prefixed("if not, ", do)
		case v.t.Undated:
		case lock.Info["operation"] == checks.Verify:
			// It ends without having settled anything.
			if other == "" {
				other = fmt.Sprintf("`dramigrate verify --canary` %s the lock of pool %s%s, by %s", v.tense("holds", "held"), pool, v.asOf(), who)
				do = prefixed("when it is over, ", do)
			}
		case during == "":
			during = fmt.Sprintf("a run %s under way%s, by %s: wait for its end, or follow it by %s",
				v.tense("is", "was"), v.asOf(), who, words.Command("status", pool, "--watch"))
		}
	}
	if other == "" && v.t.Unseen != "" {
		other = "whether a run is under way is not known, as locks could not be read: " + v.t.Unseen
		do = prefixed("if none is, ", do)
	}
	switch {
	case during != "":
		return why + "; " + during
	case other != "":
		return why + "; " + other + prefixed(": ", do)
	}
	return why + prefixed(": ", do)
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
