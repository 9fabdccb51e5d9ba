package checks

import (
	"cmp"
	"slices"
	"time"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dramigrate/dramigrate/internal/access"
	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

// The operations that a check can be asked about, as a plan names them.
const (
	Prepare   = "prepare"
	Migrate   = "migrate"
	Rollback  = "rollback"
	Unprepare = "unprepare"
	// Verify is no plan's: it asks about nodes that are on DRA, as they stand.
	Verify = "verify"
)

// Input is what checks look at: the cluster, and what is intended with it.
type Input struct {
	Snapshot  *cluster.Snapshot
	Inventory gate.Inventory
	Gate      gate.Gate
	// Pool is the pool of Migrate and Rollback; empty with Prepare and Unprepare.
	Pool cluster.NodePool
	// Other is the other pool of a move from one pool into another; empty in any other
	// operation.
	Other cluster.NodePool
	// Resource is the extended resource that workloads ask for; Resources are all
	// of its plugin's, Resource included.
	Resource  string
	Resources []string
	// NewClass is the name of the DeviceClass that the run would create; empty if it
	// creates none.
	NewClass string
	// NewClassObject is that class as it would be created; nil where it is not known.
	NewClassObject *resourcev1.DeviceClass
	// Driver is the DRA driver's name.
	Driver    string
	Operation string
	// Drain is "gpu" (only pods with devices are evicted) or "all".
	Drain string
	// DeleteEmptyDir and EvictUnmanaged are the flags that let the drain evict pods
	// which lose data, or which nothing makes again.
	DeleteEmptyDir bool
	EvictUnmanaged bool
	// DrainTimeout is how long the eviction of one node's pods may take; zero if it has
	// not been decided.
	DrainTimeout time.Duration
	// Skips are what a person has decided not to be stopped by.
	Skips []FindingSkip
	// Rights are what running the plan needs. Runs says that the caller is about to run
	// it, and does not only look at it; Offline that there is no caller, because the
	// cluster is read from files. Namespace is the tool's.
	Rights    []access.Need
	Runs      bool
	Offline   bool
	Namespace string
	// HelperImage is the image of the helper pods, PullSecret the Secret of the tool's
	// namespace to pull it with; empty if they are not known.
	HelperImage, PullSecret string
	// Witnesses are what nodes have said of themselves when they were probed; empty if
	// none was.
	Witnesses []Witness
	// EditOwned and WaitForOwner are prepare's flags for DaemonSets that somebody owns:
	// edit them all the same, or wait until their owner has.
	EditOwned, WaitForOwner bool

	// asked are the checks of this run; all of the catalogue if nil. reported are the
	// operations of the whole report, where it is about several.
	asked    func(Check) bool
	reported []string
	views    map[string]cluster.NodeView
	// sorted are the views by name, left those that the operation has still to work on.
	sorted, left []cluster.NodeView
	budgets      *cluster.BudgetIndex
	// held and evicted remember what holders and evictions have found, by node.
	held, evicted map[string][]cluster.Pod
	// moving are the movers, where they have been gathered.
	moving []*cluster.Pod
}

// Check is one entry of the catalogue.
type Check struct {
	Code  string
	Title string
	// Group is where the catalogue lists it; All sets it.
	Group Group
	// Why says what goes wrong and how Kubernetes or a vendor makes it so, Fix what to do
	// about it. Sources say where that can be verified: a KEP, a file and its version, a
	// page of documentation.
	Why, Fix string
	Sources  []string
	// Operations are those that the check applies to.
	Operations []string
	// Needs are the parts of the Snapshot without which the check cannot answer. If
	// one could not be read the check is not run, and DRM011 reports it as unknown.
	Needs []string
	// Advises is true for a check that never stops a run: it reports warnings and infos
	// alone, and when a part that it needs could not be read, that is a warning too.
	Advises bool
	// Unskippable is true for what a person's word cannot make good: the run would fail,
	// or a device would be in two hands.
	Unskippable bool
	// Mapping is true for what has to hold when the DeviceClass goes live, which it
	// does for every pool of the cluster at once.
	Mapping bool
	// Given says whether there is what the check judges by, where that is not part of the
	// cluster; a check that was given nothing is no part of the run, and has not passed.
	Given func(Input) bool
	Run   func(Input) []Finding
}

// Run runs every check that applies to the operation, and sorts what they found:
// the most severe first, then by code and object.
func Run(in Input) []Finding { return run(in, func(Check) bool { return true }) }

// BeforeMapping runs those checks again that the mapping depends on, for the moment
// before the DeviceClass is made: the cluster may have changed since the plan.
func BeforeMapping(in Input) []Finding { return run(in, func(c Check) bool { return c.Mapping }) }

// Only runs the checks with these codes.
func Only(in Input, codes []string) []Finding {
	return run(in, func(c Check) bool { return slices.Contains(codes, c.Code) })
}

func run(in Input, asked func(Check) bool) []Finding {
	in = in.indexed()
	in.moving = in.movers()
	in.asked = asked
	var out []Finding
	for _, c := range All() {
		if c.applies(in) && len(c.missing(in.Snapshot)) == 0 {
			out = append(out, in.skipped(c, c.Run(in))...)
		}
	}
	Sort(out)
	return out
}

// Sort orders findings: what stops a run first, what was skipped last, then by code
// and object.
func Sort(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Object, b.Object))
	})
}

// Stops says whether apply has to refuse: a blocker was found, or something that
// had to be seen was not.
func Stops(findings []Finding) bool {
	return slices.ContainsFunc(findings, Finding.Stops)
}

// Severities are all severities, the worst first.
func Severities() []Severity { return []Severity{Blocker, Unknown, Warning, Info} }

func rank(f Finding) int {
	if f.Skipped != "" {
		return len(Severities())
	}
	return slices.Index(Severities(), f.Severity)
}

func (c Check) applies(in Input) bool {
	return slices.Contains(c.Operations, in.Operation) && (in.asked == nil || in.asked(c)) && (c.Given == nil || c.Given(in))
}

// runs says that the check with the code is part of this run.
func (in Input) runs(code string) bool {
	c, ok := Find(code)
	return ok && c.applies(in)
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
