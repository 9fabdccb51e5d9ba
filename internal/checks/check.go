package checks

import (
	"cmp"
	"slices"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

// The operations that a check can be asked about, as a plan names them.
const (
	Prepare   = "prepare"
	Migrate   = "migrate"
	Rollback  = "rollback"
	Unprepare = "unprepare"
)

// Input is what checks look at: the cluster, and what is intended with it.
type Input struct {
	Snapshot  *cluster.Snapshot
	Inventory gate.Inventory
	Gate      gate.Gate
	// Pool is the pool of Migrate and Rollback; empty with Prepare and Unprepare.
	Pool cluster.NodePool
	// Resource is the extended resource that workloads ask for; Resources are all
	// of its plugin's, Resource included.
	Resource  string
	Resources []string
	// NewClass is the name of the DeviceClass that the run would create; empty if it
	// creates none.
	NewClass string
	// Driver is the DRA driver's name.
	Driver    string
	Operation string
	// Drain is "gpu" (only pods with devices are evicted) or "all".
	Drain string
	// DeleteEmptyDir and EvictUnmanaged are the flags that let the drain evict pods
	// which lose data, or which nothing makes again.
	DeleteEmptyDir bool
	EvictUnmanaged bool
	// EditOwned and WaitForOwner are prepare's flags for DaemonSets that somebody owns:
	// edit them all the same, or wait until their owner has.
	EditOwned, WaitForOwner bool

	// asked are the checks of this run; all of the catalogue if nil.
	asked func(Check) bool
	views map[string]cluster.NodeView
}

// Check is one entry of the catalogue.
type Check struct {
	Code  string
	Title string
	// Operations are those that the check applies to.
	Operations []string
	// Needs are the parts of the Snapshot without which the check cannot answer. If
	// one could not be read the check is not run, and DRM011 reports it as unknown.
	Needs []string
	// Mapping is true for what has to hold when the DeviceClass goes live, which it
	// does for every pool of the cluster at once.
	Mapping bool
	Run     func(Input) []Finding
}

// All is the catalogue, by code.
func All() []Check {
	return []Check{
		drm001(), drm002(), drm003(), drm004(), drm005(), drm006(), drm007(), drm008(),
		drm009(), drm010(), drm011(), drm012(), drm013(), drm014(), drm015(), drm016(),
		drm017(), drm018(), drm019(), drm020(), drm021(), drm022(), drm023(), drm024(), drm025(), drm026(), drm027(), drm028(), drm029(),
		drm060(), drm061(),
	}
}

// Run runs every check that applies to the operation, and sorts what they found:
// the most severe first, then by code and object.
func Run(in Input) []Finding { return run(in, func(Check) bool { return true }) }

// BeforeMapping runs those checks again that the mapping depends on, for the moment
// before the DeviceClass is made: the cluster may have changed since the plan.
func BeforeMapping(in Input) []Finding { return run(in, func(c Check) bool { return c.Mapping }) }

func run(in Input, asked func(Check) bool) []Finding {
	in = in.indexed()
	in.asked = asked
	var out []Finding
	for _, c := range All() {
		if c.applies(in) && len(c.missing(in.Snapshot)) == 0 {
			out = append(out, c.Run(in)...)
		}
	}
	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank(a.Severity), rank(b.Severity)), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Object, b.Object))
	})
	return out
}

// Stops says whether apply has to refuse: a blocker was found, or something that
// had to be seen was not.
func Stops(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == Blocker || f.Severity == Unknown })
}

func rank(s Severity) int { return slices.Index([]Severity{Blocker, Unknown, Warning, Info}, s) }

func (c Check) applies(in Input) bool {
	return slices.Contains(c.Operations, in.Operation) && (in.asked == nil || in.asked(c))
}

// missing are the parts that the check needs and that could not be read.
func (c Check) missing(s *cluster.Snapshot) []string {
	var out []string
	for _, part := range c.Needs {
		if _, unknown := s.IsUnknown(part); unknown {
			out = append(out, part)
		}
	}
	return out
}
