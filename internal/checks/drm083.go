package checks

import (
	"fmt"
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm083() Check {
	return Check{
		Code:       "DRM083",
		Title:      "The driver manager removes the DRA driver before its pods",
		Why:        "NODE_LABEL_FOR_GPU_POD_EVICTION makes NVIDIA's driver manager turn off one more node label before it replaces the kernel driver, so that the DRA driver leaves with the operands. Nothing says that it waits for the pods that hold claims first, and without the driver these stay Terminating.",
		Fix:        "Take the variable out of driver.manager.env as long as the DRA driver is kept to its nodes by this tool's label.",
		Sources:    []string{"NVIDIA/k8s-driver-manager#250", "NVIDIA GPU Operator docs v26.3, \"DRA Driver for GPUs\""},
		Operations: []string{Prepare, Migrate, MigrateInto},
		Needs:      []string{cluster.PartClusterPolicies, cluster.PartNVIDIADrivers},
		Advises:    true,
		Run: func(in Input) []Finding {
			var out []Finding
			for i := range in.Snapshot.Operators {
				if o := &in.Snapshot.Operators[i]; o.EvictionNodeLabel != "" {
					out = append(out, Finding{
						Code: "DRM083", Severity: Warning, Object: operatorObject(o),
						Message: fmt.Sprintf("its driver manager has NODE_LABEL_FOR_GPU_POD_EVICTION=%s: a driver upgrade may take what runs by that label from a node before the pods with its devices", o.EvictionNodeLabel),
						Remedy:  "take the variable out of the driver's manager.env, and upgrade drivers of nodes on DRA only after a drain",
					})
				}
			}
			return out
		},
	}
}

// operatorObject names an operator's object.
func operatorObject(o *cluster.OperatorObject) string {
	name := strings.ToLower(o.Kind) + "/"
	if o.Namespace != "" {
		name += o.Namespace + "/"
	}
	return name + o.Name
}
