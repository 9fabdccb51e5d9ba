package checks

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/vendor"
	"github.com/dramigrate/dramigrate/internal/words"
)

func drm057() Check {
	return Check{
		Code:       "DRM057",
		Title:      "No node has devices of the resource",
		Why:        "Everything else here is about nodes with devices of the resource. Where none has any, what is passed says nothing: the pool has no GPU, its plugin is not there yet, or its devices go by another name.",
		Fix:        "Name the right pool, or by --resource and --driver the right devices; or have the plugin run first.",
		Sources:    []string{"Kubernetes docs, \"Device Plugins\""},
		Operations: []string{Prepare, Migrate},
		Advises:    true,
		Needs:      []string{cluster.PartSlices},
		Run: func(in Input) []Finding {
			if in.anyDevices() {
				return nil
			}
			f := Finding{
				Code: "DRM057", Severity: Warning, Object: in.poolObject(),
				Message: fmt.Sprintf("no node has, or had, %s or a device of %s: there is nothing to move", in.Resource, in.Driver),
				Remedy:  "name another pool (`dramigrate pools` lists them), or have the device plugin run there first",
			}
			if other := in.otherDevices(); len(other) > 0 {
				f.Message += "; nodes have " + few(other)
				if driver, known := vendor.DriverOf(other[0]); known && driver != in.Driver {
					f.Remedy = "name what is meant: " + words.Shell("--resource", other[0], "--driver", driver)
				}
			}
			return []Finding{f}
		},
	}
}

// anyDevices says whether a node that the operation is about has devices, or had some.
func (in Input) anyDevices() bool {
	return slices.ContainsFunc(in.seen(), func(v cluster.NodeView) bool { return v.HasDevices(in.Resource, in.Driver) })
}

// otherDevices are the resources of known vendors that the nodes have, sorted.
func (in Input) otherDevices() []string {
	nodes := in.seen()
	if in.Pool.Name == "" {
		nodes = nil
		for i := range in.Snapshot.Nodes {
			nodes = append(nodes, cluster.NodeView{Node: &in.Snapshot.Nodes[i]})
		}
	}
	found := map[string]bool{}
	for _, v := range nodes {
		for name := range v.Node.Status.Capacity {
			if n, _ := v.Capacity(string(name)); n > 0 {
				if _, known := vendor.OfResource(string(name)); known {
					found[string(name)] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
