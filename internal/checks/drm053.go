package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/words"
)

func drm053() Check {
	return Check{
		Code:       "DRM053",
		Title:      "The other pool has fewer devices than the workloads hold",
		Why:        "Pods that are evicted wait until a device is free. With none free no workload would run again; with too few some wait until others end. What autoscalers would add is not counted, and a device of which a claim has a part counts as free.",
		Fix:        "Make the other pool larger first, or scale workloads down.",
		Sources:    []string{"KEP-5004, \"one node at a time\""},
		Operations: []string{MigrateFrom, RollbackFrom},
		Needs:      []string{cluster.PartPods, cluster.PartClaims, cluster.PartSlices},
		Run: func(in Input) []Finding {
			var need, free, there int64
			for _, v := range in.targets() {
				for _, p := range in.evictions(v) {
					need += devicesOf(&p, in.Resources)
				}
			}
			left := in.freeDevices()
			for _, v := range in.takers() {
				count, _ := v.Allocatable(in.Resource)
				devices, _ := cluster.DevicesOf(v.SlicesOf(in.Driver), in.Driver)
				there += max(count, int64(len(devices)))
				free += max(left[v.Node.Name], 0)
			}
			if there == 0 || free >= need { // without any, another finding says why
				return nil
			}
			f := Finding{
				Code: "DRM053", Severity: Warning, Object: "pool/" + in.Other.Name,
				Message: fmt.Sprintf("has %d of %s free, and the pods of pool %s hold %d: pods with %s would wait",
					free, words.Count(int(there), "device"), in.Pool.Name, need, words.Count(int(need-free), "device")),
				Remedy: fmt.Sprintf("add nodes with %s to pool %s, or scale workloads down", words.Count(int(need-free), "device"), in.Other.Name),
			}
			if free == 0 && in.Operation == MigrateFrom {
				f.Severity = Blocker
			}
			return []Finding{f}
		},
	}
}
