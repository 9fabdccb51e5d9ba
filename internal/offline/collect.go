package offline

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/jsonerr"
	"github.com/dramigrate/dramigrate/internal/words"
)

// collector gathers objects into a Snapshot, and what is known about how much of the
// cluster they are.
type collector struct {
	namespace string // the tool's
	advice    bool   // whether the parts for advice are wanted
	events    func(cluster.AboutPod)
	known     map[schema.GroupKind]resource
	out       cluster.Snapshot
	seen      map[identity]first
	equal     conversion.Equalities
	// documents counts those that held something.
	documents int

	header *ClusterSnapshot
	// headerAt and identityAt are where they stand, for messages.
	headerAt, identityAt place
	// lists are the parts of which there is a list, single those of which there is an
	// object outside of a list, spoilt those that do not count as read, and why.
	lists, single map[string]bool
	spoilt        map[string]string
	// files counts the objects that were taken, ignored the others, both by kind.
	files, ignored map[string]int
	// servesDRA is true if something is of the version of resource.k8s.io that is read.
	servesDRA bool
	// queries are those of each object that has some, by part.
	queries map[string][][]cluster.Query
	// uncounted says that the header does not tell how many objects follow.
	uncounted bool
	// plain says that one of the sources is not a written Snapshot; unmanaged counts
	// the DaemonSets without field managers in such sources.
	plain     bool
	unmanaged int
	// undatedLocks says that Leases came from such a source: nobody knows of what moment
	// they are.
	undatedLocks bool
	now          source
}

// source is what is known of the source that is being read.
type source struct {
	header  *ClusterSnapshot
	objects map[string]int // by kind, used or not
	cut     []string       // files of YAML without a terminator
	// daemonSets and locks are how many there were before.
	daemonSets, locks int
}

// identity names an object, whatever its version.
type identity struct{ part, namespace, name string }

// first is where an object stood first: in the files, and in its list.
type first struct {
	at    place
	index int
}

// head is what tells of every object what it is.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
		Continue  string `json:"continue"`
	} `json:"metadata"`
}

// list is a list while its items are read. In JSON its kind may stand behind them.
type list struct {
	kind, version string
	items         int
	parts         map[string]bool
}

func newCollector(o Options) *collector {
	c := &collector{
		namespace: o.Namespace, advice: o.Advice, events: o.Events, known: resources(), seen: map[identity]first{}, equal: equality.Semantic.Copy(),
		lists: map[string]bool{}, single: map[string]bool{}, spoilt: map[string]string{},
		files: map[string]int{}, ignored: map[string]int{}, queries: map[string][][]cluster.Query{},
	}
	c.out.Advice = o.Advice
	if err := c.equal.AddFunc(time.Time.Equal); err != nil { // which is of the form that it takes
		panic(err)
	}
	return c
}

// decode reads JSON as the API server does: the case of names counts, a name that is
// there twice is an error, and one that this version does not know is passed over.
func decode(raw []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(raw, into, kjson.DisallowDuplicateFields)
	if err != nil {
		return jsonerr.Again(raw, into, err)
	}
	return errors.Join(strict...)
}

// begin and end enclose the reading of one source.
func (c *collector) begin() {
	c.now = source{objects: map[string]int{}, daemonSets: len(c.out.DaemonSets), locks: len(c.out.Locks)}
}

func (c *collector) end(name string) error {
	h := c.now.header
	if h == nil {
		c.plain = true
		c.undatedLocks = c.undatedLocks || len(c.out.Locks) > c.now.locks
		for _, d := range c.out.DaemonSets[c.now.daemonSets:] {
			if len(d.ManagedFields) == 0 {
				c.unmanaged++
			}
		}
		return nil
	}
	c.uncounted = !h.counted()
	if h.Objects == nil {
		return nil
	}
	if len(c.now.cut) > 0 {
		return fmt.Errorf("%s: does not end with the line `...`: the file was cut off; take the snapshot again", c.now.cut[0])
	}
	for _, kind := range slices.Sorted(maps.Keys(h.Objects)) {
		if got, want := c.now.objects[kind], h.Objects[kind]; got != want {
			return fmt.Errorf("%s: holds %s of kind %s where its %s says %d: it is not whole, or was changed; take the snapshot again, or take `objects` out of the %[4]s if the change is meant",
				shown(name), words.Count(got, "object"), kind, Kind, want)
		}
	}
	return nil
}

