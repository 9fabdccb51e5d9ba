package checks

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

func drm090() Check {
	return Check{
		Code:       "DRM090",
		Title:      "A node's GPUs are reported as ill, and the provider may repair the node",
		Why:        "Monitors write what they think of a node's GPUs into its conditions, and automatic repair reboots or replaces a node whose condition stays bad: on EKS AcceleratedHardwareReady, on AKS UnhealthyNvidiaDevicePlugin and UnhealthyNvidiaDCGMServices. A monitor that looks for the plugin itself takes a node on DRA for ill.",
		Fix:        "Have the node repaired before its move; switch the monitoring of the plugin, or automatic repair, off for a pool on DRA.",
		Sources:    []string{"Amazon EKS docs, \"Detect node health issues and enable automatic node repair\"", "Azure/AgentBaker, node problem detector, UnhealthyNvidiaDevicePlugin", "MicrosoftDocs/azure-aks-docs, aks-managed-gpu-nodes.md"},
		Operations: []string{Migrate, Rollback, Verify, MigrateFrom, MigrateInto, RollbackFrom, RollbackInto},
		Advises:    true,
		Run: func(in Input) []Finding {
			ill, silent, watched := nodeGroups{}, nodeGroups{}, nodeGroups{}
			for _, v := range in.targets() {
				for i := range v.Node.Status.Conditions {
					c := &v.Node.Status.Conditions[i]
					if !aboutGPUs(c.Type) {
						continue
					}
					if c.Status == corev1.ConditionUnknown {
						silent.add(fmt.Sprintf("condition %s is Unknown (%s): how the GPUs are cannot be known until its monitor says", c.Type, c.Reason), v.Node.Name)
					}
					if badCondition(c) {
						ill.add(fmt.Sprintf("condition %s is %s (%s): automatic repair may reboot or replace it", c.Type, c.Status, c.Reason), v.Node.Name)
					} else if strings.Contains(string(c.Type), "DevicePlugin") && (in.Operation == Migrate || in.Operation == MigrateInto) {
						leaves := "leaves the node"
						if in.Operation == MigrateInto {
							leaves = "does not run on the node"
						}
						watched.add(fmt.Sprintf("condition %s tells how the plugin is, which %s: it will be taken for ill", c.Type, leaves), v.Node.Name)
					}
				}
			}
			when := ", before the move"
			switch in.Operation {
			case Rollback, RollbackFrom, RollbackInto:
				when = ", before the rollback"
			case Verify:
				when = ""
			}
			return slices.Concat(
				ill.findings(in, Finding{Code: "DRM090", Severity: Warning, Remedy: "`kubectl describe node NODE`; have it repaired, or take it out of the pool" + when}),
				silent.findings(in, Finding{Code: "DRM090", Severity: Warning, Remedy: "`kubectl describe node NODE`; see that its monitor runs there" + when}),
				watched.findings(in, Finding{Code: "DRM090", Severity: Warning, Remedy: "switch this monitor, or automatic repair, off for the pool before the move"}))
		},
	}
}

// aboutGPUs says that a condition of a node is about its accelerators.
func aboutGPUs(t corev1.NodeConditionType) bool {
	name := strings.ToLower(string(t))
	return slices.ContainsFunc([]string{"nvidia", "gpu", "accelerat", "xid", "dcgm", "nvlink"}, func(word string) bool { return strings.Contains(name, word) })
}

// badCondition reads a condition by its name: one that is called Ready or Healthy is bad
// if it is False, any other if it is True.
func badCondition(c *corev1.NodeCondition) bool {
	name := string(c.Type)
	good := strings.HasSuffix(name, "Ready") || strings.HasSuffix(name, "Healthy") && !strings.HasPrefix(name, "Un")
	if good {
		return c.Status == corev1.ConditionFalse
	}
	return c.Status == corev1.ConditionTrue
}
