package checks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm109() Check {
	return Check{
		Code:       "DRM109",
		Title:      "Node labels that workloads select by go stale",
		Why:        "Labels such as nvidia.com/gpu.product come from GPU Feature Discovery, not from the plugin, and stay up to date as long as its DaemonSet stays. The plugin's chart gives both one affinity, so that what keeps the plugin off a pool may keep it off too. And where sharing was on, labels on a switched node may still tell of replicas that are no more.",
		Fix:        "Keep GPU Feature Discovery on the pool, by a release of its own; take labels that are wrong off the node.",
		Sources:    []string{"NVIDIA/k8s-device-plugin, deployments/helm/nvidia-device-plugin/templates/daemonset-gfd.yml, v0.20.0", "NVIDIA/k8s-device-plugin, docs/gpu-feature-discovery", "jfroy/flatops#2620", "NVIDIA/NVSentinel#1860"},
		Advises:    true,
		Operations: []string{Migrate},
		Needs:      append(workloadParts(), cluster.PartPods, cluster.PartClaims, cluster.PartDaemonSets),
		Run: func(in Input) []Finding {
			return append(in.lostLabels(), in.staleLabels()...)
		},
	}
}

// lostLabels are the workloads that select by what nobody keeps up to date any more.
func (in Input) lostLabels() []Finding {
	leaving := in.leavingDiscovery()
	if len(leaving) == 0 {
		return nil
	}
	return in.askers(func(p *cluster.Pod) string {
		var keys []string
		for _, q := range p.NodeLabels {
			if discovered(q.Key) && !slices.Contains(keys, q.Key) {
				keys = append(keys, q.Key)
			}
		}
		if len(keys) == 0 {
			return ""
		}
		return fmt.Sprintf("selects nodes by %s, which %s sets; that leaves the pool with the plugin, and the label may go or no longer be true", few(keys), few(leaving))
	}).findings(Finding{
		Code: "DRM109", Severity: Warning,
		Remedy: "keep GPU Feature Discovery on nodes with " + gate.AllocationLabel + " (a release of its own with gfd.enabled=true and devicePlugin.enabled=false), or set on the pool's nodes yourself what they select by",
	})
}

// leavingDiscovery are the DaemonSets of GPU Feature Discovery that run on the nodes now
// and would not once these are on DRA.
func (in Input) leavingDiscovery() []string {
	var sets []*appsv1.DaemonSet
	for i := range in.Snapshot.DaemonSets {
		if ds := &in.Snapshot.DaemonSets[i]; isDiscovery(ds) {
			sets = append(sets, ds)
		}
	}
	var out []string
	for _, v := range in.targets() {
		var here []*appsv1.DaemonSet
		stays := false
		for _, ds := range sets {
			now, _ := gate.Lands(ds, in.Gate.With(v.Node, gate.Plugin))
			then, _ := gate.Lands(ds, in.Gate.With(v.Node, gate.DRA))
			stays = stays || then
			if now {
				here = append(here, ds)
			}
		}
		for _, ds := range here {
			if name := daemonSetObject(ds); !stays && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// staleLabels are the switched nodes whose labels still tell of sharing.
func (in Input) staleLabels() []Finding {
	stale := nodeGroups{}
	for _, v := range in.seen() {
		if state, known := in.Gate.StateOf(v.Node.Labels); !known || state != gate.DRA {
			continue
		}
		l := v.Node.Labels
		if n, err := strconv.Atoi(l[gfdReplicas]); err == nil && n > 1 {
			stale.add(fmt.Sprintf("label %s=%d is not true any more: by DRA a device is whole", gfdReplicas, n), v.Node.Name)
		} else if p := l[gfdProduct]; strings.HasSuffix(p, "-SHARED") {
			stale.add(fmt.Sprintf("label %s=%s is not true any more: by DRA a device is whole", gfdProduct, p), v.Node.Name)
		}
	}
	return stale.findings(in, Finding{
		Code: "DRM109", Severity: Warning,
		Remedy: "take the sharing out of what GPU Feature Discovery reads (its config, label nvidia.com/device-plugin.config), or remove the label: `kubectl label node NODE " + gfdReplicas + "-`",
	})
}

// isDiscovery says that a DaemonSet runs GPU Feature Discovery. It has the image of the
// plugin, so that the container's command or name has to tell.
func isDiscovery(ds *appsv1.DaemonSet) bool {
	const name = "gpu-feature-discovery"
	return slices.ContainsFunc(ds.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return strings.Contains(c.Name, name) || hasImage([]string{c.Image}, name) ||
			slices.ContainsFunc(slices.Concat(c.Command, c.Args), func(s string) bool { return strings.HasSuffix(s, name) })
	})
}

// discovered says that GPU Feature Discovery sets a label. The GPU Operator and MIG
// Manager have labels of their own below the same domain.
func discovered(key string) bool {
	switch key {
	case "nvidia.com/gpu.present", migConfig, migState:
		return false
	}
	if strings.HasPrefix(key, "nvidia.com/gpu.deploy.") || strings.HasPrefix(key, "nvidia.com/gpu.workload.") {
		return false
	}
	return slices.ContainsFunc([]string{"gpu.", "mig.", "mig-", "cuda.", "vgpu.", "mps.", "gfd."}, func(prefix string) bool {
		return strings.HasPrefix(key, "nvidia.com/"+prefix)
	})
}
