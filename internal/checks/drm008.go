package checks

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/vendor"
)

func drm008() Check {
	return Check{
		Code:        "DRM008",
		Title:       "Devices are shared by replicas",
		Why:         "Time-slicing and MPS multiply what a plugin advertises: one GPU is asked for many times. By DRA the same request gets a whole device, so the pool would hold fewer pods.",
		Fix:         "Switch sharing off on the pool, or leave it on the plugin: extended resources by DRA have no replicas.",
		Sources:     []string{"NVIDIA/k8s-device-plugin, internal/lm", "GKE docs, \"GPU time-sharing\", \"NVIDIA MPS\"", "KEP-6406"},
		Unskippable: true,
		Operations:  []string{Migrate},
		Run: func(in Input) []Finding {
			shared, silent := nodeGroups{}, nodeGroups{}
			domain, _, _ := strings.Cut(in.Resource, "/")
			maker, _ := vendor.OfDomain(domain)
			for _, v := range in.targets() {
				if why := sharing(v, in.Resource); why != "" {
					shared.add(why, v.Node.Name)
				} else if _, labelled := v.Node.Labels[maker.CountLabel]; maker.CountLabel != "" && !labelled && v.HasDevices(in.Resource, in.Driver) {
					silent.add("no label tells how many GPUs there are or whether they are shared", v.Node.Name)
				}
			}
			return append(
				shared.findings(in, Finding{
					Code: "DRM008", Severity: Blocker,
					Remedy: "switch sharing off on the pool; extended resources by DRA are whole devices",
				}),
				silent.findings(in, Finding{
					Code: "DRM008", Severity: Info,
					Remedy: "the probe of each node, before its plugin is switched off, looks at the device IDs and stops if they are replicas",
				})...)
		},
	}
}

const (
	gfdCount    = "nvidia.com/gpu.count"
	gfdReplicas = "nvidia.com/gpu.replicas"
	gfdProduct  = "nvidia.com/gpu.product"
	gfdStrategy = "nvidia.com/gpu.sharing-strategy"
	// GKE has no GPU Feature Discovery and says the same of a node pool by labels of
	// its own (GKE docs, "GPU time-sharing", "NVIDIA MPS").
	gkeStrategy = "cloud.google.com/gke-gpu-sharing-strategy"
	gkeClients  = "cloud.google.com/gke-max-shared-clients-per-gpu"
)

// sharing says by what a node shows that its devices are shared; empty if by
// nothing.
func sharing(v cluster.NodeView, resource string) string {
	domain, _, _ := strings.Cut(resource, "/")
	for _, name := range slices.Sorted(maps.Keys(v.Node.Status.Capacity)) {
		r := string(name)
		if n, _ := v.Capacity(r); n > 0 && strings.HasSuffix(r, ".shared") && strings.HasPrefix(r, domain+"/") {
			return fmt.Sprintf("advertises %d of %s", n, r)
		}
	}
	l := v.Node.Labels
	if n, err := strconv.Atoi(l[gfdReplicas]); err == nil && n > 1 {
		return fmt.Sprintf("label %s=%d", gfdReplicas, n)
	}
	if s := l[gfdStrategy]; s != "" && s != "none" {
		return fmt.Sprintf("label %s=%s", gfdStrategy, s)
	}
	for _, key := range []string{gkeStrategy, gkeClients} {
		if s := l[key]; s != "" {
			return fmt.Sprintf("label %s=%s", key, s)
		}
	}
	if p := l[gfdProduct]; strings.HasSuffix(p, "-SHARED") {
		return fmt.Sprintf("label %s=%s", gfdProduct, p)
	}
	count, err := strconv.ParseInt(l[gfdCount], 10, 64)
	if n, _ := v.Allocatable(resource); err == nil && count > 0 && n > count && strings.HasPrefix(resource, "nvidia.com/") {
		return fmt.Sprintf("advertises %d of %s, but label %s=%d", n, resource, gfdCount, count)
	}
	return ""
}
