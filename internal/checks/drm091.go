package checks

import (
	"fmt"
)

func drm091() Check {
	return Check{
		Code:       "DRM091",
		Title:      "OpenShift's machine config is being changed on a node",
		Why:        "The Machine Config Operator cordons and drains a node, changes it, reboots it, and uncordons it. In the middle of that a node is nobody else's to move.",
		Fix:        "Wait until the machine config pool is updated, and pause it for the window.",
		Sources:    []string{"openshift/machine-config-operator, pkg/daemon/constants/constants.go"},
		Operations: []string{Migrate, Rollback, Verify, MigrateFrom, MigrateInto, RollbackFrom, RollbackInto},
		Run: func(in Input) []Finding {
			busy := nodeGroups{}
			for _, v := range in.targets() {
				a := v.Node.Annotations
				switch state := a[machineConfig+"state"]; {
				case state != "" && state != "Done":
					busy.add(fmt.Sprintf("annotation %sstate=%s", machineConfig, state), v.Node.Name)
				case a[machineConfig+"currentConfig"] != a[machineConfig+"desiredConfig"] && a[machineConfig+"desiredConfig"] != "":
					busy.add("another machine config is wanted: annotation "+machineConfig+"desiredConfig="+a[machineConfig+"desiredConfig"], v.Node.Name)
				}
			}
			return busy.findings(in, Finding{
				Code: "DRM091", Severity: in.stops(),
				Remedy: "`oc get machineconfigpools`; wait until the nodes are updated, then pause their pool for the window: `oc patch machineconfigpool NAME --type merge -p '" + `{"spec":{"paused":true}}` + "'`",
			})
		},
	}
}

const machineConfig = "machineconfiguration.openshift.io/"
