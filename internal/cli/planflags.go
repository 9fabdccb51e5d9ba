package cli

import (
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/config"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// planFlags are the choices of a person that go into a plan.
type planFlags struct {
	maxUnavailable string
	drain          string
	drainTimeout   time.Duration
	deleteEmptyDir bool
	evictUnmanaged bool
	soak           time.Duration
	kubeletGrace   time.Duration
	manifests      string
	rollout        string
	skips          skipFlags
	editOwned      bool
	waitForOwner   time.Duration
	into           string

	podWay
	configFlag
	// intent is what only the intent file can say.
	intent config.Pool
	class  string
	// skipped are the skips of the intent file, for where no --skip is given.
	skipped []checks.FindingSkip
	// intoSelector is what the intent file says of the pool of --into; empty if nothing.
	intoSelector string
}

// helperImageVariable is the environment's default for --helper-image.
const helperImageVariable = "DRAMIGRATE_HELPER_IMAGE"

// defaultOwnerWait is long enough for a review and the next sync of a repository.
const defaultOwnerWait = "1h0m0s"

func (f *planFlags) addPoolFlags(cmd *cobra.Command, op plan.Operation, streams Streams) {
	image, _ := streams.env(helperImageVariable)
	s := cmd.Flags()
	s.StringVar(&f.maxUnavailable, "max-unavailable", plan.DefaultMaxUnavailable, "nodes closed at the same time, a number or a share of the pool rounded up; the first batch is one node")
	s.StringVar(&f.drain, "drain", plan.DrainGPU, "what to evict: gpu (pods that hold devices) or all (as kubectl drain does)")
	s.DurationVar(&f.drainTimeout, "drain-timeout", plan.DefaultDrainTimeout, "how long the eviction of one node's pods may take")
	addDrainDangers(s, &f.deleteEmptyDir, &f.evictUnmanaged)
	s.StringVar(&f.image, "helper-image", image, "image of the helper pods, with this program as its entry point; a digest is best ["+helperImageVariable+"]")
	s.StringVar(&f.pullSecret, "helper-pull-secret", "", "Secret of the tool's namespace to pull the helper image with")
	addReach(cmd, &f.runtimeClass, &f.driverRoot)
	offer(cmd, "drain", plan.DrainGPU, plan.DrainAll)
	for _, name := range []string{"max-unavailable", "helper-image", "helper-pull-secret"} {
		offer(cmd, name)
	}
	f.soak, f.kubeletGrace = plan.DefaultSoak, plan.DefaultKubeletGrace
	if op == plan.Migrate {
		s.StringVar(&f.into, "into", "", "the pool that the workloads move to, whose nodes are on DRA and bring no plugin; POOL's own nodes stay as they are and are closed")
		s.DurationVar(&f.soak, "soak", f.soak, "how long opened nodes are watched before the next batch")
		s.DurationVar(&f.kubeletGrace, "kubelet-grace", f.kubeletGrace, "how long kubelets remember a device plugin that left; 5 minutes in every release")
		// For kubelets that were built otherwise; the verb's long help names it.
		_ = s.MarkHidden("kubelet-grace")
	}
}

// addDrainDangers are the drain's flags that name what is lost.
func addDrainDangers(s *pflag.FlagSet, deleteEmptyDir, evictUnmanaged *bool) {
	s.BoolVar(deleteEmptyDir, "delete-emptydir-data", false, "evict pods with emptyDir volumes, whose data is lost")
	s.BoolVar(evictUnmanaged, "evict-unmanaged", false, "evict pods without a controller, which nothing makes again")
}

func (f *planFlags) addPrepareFlags(cmd *cobra.Command) {
	s := cmd.Flags()
	s.StringVar(&f.manifests, "driver-manifests", "", "folder with the DRA driver's manifests; without it the driver must run already")
	s.StringVar(&f.rollout, "plugin-rollout", plan.RollingUpdate, "how the edit of the plugin's DaemonSet reaches its pods: rolling-update (restarts each) or on-delete (restarts none)")
	s.BoolVar(&f.editOwned, "edit-owned", false, "edit DaemonSets that Helm, GitOps or another tool owns; DANGER: at its next change the owner takes the edit back, and the plugin returns to every switched node at once")
	s.DurationVar(&f.waitForOwner, "wait-for-owner", 0, "wait until the owners of DaemonSets have made the edits that the plan shows; without a value for at most "+defaultOwnerWait)
	s.Lookup("wait-for-owner").NoOptDefVal = defaultOwnerWait
	offer(cmd, "wait-for-owner")
	offerFiles(cmd, "driver-manifests", cobra.ShellCompDirectiveFilterDirs)
	offer(cmd, "plugin-rollout", plan.RollingUpdate, plan.OnDelete)
}

// settings checks the flags of an operation and turns them into a plan's settings.
func (f *planFlags) settings(op plan.Operation) (plan.Settings, error) {
	skips, err := f.skips.parse()
	if err != nil {
		return plan.Settings{}, err
	}
	if len(skips) == 0 {
		skips = f.skipped
	}
	s := plan.Settings{PluginRollout: f.rollout, EditOwned: f.editOwned, WaitForOwner: metav1.Duration{Duration: f.waitForOwner}}
	if op == plan.Migrate || op == plan.Rollback {
		s = plan.Settings{
			MaxUnavailable: f.maxUnavailable, Drain: f.drain, DrainTimeout: metav1.Duration{Duration: f.drainTimeout},
			DeleteEmptyDir: f.deleteEmptyDir, EvictUnmanaged: f.evictUnmanaged,
			HelperImage: f.image, PullSecret: f.pullSecret, RuntimeClass: f.runtimeClass, DriverRoot: f.driverRoot,
			FirstBatch: f.intent.Batches.First, Batches: f.intent.Batches.Explicit, Deadlines: f.intent.Deadlines,
		}
	}
	if op == plan.Migrate {
		s.ClassName = f.class
		s.Soak, s.KubeletGrace = metav1.Duration{Duration: f.soak}, metav1.Duration{Duration: f.kubeletGrace}
	}
	if op == plan.Unprepare {
		s = plan.Settings{}
	}
	s.Skips = skips
	if err := s.Validate(op); err != nil {
		return plan.Settings{}, usageError("--%w", err)
	}
	return s, nil
}

// planner makes the planner of an operation from the flags.
func (f *planFlags) planner(a *app, op plan.Operation, pool *poolFlags) (*planner, error) {
	if err := f.configure(a, op, pool); err != nil {
		return nil, err
	}
	p := &planner{app: a, op: op, namespace: a.namespace, resource: a.resource, driver: a.driver, reachGiven: reachGiven(f.set)}
	if op == plan.Migrate || op == plan.Rollback {
		if err := pool.require(); err != nil {
			return nil, err
		}
		p.pool = pool
	} else if pool.given() {
		return nil, usageError("no pool is expected: %s is for the whole cluster", op)
	}
	err := f.intoPool(op, p, pool)
	if err != nil {
		return nil, err
	}
	if p.settings, err = f.settings(op); err != nil {
		return nil, err
	}
	if op == plan.Prepare {
		p.manifests, err = f.readManifests()
	}
	return p, err
}

// intoPool chooses the pool that the workloads move to.
func (f *planFlags) intoPool(op plan.Operation, p *planner, pool *poolFlags) error {
	switch {
	case f.into == "":
		return nil
	case op != plan.Migrate:
		return usageError("--into is for apply: a rollback knows where the pool's workloads went")
	case f.into == pool.arg || f.into == pool.name:
		return usageError("--into %s: is the pool that the workloads leave", f.into)
	}
	if f.set.Changed("kubelet-grace") {
		return usageError("--kubelet-grace is of nodes that the plugin leaves, and with --into it leaves none: leave --kubelet-grace out")
	}
	p.into = &poolFlags{arg: f.into, selector: f.intoSelector, name: f.into}
	return nil
}

// readManifests reads the driver's folder, nil if none is given.
func (f *planFlags) readManifests() (*plan.Manifests, error) {
	if f.manifests == "" {
		return nil, nil
	}
	m, err := plan.ReadManifests(os.DirFS(f.manifests))
	if err != nil {
		return nil, withCode(ExitError, "--driver-manifests %s: %w", f.manifests, err)
	}
	return m, nil
}
