package checks

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

func drm035() Check {
	return Check{
		Code:       "DRM035",
		Title:      "The container runtime does not give devices by CDI, or may not",
		Why:        "A DRA driver names devices by the Container Device Interface, and the runtime puts them into the container. One that does not know CDI, or has it switched off, starts the container without the GPU. containerd has it since 1.7 (there only with enable_cdi = true, on by default since 2.0), CRI-O since 1.23. The settings of a runtime cannot be seen from the API: the canary pod of each node is what tries them, before the node is opened.",
		Fix:        "Upgrade the runtime of the pool's nodes; with containerd 1.7 set enable_cdi = true in the section [plugins.\"io.containerd.grpc.v1.cri\"] of its configuration.",
		Sources:    []string{"KEP-4009", "containerd, docs/cri/config.md, 1.7 and 2.0", "CNCF, container-device-interface, README"},
		Operations: []string{Migrate, MigrateInto},
		Run: func(in Input) []Finding {
			old, perhaps, strange := nodeGroups{}, nodeGroups{}, nodeGroups{}
			for _, v := range in.targets() {
				have := v.Node.Status.NodeInfo.ContainerRuntimeVersion
				switch cdiOf(have) {
				case cdiNever:
					old.add(fmt.Sprintf("container runtime %s gives no devices by CDI", have), v.Node.Name)
				case cdiIfEnabled:
					perhaps.add(fmt.Sprintf("container runtime %s gives devices by CDI only with enable_cdi = true, which cannot be seen from here", have), v.Node.Name)
				case cdiUnknown:
					strange.add(fmt.Sprintf("whether the container runtime (%q) gives devices by CDI cannot be known", have), v.Node.Name)
				}
			}
			with := func(s Severity, remedy string) Finding { return Finding{Code: "DRM035", Severity: s, Remedy: remedy} }
			return append(append(
				old.findings(in, with(Blocker, "upgrade the runtime of these nodes: containerd 2.0, or CRI-O 1.23, or later")),
				perhaps.findings(in, with(Warning, "on a node: `containerd config dump | grep enable_cdi` has to say true; if it does not, the canary fails and the first node stays closed"))...),
				strange.findings(in, with(Warning, "try it with a pod that has a claim before the move; the canary on the first node does, and the run stops there if it sees no device"))...)
		},
	}
}

// cdi is what is known of a runtime's support for CDI.
type cdi int

const (
	cdiUnknown cdi = iota
	cdiNever
	cdiIfEnabled
	cdiAlways
)

// cdiOf reads status.nodeInfo.containerRuntimeVersion, "containerd://2.1.4".
func cdiOf(runtime string) cdi {
	name, rest, _ := strings.Cut(runtime, "://")
	v, err := version.ParseGeneric(rest)
	if err != nil {
		return cdiUnknown
	}
	switch {
	case name == "containerd" && v.AtLeast(version.MajorMinor(2, 0)), name == "cri-o" && v.AtLeast(version.MajorMinor(1, 23)):
		return cdiAlways
	case name == "containerd" && v.AtLeast(version.MajorMinor(1, 7)):
		return cdiIfEnabled
	case name == "containerd", name == "cri-o":
		return cdiNever
	default:
		return cdiUnknown
	}
}
