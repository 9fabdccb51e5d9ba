package checks

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/words"
)

// provider is who makes a node: by which group, and how that is told something.
type provider struct {
	// name is what people call it, group the node group.
	name, group string
	// label is the command that gives new nodes labels; pairs is "k=v,k=v".
	label func(pairs string) string
	// effect says what the command does to the nodes that are there.
	effect string
	// pause is the command that keeps an autoscaler from changing the group, which has
	// so many nodes.
	pause func(nodes int) string
	// fromZero is false if the autoscaler cannot tell what devices a node of the group
	// would have as long as there is none.
	fromZero bool
}

// providerOf finds out who makes a node by the labels that clouds and tools give it;
// false if nothing tells.
func providerOf(n *corev1.Node) (provider, bool) {
	l := n.Labels
	switch {
	case l[gkeNodePool] != "":
		g := l[gkeNodePool]
		return provider{
			name: "GKE", group: g, fromZero: true,
			label: func(pairs string) string {
				return fmt.Sprintf("`gcloud container node-pools update %s --cluster CLUSTER --location LOCATION --node-labels=%s`, with the labels that the pool has now in it as well, for the flag replaces them", words.Shell(g), pairs)
			},
			effect: "it labels the nodes that are there at once",
			pause: func(int) string {
				return fmt.Sprintf("`gcloud container node-pools update %s --cluster CLUSTER --location LOCATION --no-enable-autoscaling`", words.Shell(g))
			},
		}, true
	case l["karpenter.sh/nodepool"] != "" && karpenterNode(n):
		g := l["karpenter.sh/nodepool"]
		return provider{
			name: "Karpenter", group: g,
			label: func(pairs string) string {
				return fmt.Sprintf("`kubectl patch nodepool %s --type merge -p '"+`{"spec":{"template":{"metadata":{"labels":{%s}}}}}`+"'`", words.Shell(g), jsonPairs(pairs))
			},
			effect: "its nodes have then drifted from the NodePool, and Karpenter replaces them as its disruption budgets allow",
			pause: func(int) string {
				return fmt.Sprintf("`kubectl patch nodepool %s --type merge -p '"+`{"spec":{"disruption":{"budgets":[{"nodes":"0"}]}}}`+"'`, after noting the budgets that it has", words.Shell(g))
			},
		}, true
	case l["eks.amazonaws.com/nodegroup"] != "":
		g := l["eks.amazonaws.com/nodegroup"]
		return provider{
			name: "EKS", group: g,
			label: func(pairs string) string {
				return fmt.Sprintf("`aws eks update-nodegroup-config --cluster-name CLUSTER --nodegroup-name %s --labels 'addOrUpdateLabels={%s}'`", words.Shell(g), pairs)
			},
			effect: "it labels the nodes that are there, too",
			pause: func(nodes int) string {
				return fmt.Sprintf("`aws eks update-nodegroup-config --cluster-name CLUSTER --nodegroup-name %s --scaling-config minSize=%d,maxSize=%d,desiredSize=%d`", words.Shell(g), nodes, nodes, nodes)
			},
		}, true
	case l["alpha.eksctl.io/nodegroup-name"] != "":
		g := l["alpha.eksctl.io/nodegroup-name"]
		return provider{
			name: "eksctl", group: g,
			label: func(pairs string) string {
				return fmt.Sprintf("add %s to --node-labels of the kubelet in the launch template of %s: eksctl changes labels of managed node groups alone (`eksctl set labels`)", pairs, g)
			},
			effect: "nodes that are there keep the labels they have",
			pause: func(nodes int) string {
				return fmt.Sprintf("`eksctl scale nodegroup --cluster CLUSTER --name %s --nodes %d --nodes-min %d --nodes-max %d`", words.Shell(g), nodes, nodes, nodes)
			},
		}, true
	case l["kubernetes.azure.com/agentpool"] != "":
		g := l["kubernetes.azure.com/agentpool"]
		return provider{
			name: "AKS", group: g,
			label: func(pairs string) string {
				return fmt.Sprintf("`az aks nodepool update --resource-group GROUP --cluster-name CLUSTER --name %s --labels %s`, with the labels that the pool has now as well, for the flag replaces them", words.Shell(g), strings.ReplaceAll(pairs, ",", " "))
			},
			effect: "it labels the nodes that are there at once",
			pause: func(int) string {
				return fmt.Sprintf("`az aks nodepool update --resource-group GROUP --cluster-name CLUSTER --name %s --disable-cluster-autoscaler`", words.Shell(g))
			},
		}, true
	case n.Annotations[openShiftMachine] != "":
		g := machineSet(n.Annotations[openShiftMachine])
		return provider{
			name: "OpenShift's Machine API", group: g, fromZero: true,
			label: func(pairs string) string {
				return fmt.Sprintf("`oc -n openshift-machine-api patch machineset %s --type merge -p '"+`{"spec":{"template":{"spec":{"metadata":{"labels":{%s}}}}}}`+"'`", words.Shell(g), jsonPairs(pairs))
			},
			effect: "nodes that are there keep the labels they have",
			pause: func(int) string {
				return "`oc -n openshift-machine-api get machineautoscalers`; delete the one of machineset " + g + " for the window, and make it again afterwards"
			},
		}, true
	default:
		return provider{}, false
	}
}

