package checks

import (
	"fmt"
)

func drm002() Check {
	return Check{
		Code:        "DRM002",
		Title:       "A node's kubelet is too old",
		Why:         "A kubelet on which the feature is off admits a pod that was given a GPU through DRA and starts it without the GPU, or rejects it in a loop. Whether the gate was switched on by hand on 1.35 cannot be seen from the API, so 1.35 counts as below the floor.",
		Fix:         "Upgrade the kubelets of the pool to 1.36 or later before its move.",
		Sources:     []string{"pkg/kubelet/lifecycle/predicate.go, v1.35.4", "KEP-5004"},
		Unskippable: true,
		Operations:  []string{Migrate, MigrateInto},
		Run: func(in Input) []Finding {
			old, unread := nodeGroups{}, nodeGroups{}
			for _, v := range in.targets() {
				have := v.Node.Status.NodeInfo.KubeletVersion
				switch below, err := belowFloor(have); {
				case err != nil:
					unread.add(fmt.Sprintf("kubelet version %q cannot be read", have), v.Node.Name)
				case below:
					old.add("kubelet "+have+" is below "+floor+": it may start pods without the GPU that DRA gave them", v.Node.Name)
				}
			}
			return append(
				old.findings(in, Finding{Code: "DRM002", Severity: Blocker, Remedy: "upgrade the pool's kubelets to " + floor + " or later"}),
				unread.findings(in, Finding{Code: "DRM002", Severity: Unknown, Remedy: "see `kubectl get nodes -o wide`"})...)
		},
	}
}
