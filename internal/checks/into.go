package checks

import (
	"slices"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// The four sides of a move from one pool into another: what there is to know about the
// pool that pods leave is not what there is to know about the one that takes them.
// A check names those that it is about beside the operations proper.
const (
	// MigrateFrom is about the old pool, MigrateInto about the new one.
	MigrateFrom = "migrate-from"
	MigrateInto = "migrate-into"
	// RollbackFrom is about the new pool, which pods leave again, RollbackInto about the
	// old one, which is opened for them.
	RollbackFrom = "rollback-from"
	RollbackInto = "rollback-into"
)

// RunBoth runs the checks on both pools of a move from in.Pool into another, for the
// operation of in: each is seen by the checks that are about its side. What is about
// the whole cluster is said once.
func RunBoth(in Input, into cluster.NodePool) []Finding {
	var out []Finding
	for _, side := range Sides(in, into) {
		for _, f := range Run(side) {
			if !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	Sort(out)
	return out
}

// Sides are the two sides of a move from in.Pool into another.
func Sides(in Input, into cluster.NodePool) []Input {
	from, to := in, in
	from.Other = into
	to.Pool, to.Other = into, in.Pool
	if in.Operation == Rollback {
		from.Operation, to.Operation = RollbackInto, RollbackFrom
	} else {
		from.Operation, to.Operation = MigrateFrom, MigrateInto
	}
	return []Input{from, to}
}

// verb is the operation that a side belongs to; any other is itself.
func verb(operation string) string {
	switch operation {
	case MigrateFrom, MigrateInto:
		return Migrate
	case RollbackFrom, RollbackInto:
		return Rollback
	default:
		return operation
	}
}

// runPool is the name of the pool whose run it is: lock, journal and records go by it.
func (in Input) runPool() string {
	if in.Operation == MigrateInto || in.Operation == RollbackFrom {
		return in.Other.Name
	}
	return in.Pool.Name
}

// handled says that nothing is left to do on a node of a move into another pool.
func (in Input) handled(st *cluster.NodeState) bool {
	switch in.Operation {
	case MigrateFrom:
		return st.Retired() && st.Operation == Migrate
	case MigrateInto:
		return st.Received()
	case RollbackFrom:
		return st == nil || st.Retired()
	default:
		return st == nil
	}
}
