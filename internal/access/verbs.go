package access

import (
	"fmt"
	"slices"
)

// The verbs that have rules, as they are typed; VerifyCanary is `verify --canary`, and
// `verify --probe` is Verify and Probe.
const (
	Pools        = "pools"
	Check        = "check"
	Plan         = "plan"
	Prepare      = "prepare"
	Apply        = "apply"
	Rollback     = "rollback"
	Unprepare    = "unprepare"
	Status       = "status"
	Verify       = "verify"
	VerifyCanary = "verify-canary"
	Probe        = "probe"
	Snapshot     = "snapshot"
	Unlock       = "unlock"
)

// Verbs are all that have rules, in the order of a migration.
func Verbs() []string {
	return []string{Pools, Check, Plan, Prepare, Apply, Status, Verify, VerifyCanary, Probe, Rollback, Unprepare, Snapshot, Unlock}
}

// Reading are the verbs that change nothing.
func Reading() []string { return []string{Pools, Check, Plan, Status, Verify, Snapshot} }

// Running are the verbs that run a plan.
func Running() []string { return []string{Prepare, Apply, Rollback, Unprepare} }

// Of is what a verb needs. namespace is the tool's.
func Of(verb, namespace string) ([]Rule, error) {
	t := table{namespace}
	switch verb {
	case Pools:
		return slices.Concat(t.look(), t.records()), nil
	case Status:
		return slices.Concat(t.look(), t.records(), t.watchStatus()), nil
	case Verify:
		return slices.Concat(t.look(), t.watchVerify(), t.seeLock()), nil
	case Probe:
		return slices.Concat(t.look(), t.readHelpers(), t.helperPods()), nil
	case Check:
		return slices.Concat(t.look(), t.records(), t.review(), t.advice(), t.podEvents()), nil
	case Snapshot, Plan:
		return slices.Concat(t.look(), t.records(), t.review(), t.advice()), nil
	case VerifyCanary:
		return slices.Concat(t.look(), t.lock(), t.readJournal(), t.helperPods(), t.canary()), nil
	case Unlock:
		return t.unlock(), nil
	case Prepare:
		return slices.Concat(t.forRuns(), t.makeNamespace(), t.editDaemonSets(), t.discovery(), t.dryRunOfShared()), nil
	case Unprepare:
		return slices.Concat(t.forRuns(), t.editDaemonSets(), t.deleteClass(), t.discovery()), nil
	case Apply:
		return slices.Concat(t.forRuns(), t.nodes(), t.helperPods(), t.canary(), t.createClass()), nil
	case Rollback:
		return slices.Concat(t.forRuns(), t.nodes(), t.helperPods(), t.findNamespace()), nil
	default:
		return nil, fmt.Errorf("verb %q needs no rights, or is none; there are %v", verb, Verbs())
	}
}

// forRuns is what every run of a plan needs besides its own.
func (t table) forRuns() []Rule {
	return slices.Concat(t.look(), t.records(), t.review(), t.lock(), t.journal(), t.advice())
}