// close ends a file of YAML.
func (c *collector) close(file string, terminated bool) {
	if !terminated {
		c.now.cut = append(c.now.cut, file)
	}
}

// object takes an object that stands alone.
func (c *collector) object(raw []byte, at place) error {
	c.documents++
	part, err := c.take(raw, head{}, at)
	if part != "" {
		c.single[part] = true
	}
	return err
}

// item takes an item of a list. Those of a typed list have no kind of their own.
func (c *collector) item(l *list, raw []byte, at place) error {
	assumed := head{APIVersion: l.version, Kind: strings.TrimSuffix(l.kind, "List")}
	part, err := c.take(raw, assumed, at)
	if err != nil {
		return err
	}
	l.items++
	if l.parts == nil {
		l.parts = map[string]bool{}
	}
	if part != "" {
		l.parts[part] = true
	}
	return nil
}

// endList takes what is known of a list when all of its items have been taken.
func (c *collector) endList(l *list, raw []byte, at place) error {
	c.documents++
	var h head
	if err := decode(raw, &h); err != nil {
		return at.fail("%w", err)
	}
	single, ok := strings.CutSuffix(h.Kind, "List")
	switch {
	case h.Kind == "":
		return at.fail("has items and no kind: the file was cut off, or is not what kubectl prints")
	case !ok && l.items == 0:
		c.ignore(h.Kind)
		return nil
	case !ok:
		return at.fail("has items and is a %s, not a list", h.Kind)
	}
	parts := slices.Collect(maps.Keys(l.parts))
	if l.items == 0 {
		gv, err := schema.ParseGroupVersion(h.APIVersion)
		if err != nil {
			return at.fail("%w", err)
		}
		if r, known := c.known[schema.GroupKind{Group: gv.Group, Kind: single}]; known {
			if parts = []string{r.part}; gv != r.version {
				c.outdated(r, single, gv)
			}
			c.served(gv)
		} else if named := partOf(at.file); single == "" && named != "" {
			parts = []string{named}
		}
	}
	for _, part := range parts {
		c.lists[part] = true
		if h.Metadata.Continue != "" {
			c.spoil(part, "the files hold only the first objects of a list, which goes on (metadata.continue)")
		}
	}
	return nil
}

// partOf is the part that a file is named after, or "".
func partOf(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	if slices.Contains(allParts(), name) {
		return name
	}
	return ""
}

// take takes one object. The result is the part that it is of, or "" if it says
// nothing about any.
func (c *collector) take(raw []byte, assumed head, at place) (part string, err error) {
	var h head
	if err := decode(raw, &h); err != nil {
		return "", at.fail("%w", err)
	}
	if h.Kind == "" {
		h.Kind, h.APIVersion = assumed.Kind, assumed.APIVersion
	}
	gv, err := schema.ParseGroupVersion(h.APIVersion)
	if err != nil {
		return "", at.fail("%w", err)
	}
	switch {
	case h.Kind == "" && at.item > 0:
		return "", at.fail("has no kind, and that of its list does not stand before the items: put it there, by jq '{apiVersion, kind} + .'")
	case h.Kind == "":
		return "", c.putVersion(raw, at)
	case h.Kind == Kind && gv.Group == groupOf(cluster.APIVersion):
		return "", c.putHeader(raw, at)
	case h.Kind == QueryKind && gv.Group == groupOf(cluster.APIVersion):
		return "", c.putQuery(raw, at)
	case h.Kind == "Event" && gv == corev1.SchemeGroupVersion && c.events != nil:
		return "", c.putEvent(raw, at)
	case h.Kind == "ClusterRole" && gv == rbacv1.SchemeGroupVersion:
		return "", c.putRole(raw, at)
	case h.Kind == "APIGroup" && h.APIVersion == "v1":
		return "", c.putAPIGroup(raw, at)
	case h.Kind == "List", strings.HasSuffix(h.Kind, "List") && c.holds(gv.Group, strings.TrimSuffix(h.Kind, "List")):
		return "", at.fail("is a %s without items, or inside a list: was the file cut off?", h.Kind)
	}
	r, known := c.known[schema.GroupKind{Group: gv.Group, Kind: h.Kind}]
	if !known {
		c.ignore(h.Kind)
		return "", nil
	}
	if r.part == cluster.PartJournals && c.isDashboard(raw) {
		r = dashboards()
	}
	id := identity{r.part, h.Metadata.Namespace, h.Metadata.Name}
	if err := checkName(id, r); err != nil {
		return "", at.fail("%s %q: %w", h.Kind, h.Metadata.Name, err)
	}
	limit := maxOfKind
	if r.part == cluster.PartNodes {
		limit = maxNodes
	}
	if c.now.objects[h.Kind]++; c.now.objects[h.Kind] > limit {
		return "", at.fail("more than %d objects of kind %s: no cluster has so many; look at where the file comes from", limit, h.Kind)
	}
	if r.advice && !c.advice {
		c.passOver(h.Kind)
		return "", nil
	}
	if gv != r.version {
		c.ignore(h.Kind)
		c.outdated(r, h.Kind, gv)
		return r.part, nil
	}
	switch {
	case !isRecord(r.part) || c.namespace != "" && id.namespace == c.namespace:
	case c.namespace == "": // nobody asks for records
		c.passOver(h.Kind)
		return "", nil
	default:
		c.ignore(h.Kind)
		return "", nil
	}
	c.served(gv)
	used, err := r.put(c, raw, id, at)
	if err != nil {
		return "", at.fail("%s %s: %w", h.Kind, strings.TrimPrefix(id.namespace+"/"+id.name, "/"), err)
	}
	switch {
	case used:
		c.files[h.Kind]++
	case r.part == cluster.PartNamespaces:
		c.passOver(h.Kind)
	default:
		c.ignore(h.Kind)
	}
	return r.part, nil
}

