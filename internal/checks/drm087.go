package checks

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/words"
)

func drm087() Check {
	return Check{
		Code:       "DRM087",
		Title:      "Karpenter makes the pool's nodes",
		Why:        "Karpenter counts a node as initialized when everything that the pods had asked for is allocatable there. On a node with the driver nvidia.com/gpu never is: the node stays uninitialized (ResourceNotRegistered), and is neither consolidated nor removed when it is empty. It passes over pods with claims unless it runs with --ignore-dra-requests=false, and takes pods that ask for the extended resource for pods of the plugin. With which flags it runs cannot be seen from what the tool reads.",
		Fix:        "Give the pool a size of its own for the move, and nodes to come the labels of the driver; watch for nodes that are not initialized, and remove empty ones by hand.",
		Sources:    []string{"kubernetes-sigs/karpenter, pkg/controllers/nodeclaim/lifecycle/initialization.go, v1.14.1", "kubernetes-sigs/karpenter#3228", "aws/karpenter-provider-aws#1914", "Amazon EKS docs, \"Manage NVIDIA devices\""},
		Operations: []string{Migrate, MigrateFrom, MigrateInto, RollbackFrom, RollbackInto},
		Needs:      []string{cluster.PartPods},
		Advises:    true,
		Run: func(in Input) []Finding {
			var made []*corev1.Node
			stuck := nodeGroups{}
			for _, v := range in.seen() {
				if v.Node.Labels["karpenter.sh/nodepool"] == "" || !karpenterNode(v.Node) {
					continue
				}
				made = append(made, v.Node)
				if state, _ := in.Gate.StateOf(v.Node.Labels); state == gate.DRA && v.Node.Labels[karpenterInitialized] != "true" {
					stuck.add("runs the driver and has no label "+karpenterInitialized+"=true: Karpenter waits for "+in.Resource+" to be allocatable, and neither consolidates nor removes it", v.Node.Name)
				}
			}
			var out []Finding
			if in.Operation == RollbackFrom || in.Operation == RollbackInto {
				stuck = nodeGroups{} // the pool is on its way out, or has the plugin
			}
			out = append(out, stuck.findings(in, Finding{Code: "DRM087", Severity: Warning, Remedy: "remove the node by hand when it is not wanted any more: `kubectl delete node NODE`"})...)
			if len(made) == 0 || len(in.targets()) == 0 {
				return out
			}
			object, say := in.poolObject(), "whether it heeds DRA cannot be seen"
			if p := in.podOf(func(p *cluster.Pod) bool {
				return hasImage(p.Images, "karpenter/controller") || p.Labels["app.kubernetes.io/name"] == "karpenter"
			}); p != nil {
				_, tag := imageVersion(p.Images, "controller")
				object, say = podObject(p), "Karpenter "+cmp.Or(tag, "of unknown version")+"; whether it runs with --ignore-dra-requests=false cannot be seen"
			}
			groups := groupsOf(made)
			if in.Operation != Migrate && in.Operation != MigrateInto {
				return slices.Concat(out, []Finding{{
					Code: "DRM087", Severity: Warning, Object: object,
					Message: fmt.Sprintf("%s Karpenter's (%s): %s", words.Plural(len(made), "node is", "nodes are"), say, in.karpenterMeets()),
					Remedy:  pauses(groups, "") + "; keep it from making more by the NodePool's limits: `kubectl get nodepools`",
				}})
			}
			return slices.Concat(out, []Finding{{
				Code: "DRM087", Severity: Warning, Object: object,
				Message: fmt.Sprintf("%s Karpenter's (%s): nodes that it makes for the pool on DRA are never initialized, because %s is not allocatable there, and it makes none for pods with claims unless told to", words.Plural(len(made), "node is", "nodes are"), say, in.Resource),
				Remedy:  pauses(groups, "") + "; see its flag: `kubectl get pods -A -l app.kubernetes.io/name=karpenter -o yaml | grep -i ignore`",
			}})
		},
	}
}

// karpenterMeets is what Karpenter would do to a pool that pods leave, or come back to.
func (in Input) karpenterMeets() string {
	if in.Operation == RollbackInto {
		return "it may take nodes that are empty yet for unneeded, and remove them before the pods have come back"
	}
	return "for pods that wait while the nodes are closed it may make others of the pool, and the pods go there again"
}
