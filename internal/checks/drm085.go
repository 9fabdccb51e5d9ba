package checks

import (
	"cmp"
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm085() Check {
	return Check{
		Code:       "DRM085",
		Title:      "The GPU's driver is being reloaded on a node",
		Why:        "While NVIDIA's driver manager reloads the kernel driver it keeps the operands away by the value paused-for-driver-upgrade of their labels and puts the former values back afterwards; a label written meanwhile is lost. It uncordons the node at the end. As long as the driver's pod is not ready there is no GPU to move. A restart of Node Feature Discovery is enough to bring such a reload about.",
		Fix:        "Wait until the driver's pod on the node is ready and no label is paused, then plan again.",
		Sources:    []string{"NVIDIA/k8s-driver-manager, cmd/driver-manager/main.go", "NVIDIA/gpu-operator#782", "NVIDIA/gpu-operator#304"},
		Operations: []string{Migrate, Rollback, Verify, MigrateFrom, MigrateInto, RollbackFrom, RollbackInto},
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
		Run: func(in Input) []Finding {
			if !in.nvidia() {
				return nil
			}
			down := map[string]string{} // node → why
			for ds, pods := range in.daemonPods(in.daemonSets(kernelDriver)...) {
				for _, p := range pods {
					switch {
					case p.Terminating:
						down[p.Node] = daemonSetObject(ds) + ": the pod of the GPU's driver is being replaced"
					case !p.Ready:
						down[p.Node] = daemonSetObject(ds) + ": the pod of the GPU's driver is not ready (" + cmp.Or(p.Waiting, "no reason is given") + ")"
					}
				}
			}
			busy := nodeGroups{}
			for _, v := range in.targets() {
				var paused []string
				for _, key := range sortedKeys(v.Node.Labels) {
					if strings.HasPrefix(key, deployPrefix) && strings.Contains(v.Node.Labels[key], pausedFor) {
						paused = append(paused, key+"="+v.Node.Labels[key])
					}
				}
				if in.Gate.Busy(v.Node.Labels) != "" {
					continue // DRM060 says so
				}
				if len(paused) > 0 {
					busy.add("label "+few(paused)+": NVIDIA's driver manager is at work on it", v.Node.Name)
				} else if why := down[v.Node.Name]; why != "" {
					busy.add(why, v.Node.Name)
				}
			}
			return busy.findings(in, Finding{
				Code: "DRM085", Severity: in.stops(),
				Remedy: "wait until the driver's pod on the node is ready and no label is paused (`kubectl get node NODE -L " + pluginSwitch + "`), and plan again",
			})
		},
	}
}