func (c *collector) holds(group, kind string) bool {
	_, ok := c.known[schema.GroupKind{Group: group, Kind: kind}]
	return ok
}

func groupOf(apiVersion string) string {
	group, _, _ := strings.Cut(apiVersion, "/")
	return group
}

// checkName refuses what no API server takes: names are put into commands and patches
// that a person reads.
func checkName(id identity, r resource) error {
	if id.name == "" {
		return errors.New("has no metadata.name")
	}
	if bad := validation.IsDNS1123Subdomain(id.name); len(bad) > 0 {
		return fmt.Errorf("metadata.name: %s", bad[0])
	}
	if !r.namespaced {
		return nil
	}
	if id.namespace == "" {
		return errors.New("has no metadata.namespace: objects are expected as `kubectl get` prints them")
	}
	if bad := validation.IsDNS1123Label(id.namespace); len(bad) > 0 {
		return fmt.Errorf("metadata.namespace: %s", bad[0])
	}
	return nil
}

// unique says whether an object was taken before. The same object in two states is an
// error: the files are of two moments, and a plan from them would be of none.
func (c *collector) unique(id identity, at place, index int, former func(i int) any, object any) (twin bool, err error) {
	known, twin := c.seen[id]
	if !twin {
		c.seen[id] = first{at, index}
		return false, nil
	}
	if !c.equal.DeepEqual(former(known.index), object) {
		return true, fmt.Errorf("is different in %s: give one of the two", known.at)
	}
	return true, nil
}

// spoil makes a part unknown, whatever else the files hold of it.
func (c *collector) spoil(part, why string) {
	if c.spoilt[part] == "" {
		c.spoilt[part] = why
	}
}

// served notes that a server has given something in a version of an API: kubectl prints
// what it got.
func (c *collector) served(gv schema.GroupVersion) {
	if c.now.header == nil && gv == resourcev1.SchemeGroupVersion {
		c.servesDRA = true
	}
}

// outdated is for objects of another version of the API, whose fields mean other
// things.
func (c *collector) outdated(r resource, kind string, have schema.GroupVersion) {
	plural := r.part + "." + r.version.Version
	if r.version.Group != "" {
		plural += "." + r.version.Group
	}
	c.spoil(r.part, fmt.Sprintf("the files hold %s of %s, and this version reads %s: kubectl get %s", kind, have, r.version, plural))
}

// passOver is for what is not asked for. In a written Snapshot it is where it belongs, and
// nobody has to be told.
func (c *collector) passOver(kind string) {
	if c.now.header == nil {
		c.ignore(kind)
	}
}

// mostKinds bounds what is remembered about objects that are not used.
const mostKinds = 100

func (c *collector) ignore(kind string) {
	if _, known := c.ignored[kind]; !known && (len(c.ignored) >= mostKinds || len(kind) > validation.DNS1123LabelMaxLength) {
		kind = "other kinds"
	}
	c.ignored[kind]++
}