const openShiftMachine = "machine.openshift.io/machine"

// machineSet is the MachineSet of a Machine, which it names <set>-<5 characters>.
func machineSet(machine string) string {
	_, name, _ := strings.Cut(machine, "/")
	if at := strings.LastIndex(name, "-"); at > 0 {
		return name[:at]
	}
	return name
}

// karpenterNode says that Karpenter has made the node: a nodepool's label alone may come
// from elsewhere.
func karpenterNode(n *corev1.Node) bool {
	for _, key := range []string{"karpenter.sh/registered", karpenterInitialized, "karpenter.sh/capacity-type"} {
		if n.Labels[key] != "" {
			return true
		}
	}
	return false
}

const karpenterInitialized = "karpenter.sh/initialized"

// jsonPairs writes "k=v,k=v" as the members of a JSON object.
func jsonPairs(pairs string) string {
	var out []string
	for _, pair := range strings.Split(pairs, ",") {
		key, value, _ := strings.Cut(pair, "=")
		out = append(out, fmt.Sprintf("%q:%q", key, value))
	}
	return strings.Join(out, ",")
}

// nodeGroup is a node group and how many of the nodes in question are its.
type nodeGroup struct {
	provider
	size int
}

// groupsOf are the node groups of nodes, by provider and then by name: what there is to
// say is the same for all groups of a provider.
func groupsOf(nodes []*corev1.Node) map[string][]nodeGroup {
	by := map[string]*nodeGroup{}
	for _, n := range nodes {
		p, ok := providerOf(n)
		if !ok {
			continue
		}
		key := p.name + "/" + p.group
		if by[key] == nil {
			by[key] = &nodeGroup{provider: p}
		}
		by[key].size++
	}
	out := map[string][]nodeGroup{}
	for _, key := range sortedKeys(by) {
		g := by[key]
		out[g.name] = append(out[g.name], *g)
	}
	return out
}

// groupNames names up to five groups.
func groupNames(groups []nodeGroup) string {
	var names []string
	for _, g := range groups {
		names = append(names, g.group)
	}
	return few(names)
}

// groupObject names one group, or all of a provider.
func groupObject(groups []nodeGroup) string {
	if len(groups) == 1 {
		return "nodegroup/" + groups[0].group
	}
	return "nodegroups"
}

// forEach says that a command for the first of the groups is to be given for the others,
// too.
func forEach(groups []nodeGroup, command string) string {
	if len(groups) == 1 {
		return command
	}
	return fmt.Sprintf("%s, and so for each of the %d groups", command, len(groups))
}
