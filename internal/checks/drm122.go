package checks

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/words"
)

func drm122() Check {
	return Check{
		Code:       "DRM122",
		Title:      "Evicted pods have nowhere else to go",
		Why:        "While a node is closed its pods need devices on others. Where the pool is the only capacity, they wait until the node is open again: minutes in which the workload is smaller or away. The count here is coarse: free devices of open nodes that the pods' node selectors and tolerations admit and that have the CPU and memory for them; affinity between pods and what other pods take meanwhile are not looked at.",
		Fix:        "Accept the wait, scale the workload down for the window, or bring a spare node.",
		Sources:    []string{"KEP-5004, \"one node at a time\"", "kubernetes-sigs/karpenter#740"},
		Advises:    true,
		Operations: []string{Migrate, Rollback},
		Needs:      []string{cluster.PartPods, cluster.PartClaims, cluster.PartSlices},
		Run: func(in Input) []Finding {
			node, moving, need := in.fullest()
			if need == 0 {
				return nil
			}
			room := in.roomFor(moving, node)
			if room >= need {
				return nil
			}
			owners := map[string]bool{}
			var names []string
			for i := range moving {
				if o := ownerObject(&moving[i]); !owners[o] {
					owners[o] = true
					names = append(names, o)
				}
			}
			slices.Sort(names)
			return []Finding{{
				Code: "DRM122", Severity: Warning, Object: in.poolObject(),
				Message: fmt.Sprintf("the pods of node %s alone need %s (%s), and other nodes that admit them have room for pods with %s of these: while such a node is closed pods with about %s wait",
					node, words.Count(int(need), "device"), few(names), orNo(int(room)), words.Count(int(need-room), "device")),
				Remedy: "accept that they wait for their node, with small batches (--max-unavailable 1), scale the workload down for the window, or add a node",
			}}
		},
	}
}

func orNo(n int) string {
	if n == 0 {
		return "none"
	}
	return strconv.Itoa(n)
}

// roomFor is how many of the devices that the pods need they find on open nodes other
// than the one: pod by pod, those with the most devices first, each on the first node
// that has all that it asks for.
func (in Input) roomFor(pods []cluster.Pod, but string) int64 {
	free := in.freeDevices()
	type left struct{ cpu, memory int64 }
	room := map[string]left{}
	for i := range in.Snapshot.Nodes {
		n := &in.Snapshot.Nodes[i]
		l := left{math.MaxInt64, math.MaxInt64}
		if q, has := n.Status.Allocatable[corev1.ResourceCPU]; has {
			l.cpu = q.MilliValue()
		}
		if q, has := n.Status.Allocatable[corev1.ResourceMemory]; has {
			l.memory = q.Value()
		}
		room[n.Name] = l
	}
	for i := range in.Snapshot.Pods {
		p := &in.Snapshot.Pods[i]
		if l, known := room[p.Node]; known && free[p.Node] > 0 && !p.Finished() {
			room[p.Node] = left{l.cpu - p.CPU, l.memory - p.Memory}
		}
	}
	pods = slices.Clone(pods)
	slices.SortStableFunc(pods, func(a, b cluster.Pod) int {
		return cmp.Compare(devicesOf(&b, in.Resources), devicesOf(&a, in.Resources))
	})
	var placed int64
	for i := range pods {
		p := &pods[i]
		devices := devicesOf(p, in.Resources)
		for j := range in.Snapshot.Nodes {
			n := &in.Snapshot.Nodes[j]
			l := room[n.Name]
			if n.Name == but || n.Spec.Unschedulable || free[n.Name] < devices || l.cpu < p.CPU || l.memory < p.Memory ||
				!admits(n, p.NodeLabels) || !tolerates(p, n) {
				continue
			}
			free[n.Name] -= devices
			room[n.Name] = left{l.cpu - p.CPU, l.memory - p.Memory}
			placed += devices
			break
		}
	}
	return placed
}

// tolerates says that no taint of the node keeps the pod off.
func tolerates(p *cluster.Pod, n *corev1.Node) bool {
	var tolerated []corev1.Toleration
	if p.Placement != nil {
		tolerated = p.Placement.Tolerations
	}
	_, found := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), n.Spec.Taints, tolerated, func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}, false)
	return !found
}

// fullest is the node whose evicted pods need the most devices, the first by name.
func (in Input) fullest() (node string, moving []cluster.Pod, need int64) {
	for _, v := range in.targets() {
		var sum int64
		var pods []cluster.Pod
		for _, p := range in.evictions(v) {
			if n := devicesOf(&p, in.Resources); n > 0 {
				sum += n
				pods = append(pods, p)
			}
		}
		if sum > need {
			node, moving, need = v.Node.Name, pods, sum
		}
	}
	return node, moving, need
}

func devicesOf(p *cluster.Pod, resources []string) int64 {
	var sum int64
	for _, r := range resources {
		sum += p.DevicesNeeded(r)
	}
	return sum
}

// admits says whether a node could have a pod with these requirements, as reach.admit
// does of several nodes.
func admits(n *corev1.Node, requirements []corev1.NodeSelectorRequirement) bool {
	return perKey(requirements, func(q corev1.NodeSelectorRequirement) bool {
		value, has := n.Labels[q.Key]
		switch q.Operator {
		case corev1.NodeSelectorOpIn:
			return has && slices.Contains(q.Values, value)
		case corev1.NodeSelectorOpNotIn:
			return !has || !slices.Contains(q.Values, value)
		case corev1.NodeSelectorOpDoesNotExist:
			return !has
		default: // Exists, Gt, Lt
			return has
		}
	})
}
