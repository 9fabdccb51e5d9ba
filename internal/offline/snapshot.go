package offline

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/version"
	kjson "sigs.k8s.io/json"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/jsonerr"
	"github.com/dramigrate/dramigrate/internal/words"
)

// putHeader takes the header of a written Snapshot. It is strict: what this version
// does not know may be what makes the rest something else.
func (c *collector) putHeader(raw []byte, at place) error {
	h := &ClusterSnapshot{}
	strict, err := kjson.UnmarshalStrict(raw, h)
	if err != nil {
		err = jsonerr.Again(raw, h, err)
	}
	if err = errors.Join(append(strict, err)...); err != nil {
		return at.fail("%s: %w", Kind, err)
	}
	if h.APIVersion != cluster.APIVersion {
		return at.fail("is a %s of %s; this version reads %s only: take the snapshot again", Kind, h.APIVersion, cluster.APIVersion)
	}
	if c.header != nil {
		return at.fail("is a second snapshot, after %s: give one of the two", c.headerAt)
	}
	for _, part := range slices.Concat(h.Read, unknownParts(h)) {
		if !slices.Contains(allParts(), part) {
			return at.fail("%s: %q is no part of a snapshot that this version reads: take the snapshot again", Kind, part)
		}
	}
	c.header, c.headerAt, c.now.header = h, at, h
	if c.advice {
		c.out.API = h.API
	}
	return c.identify(h.Cluster, at)
}

func unknownParts(h *ClusterSnapshot) []string {
	out := make([]string, len(h.Unknown))
	for i := range h.Unknown {
		out[i] = h.Unknown[i].Part
	}
	return out
}

// putVersion takes what `kubectl version` prints, the one thing without a kind.
func (c *collector) putVersion(raw []byte, at place) error {
	var v struct {
		Client *version.Info `json:"clientVersion"`
		Server *version.Info `json:"serverVersion"`
	}
	if err := decode(raw, &v); err != nil {
		return at.fail("%w", err)
	}
	switch {
	case v.Server != nil:
		var id cluster.Identity
		if err := id.SetVersion(v.Server); err != nil {
			return at.fail("serverVersion: %w", err)
		}
		return c.identify(id, at)
	case v.Client != nil:
		return at.fail("is the version of kubectl alone; that of the server is needed: kubectl version -o json")
	default:
		return at.fail("has no kind: objects are expected as `kubectl get -o yaml` prints them")
	}
}

// identify notes which cluster the files are of; they have to agree.
func (c *collector) identify(id cluster.Identity, at place) error {
	have := &c.out.Identity
	switch {
	case id.UID != "" && have.UID != "" && id.UID != have.UID:
		return at.fail("is of cluster %s, and %s of cluster %s: give files of one cluster", id.UID, c.identityAt, have.UID)
	case id.ServerVersion != "" && have.ServerVersion != "" && id.ServerVersion != have.ServerVersion:
		return at.fail("is of Kubernetes %s, and %s of %s: give files of one cluster at one time", id.ServerVersion, c.identityAt, have.ServerVersion)
	}
	if id.UID != "" {
		have.UID = id.UID
	}
	if id.ServerVersion != "" {
		have.ServerVersion, have.EmulationVersion = id.ServerVersion, id.EmulationVersion
	}
	c.identityAt = at
	return nil
}

// Why files cannot be taken for the whole cluster, in Source.Note.
const (
	plainNote     = "made from files that the tool did not write: they may hold less than the whole cluster, or be of different moments"
	uncountedNote = "made from a snapshot that does not say how many objects it holds: whether it is complete could not be checked and is unknown"
)

// snapshot is what was collected. Nodes must be there, as when a cluster is read.
func (c *collector) snapshot(sources []string) (*cluster.Snapshot, error) {
	c.joinQueries()
	if c.servesDRA && c.advice && len(c.out.API.ResourceVersions) == 0 {
		c.out.API.ResourceVersions = []string{resourcev1.SchemeGroupVersion.Version}
	}
	for _, part := range parts(c.namespace) {
		if cluster.IsAdvice(part) && !c.advice {
			continue
		}
		if why := c.missing(part); why != "" {
			c.out.Unknown = append(c.out.Unknown, cluster.Unknown{Part: part, Reason: why})
		}
	}
	if why, unknown := c.out.IsUnknown(cluster.PartNodes); unknown && len(c.out.Nodes) == 0 {
		names := make([]string, len(sources))
		for i := range sources {
			names[i] = shown(sources[i])
		}
		return nil, fmt.Errorf("%s: no nodes (%s), and without them there is nothing to see: add the output of `kubectl get nodes -o json`",
			strings.Join(names, ", "), why)
	}
	if c.unmanaged > 0 {
		c.out.Unknown = append(c.out.Unknown, cluster.Unknown{Part: cluster.PartManagers,
			Reason: words.Count(c.unmanaged, "DaemonSet") + " in the files without managedFields, which kubectl leaves out without --show-managed-fields"})
	}
	var notes []string
	if c.plain {
		notes = append(notes, plainNote)
	}
	if c.uncounted {
		notes = append(notes, uncountedNote)
	}
	if len(notes) > 0 {
		c.out.Source = &cluster.Source{Files: c.files, Ignored: c.ignored, Note: strings.Join(notes, "; ")}
	}
	if c.header != nil && c.header.Access != nil {
		c.out.Access = &cluster.Access{All: c.header.Access.All, Reviews: cluster.SortAccess(c.header.Access.Reviews)}
	}
	if c.header != nil && !c.undatedLocks {
		c.out.Taken = c.header.Taken.Time
	}
	c.out.Sort()
	return &c.out, nil
}

// missing says why a part does not count as read, or "".
func (c *collector) missing(part string) string {
	h := c.header
	switch {
	case c.spoilt[part] != "":
		return c.spoilt[part]
	case part == cluster.PartIdentity && c.out.Identity.UID != "", part == cluster.PartVersion && c.out.Identity.ServerVersion != "":
		return ""
	case part == cluster.PartResourceAPI && len(c.out.API.ResourceVersions) > 0, part == cluster.PartFeatures && len(c.out.API.Features) > 0:
		return ""
	case c.lists[part] && part != cluster.PartIdentity:
		return ""
	case h != nil && isRecord(part) && h.Namespace != c.namespace:
		return fmt.Sprintf("the snapshot holds the records of namespace %q, not of %s: see --tool-namespace", h.Namespace, c.namespace)
	case h != nil && slices.Contains(h.Read, part):
		return ""
	case h != nil:
		for _, u := range h.Unknown {
			if u.Part == part {
				return u.Reason
			}
		}
		return "the snapshot does not say that it was read"
	case part == cluster.PartIdentity:
		return "the files do not hold namespace kube-system"
	case part == cluster.PartVersion:
		return "the files do not hold the version of the server"
	case part == cluster.PartResourceAPI, part == cluster.PartFeatures:
		return "the files do not tell"
	case c.single[part] && part != cluster.PartNamespaces: // kube-system is given alone, for the cluster's identity
		return fmt.Sprintf("the files hold single objects of %s, not a list of all", part)
	case isRecord(part):
		return fmt.Sprintf("the files hold no %s of namespace %s", kindOf(part), c.namespace)
	case cluster.IsAdvice(part): // they are many, and printers put one reason on one line
		return "the files hold no list of them"
	default:
		return fmt.Sprintf("the files hold no %s list", kindOf(part))
	}
}

// kindOf is the kind of the objects of a part.
func kindOf(part string) string {
	for gk, r := range resources() {
		if r.part == part {
			return gk.Kind
		}
	}
	return part
}
