package checks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm084() Check {
	return Check{
		Code:       "DRM084",
		Title:      "A label of NVIDIA's operator does not do what it seems to",
		Why:        "nvidia.com/gpu.deploy.operands=false takes every operand from a node, the kernel driver too, and is no way to keep the plugin alone away. nvidia.com/gpu-operator.resource-allocation.mode was the switch between plugin and DRA in builds of summer 2026 and is read by no release. An empty value of a gpu.deploy label deploys nothing until the operator makes it \"true\", at a moment of its own.",
		Fix:        "Take the labels off, or give them a value, before the node is moved.",
		Sources:    []string{"NVIDIA/gpu-operator, controllers/state_manager.go", "NVIDIA/gpu-operator#2575", "NVIDIA/gpu-operator#2696", "NVIDIA/gpu-operator#491"},
		Operations: []string{Migrate, MigrateInto},
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
		Run: func(in Input) []Finding {
			if !in.nvidia() {
				return nil
			}
			contained := len(in.daemonSets(kernelDriver)) > 0
			bare, doubtful, dead, empty := nodeGroups{}, nodeGroups{}, nodeGroups{}, nodeGroups{}
			for _, v := range in.targets() {
				l := v.Node.Labels
				if l[deployOperands] == "false" {
					if say := "label " + deployOperands + "=false keeps every operand of the GPU Operator off"; contained {
						bare.add(say+", the GPU's kernel driver too, which the DRA driver needs", v.Node.Name)
					} else {
						doubtful.add(say+"; the GPU's kernel driver has to be part of the host", v.Node.Name)
					}
				}
				if mode, ok := l[deadMode]; ok {
					dead.add(fmt.Sprintf("label %s=%s is read by no release of the GPU Operator: it keeps neither mechanism away", deadMode, mode), v.Node.Name)
				}
				var keys []string
				for _, key := range sortedKeys(l) {
					if strings.HasPrefix(key, deployPrefix) && l[key] == "" {
						keys = append(keys, key)
					}
				}
				if len(keys) > 0 {
					empty.add("empty value of "+few(keys)+": nothing is deployed by it now, and the operator makes it \"true\" at any time", v.Node.Name)
				}
			}
			take := func(key string) string { return "`kubectl label node NODE " + key + "-`" }
			return slices.Concat(
				bare.findings(in, Finding{Code: "DRM084", Severity: Blocker, Remedy: take(deployOperands)}),
				doubtful.findings(in, Finding{Code: "DRM084", Severity: Warning, Remedy: take(deployOperands) + " unless that is so"}),
				dead.findings(in, Finding{Code: "DRM084", Severity: Warning, Remedy: take(deadMode)}),
				empty.findings(in, Finding{Code: "DRM084", Severity: Warning, Remedy: "give the label the value true or false: `kubectl label node NODE KEY=true --overwrite`"}))
		},
	}
}

const (
	// deployPrefix begins the labels by which the GPU Operator places its operands.
	deployPrefix   = "nvidia.com/gpu.deploy."
	deployOperands = deployPrefix + "operands"
	deadMode       = "nvidia.com/gpu-operator.resource-allocation.mode"
)
