package checks

import (
	"fmt"
	"strings"
)

func drm037() Check {
	return Check{
		Code:        "DRM037",
		Title:       "A node runs in the Windows Subsystem for Linux",
		Why:         "Under WSL2 the GPU is there without a PCI device, and NVIDIA's libraries lie elsewhere. The DRA driver for NVIDIA GPUs does not support that: it would publish nothing, and the node would stay closed.",
		Fix:         "Leave the node on the plugin: take it out of the pool's selector.",
		Sources:     []string{"kubernetes-sigs/dra-driver-nvidia-gpu#1201"},
		Unskippable: true,
		Operations:  []string{Migrate, MigrateInto},
		Run: func(in Input) []Finding {
			wsl := nodeGroups{}
			for _, v := range in.targets() {
				if kernel := v.Node.Status.NodeInfo.KernelVersion; strings.Contains(strings.ToLower(kernel), "microsoft") {
					wsl.add(fmt.Sprintf("kernel %s is that of WSL2, where %s finds no GPU", kernel, in.Driver), v.Node.Name)
				}
			}
			severity := Blocker
			if in.Driver != nvidiaDriver {
				severity = Warning // what other drivers do there is not known
			}
			return wsl.findings(in, Finding{Code: "DRM037", Severity: severity, Remedy: "leave such nodes on the plugin: take them out of the pool, or name the others by --selector"})
		},
	}
}
