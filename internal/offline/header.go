// Package offline keeps a cluster's state in files: it writes a Snapshot as the
// Kubernetes objects that it was made from, and reads such files, or what kubectl
// prints, as a Snapshot. A plan from a written Snapshot is the plan made live. What
// files lack is unknown in the Snapshot, never taken for absent.
package offline

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// Kind of the document that heads a written Snapshot; its API version is
// cluster.APIVersion.
const Kind = "ClusterSnapshot"

// ClusterSnapshot heads the objects of one cluster at one time: it tells which cluster
// that was, and what the objects after it are all of.
type ClusterSnapshot struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// ToolVersion is that of the program that wrote the files.
	ToolVersion string `json:"toolVersion,omitempty"`
	// Taken is when the cluster had been read. No plan depends on it.
	Taken   metav1.Time      `json:"taken,omitzero"`
	Cluster cluster.Identity `json:"cluster"`
	// Namespace is the tool's, whose journals and locks are among the objects.
	Namespace string `json:"namespace,omitempty"`
	// Read names the parts that were read whole, in the plural of the resource: of
	// these there is nothing in the cluster that is not in the files.
	Read []string `json:"read"`
	// Unknown are the parts that could not be read.
	Unknown []cluster.Unknown `json:"unknown,omitempty"`
	// API is what the API server can do.
	API cluster.API `json:"api,omitzero"`
	// Access is what the caller might do who took the snapshot. A plan says by it what the
	// cluster would have said; whoever runs the plan is asked anew.
	Access *cluster.Access `json:"access,omitempty"`
	// Objects is how many objects of each kind follow. Where it is given, another
	// number is an error: something was cut off, or put in. Where it is not, nobody can
	// tell, which the Snapshot's Source says.
	Objects map[string]int `json:"objects,omitempty"`
}

// counted says whether there is a number for every kind of which the header claims that
// all objects follow.
func (h *ClusterSnapshot) counted() bool {
	return !slices.ContainsFunc(sections(&cluster.Snapshot{}, h.Namespace), func(sec section) bool {
		_, counted := h.Objects[sec.kind]
		return !counted && slices.Contains(h.Read, sec.part)
	})
}

// newHeader describes a Snapshot but for its objects.
func newHeader(s *cluster.Snapshot, a About) *ClusterSnapshot {
	h := &ClusterSnapshot{
		APIVersion: cluster.APIVersion, Kind: Kind,
		ToolVersion: a.ToolVersion, Taken: metav1.NewTime(a.Taken.UTC()),
		Cluster: s.Identity, Namespace: a.Namespace, Unknown: s.Unknown,
		API: s.API, Access: s.Access,
	}
	for _, part := range parts(a.Namespace) {
		if _, unknown := s.IsUnknown(part); !unknown {
			h.Read = append(h.Read, part)
		}
	}
	return h
}

// parts are those that a Snapshot may hold: without a namespace of the tool nobody asks
// for its records.
func parts(namespace string) []string {
	if namespace == "" {
		return slices.DeleteFunc(allParts(), isRecord)
	}
	return allParts()
}

func allParts() []string {
	out := append(cluster.AdviceParts(),
		cluster.PartJournals, cluster.PartDaemonSets, cluster.PartClasses, cluster.PartLocks,
		cluster.PartIdentity, cluster.PartNodes, cluster.PartPods, cluster.PartBudgets,
		cluster.PartClaims, cluster.PartSlices, cluster.PartVersion,
	)
	slices.Sort(out)
	return out
}

// isRecord says that a part is the tool's own.
func isRecord(part string) bool { return part == cluster.PartJournals || part == cluster.PartLocks }
