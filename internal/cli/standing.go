package cli

import (
	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// standing is what the catalogue has to say of nodes that are on DRA, or between the
// two: the pool's, or with an empty one all of the cluster. Without such a node it has
// nothing to say. What there is only to know is left to `check --for verify`.
func (a *app) standing(s *cluster.Snapshot, pool cluster.NodePool, skips []checks.FindingSkip) ([]checks.Finding, error) {
	if pool.Name != "" && len(pool.Nodes) == 0 {
		return nil, nil // its last node went
	}
	in := plan.Intent{
		Operation: plan.Operation(checks.Verify), Namespace: a.namespace, Resource: a.resource, Driver: a.driver,
		Settings: plan.Settings{Drain: plan.DrainGPU, Skips: skips}, Pool: pool, Offline: a.offline(),
	}
	inputs, err := plan.CheckInputs(in, s)
	if err != nil {
		return nil, err
	}
	input := inputs[0] // verify is about one pool
	if !input.HasTargets() {
		return nil, nil
	}
	var out []checks.Finding
	for _, f := range checks.Run(input) {
		if f.Severity != checks.Info {
			out = append(out, f)
		}
	}
	return out, nil
}
