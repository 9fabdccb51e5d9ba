package checks

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm034() Check {
	return Check{
		Code:       "DRM034",
		Title:      "A kubelet is newer than the API server",
		Why:        "Kubernetes supports kubelets of the API server's release and of the three before it, never a newer one. What such a kubelet does with claims that an older scheduler has made is tested by nobody.",
		Fix:        "Upgrade the control plane first.",
		Sources:    []string{"Kubernetes, \"Version Skew Policy\""},
		Operations: []string{Migrate, MigrateInto},
		Advises:    true,
		Needs:      []string{cluster.PartVersion},
		Run: func(in Input) []Finding {
			server, err := version.ParseGeneric(in.Snapshot.Identity.ServerVersion)
			if err != nil {
				return nil // DRM001 says so
			}
			newer := nodeGroups{}
			for _, v := range in.targets() {
				have := v.Node.Status.NodeInfo.KubeletVersion
				kubelet, err := version.ParseGeneric(have)
				if err == nil && kubelet.AtLeast(version.MajorMinor(server.Major(), server.Minor()+1)) {
					newer.add(fmt.Sprintf("kubelet %s is newer than the API server, %s", have, in.Snapshot.Identity.ServerVersion), v.Node.Name)
				}
			}
			return newer.findings(in, Finding{Code: "DRM034", Severity: Warning, Remedy: "upgrade the control plane before the pool is moved"})
		},
	}
}
