package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/Masterminds/semver/v3"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
)

// A claim is one sentence about Kubernetes on which the tool relies.
type claim struct {
	// id is stable: findings, tests and docs/truth.md refer to it.
	id string
	// says is the sentence itself. It ends without a full stop.
	says string
	// source is where upstream says or does so; files are those of k8s.io/kubernetes
	// v1.37.2 unless another version is named.
	source string
	// holds are the versions of the control plane on which it is expected, as a
	// semantic version constraint.
	holds string
	// place is where it is proven.
	place place
	// isUnmapped has it proven while no DeviceClass carries nvidia.com/gpu.
	isUnmapped bool
	// texts are what the proof compares with, word for word, and what a diagnosis may
	// match on.
	texts []string
	// prove returns nil if it holds, and otherwise an error that says what was expected
	// and what was there instead.
	prove func(context.Context, *scene) error
}

// claims is the table.
func claims() []claim {
	return slices.Concat(
		decisionClaims(), reasonClaims(), nameClaims(), handoverClaims(), generatedClaims(), bothClaims(),
		preemptionClaims(), pluginGoneClaims(), staleClaims(), oldKubeletClaims(), quotaClaims(), sliceClaims(),
		daemonSetClaims(), taintClaims(),
	)
}

// expected says whether a claim is made about a version such as "v1.36.3".
func (c claim) expected(version string) (bool, error) {
	constraint, err := semver.NewConstraint(c.holds)
	if err != nil {
		return false, fmt.Errorf("claim %s: versions %q: %w", c.id, c.holds, err)
	}
	v, err := semver.NewVersion(version)
	if err != nil {
		return false, fmt.Errorf("kubernetes version %q: want the form 1.MINOR.PATCH: %w", version, err)
	}
	return constraint.Check(v), nil
}

// matching are the claims whose id matches.
func matching(all []claim, only *regexp.Regexp) []claim {
	return slices.DeleteFunc(slices.Clone(all), func(c claim) bool { return !only.MatchString(c.id) })
}

// nodesOf are the nodes that the claims need, each once.
func nodesOf(all []claim) []cluster.NodeSpec {
	var seen []place
	var out []cluster.NodeSpec
	for _, c := range all {
		if !slices.Contains(seen, c.place) {
			seen = append(seen, c.place)
			out = append(out, c.place.nodes()...)
		}
	}
	return out
}
