package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/helperpod"
	"github.com/dramigrate/dramigrate/internal/nodeprobe"
	"github.com/dramigrate/dramigrate/internal/poolprobe"
	"github.com/dramigrate/dramigrate/internal/report"
	"github.com/dramigrate/dramigrate/internal/wholefile"
)

type probeOptions struct {
	app    *app
	format *format
	pool   poolFlags
	nodes  []string
	reach  probeFlags
	save   string
}

func newProbe(a *app) *cobra.Command {
	o := &probeOptions{app: a, format: newFormat("table", "wide", "json", "yaml")}
	cmd := &cobra.Command{
		Use:   "probe [POOL]",
		Short: "Have the nodes of a pool say who offers their devices and who has them",
		Long: `Run a short pod on each node of a pool that has devices, and hold what it finds there
against the API: the GPUs by the driver's own library, what the kubelet offers by device
plugins, which pods have which devices by a plugin or by a claim, and what kubelet and
driver have on record. It proves, or disproves, that one device is in two hands.

The pods tolerate every taint, ask for no device, mount folders of the node read-only and
are removed again, also when the verb is interrupted. The GPUs are reached by the NVIDIA
container runtime (--runtime-class, where it is not the default), or with --driver-root by
the node's own driver; the pod is privileged then. --processes also names the pods behind
the processes on the GPUs, by the node's process table. No lock is taken: a run may be
under way, and the verdict is of one moment.

What --helper-image, --runtime-class and --driver-root do not say is that of --config, and
what that does not say either is taken from the last run of the pool that had helper pods.

The first device plugin to look for is that of --resource, the driver that of --driver.
The tool's namespace has to be there, with a pod-security level of "privileged", as
'dramigrate prepare' makes it.

Exit code 0: every node is clean. 3: a device is offered or held by both mechanisms. 7:
something that would prove a node clean could not be seen.`,
		Example: `  dramigrate probe pool-a
  dramigrate probe pool-a --driver-root /run/nvidia/driver --processes
  dramigrate probe pool-a --node gpu-7 -o wide
  dramigrate probe pool-a --save reports; dramigrate plan pool-a --reports reports`,
		ValidArgsFunction: completePools(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.pool.complete(args); err != nil {
				return err
			}
			if err := o.reach.configure(a, &o.pool, o.nodes); err != nil {
				return err
			}
			if !o.pool.given() && len(o.nodes) == 0 {
				return usageError("give a POOL, --selector or --node")
			}
			if err := o.reach.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	o.format.addFlag(cmd)
	o.pool.addFlags(cmd)
	o.reach.addFlags(cmd, a.Streams)
	s := cmd.Flags()
	s.StringArrayVar(&o.nodes, "node", nil, "probe this node alone, of the pool if one is given; may be repeated")
	s.StringVar(&o.save, "save", "", "folder to write each node's NodeReport to, for 'dramigrate plan --reports'")
	offer(cmd, "node")
	offerFiles(cmd, "save", cobra.ShellCompDirectiveFilterDirs)
	return cmd
}

func (o *probeOptions) run(ctx context.Context) error {
	s, err := o.app.look(ctx, cluster.LoadOptions{})
	if err != nil {
		return err
	}
	pool, err := o.chosen(s)
	if err != nil {
		return err
	}
	if err := o.reach.recall(ctx, o.app, pool.Name); err != nil {
		return err
	}
	result, err := o.reach.gather(ctx, o.app, s, pool)
	if err != nil {
		return err
	}
	err = o.format.print(o.app.Out, result, func() error {
		return report.PoolProbe(o.app.sheet(), result, o.format.value == "wide")
	})
	if err != nil {
		return err
	}
	return o.app.beside(o.saveReports(result), probed(result.Verdict))
}

// chosen is the pool, or the part of it that --node names.
func (o *probeOptions) chosen(s *cluster.Snapshot) (cluster.NodePool, error) {
	var pool cluster.NodePool
	if o.pool.given() {
		found, err := o.pool.find(s)
		if err != nil || len(o.nodes) == 0 {
			return found, err
		}
		pool = found
	}
	for _, name := range o.nodes {
		if _, ok := s.Node(name); !ok {
			return pool, usageError("--node %s: the cluster has no such node", name)
		}
		if o.pool.given() && !slices.Contains(pool.Nodes, name) {
			return pool, usageError("--node %s: it is not in pool %s", name, pool.Name)
		}
	}
	pool.Nodes = slices.Compact(slices.Sorted(slices.Values(o.nodes)))
	return pool, nil
}

// probed is the exit code of a verdict.
func probed(v nodeprobe.Verdict) error {
	switch {
	case v == nodeprobe.Clean:
		return nil
	case poolprobe.IsDouble(v):
		return silent{ExitBlocked}
	default:
		return silent{ExitUnknown}
	}
}

// saveReports writes what each node said to a file of its own, if that is asked for.
func (o *probeOptions) saveReports(r *poolprobe.Result) error {
	if o.save == "" {
		return nil
	}
	if err := os.MkdirAll(o.save, 0o755); err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if n.Report == nil {
			continue
		}
		// A node's name is a DNS name, which is the name of a file anywhere.
		err := wholefile.Write(filepath.Join(o.save, n.Name+".json"), func(w io.Writer) error { return report.JSON(w, n.Report) })
		if err != nil {
			return fmt.Errorf("--save: %w", err)
		}
	}
	return nil
}

// probeFlags are how nodes are probed; `probe` and `verify --probe` have them.
type probeFlags struct {
	podWay
	configFlag
	kubeletRoot string
	processes   bool
	parallel    int
	timeout     time.Duration
	keepLogs    string
	// skipped are the skips of the intent file for the pool: its own and the file's.
	skipped []checks.FindingSkip
}

func (f *probeFlags) addFlags(cmd *cobra.Command, streams Streams) {
	image, _ := streams.env(helperImageVariable)
	f.addConfigFlag(cmd)
	s := cmd.Flags()
	s.StringVar(&f.image, "helper-image", image, "image of the pods, with this program built with cgo as its entry point ["+helperImageVariable+"]")
	s.StringVar(&f.pullSecret, "helper-pull-secret", "", "Secret of the tool's namespace to pull the image with")
	addReach(cmd, &f.runtimeClass, &f.driverRoot)
	s.StringVar(&f.kubeletRoot, "kubelet-root", helperpod.DefaultKubeletRoot, "the kubelets' --root-dir")
	s.BoolVar(&f.processes, "processes", false, "name the pods behind the processes on the GPUs; the pod sees the node's process table (hostPID)")
	offer(cmd, "kubelet-root")
	s.IntVar(&f.parallel, "parallel", poolprobe.DefaultParallel, "nodes probed at the same time")
	s.DurationVar(&f.timeout, "timeout", helperpod.DefaultTimeout, "how long one node's pod may take, its image's pull included")
	s.StringVar(&f.keepLogs, "keep-logs", "", "folder to write the log of each pod to that gave no report")
	for _, name := range []string{"helper-image", "helper-pull-secret", "parallel"} {
		offer(cmd, name)
	}
	offerFiles(cmd, "keep-logs", cobra.ShellCompDirectiveFilterDirs)
}

// addReach adds the flags of how probes reach the GPUs.
func addReach(cmd *cobra.Command, runtimeClass, driverRoot *string) {
	s := cmd.Flags()
	s.StringVar(runtimeClass, "runtime-class", "", "RuntimeClass of the NVIDIA container runtime, where it is not the default")
	s.StringVar(driverRoot, "driver-root", "", "the node's folder of the driver's libraries, where there is no such runtime (/run/nvidia/driver, /home/kubernetes/bin/nvidia); DANGER: the pod is privileged then")
	offer(cmd, "runtime-class")
	offer(cmd, "driver-root")
}

func (f *probeFlags) validate() error {
	switch {
	case f.parallel < 1:
		return usageError("--parallel must be at least 1")
	case f.timeout < time.Second:
		return usageError("--timeout must be at least 1s")
	case f.driverRoot != "" && !filepath.IsAbs(f.driverRoot):
		return usageError("--driver-root %s: give an absolute path of the node", f.driverRoot)
	case !filepath.IsAbs(f.kubeletRoot):
		return usageError("--kubelet-root %s: give an absolute path of the node", f.kubeletRoot)
	case f.driverRoot != "" && f.runtimeClass != "":
		return usageError("give either --runtime-class or --driver-root")
	}
	return nil
}

// reachOf is how a node's pod gets at what it looks at.
func (f *probeFlags) reachOf(v cluster.NodeView, driver string) helperpod.Reach {
	out := helperpod.Reach{
		GPUs: true, RuntimeClass: f.runtimeClass, DriverRoot: f.driverRoot, Processes: f.processes,
		Checkpoints: true, ClaimState: cluster.KeepsClaimState(v.Node), CDI: len(v.SlicesOf(driver)) > 0,
	}
	if f.kubeletRoot != helperpod.DefaultKubeletRoot {
		out.KubeletRoot = f.kubeletRoot
	}
	return out
}

// gather probes a pool.
func (f *probeFlags) gather(ctx context.Context, a *app, s *cluster.Snapshot, pool cluster.NodePool) (*poolprobe.Result, error) {
	client, err := a.Client()
	if err != nil {
		return nil, err
	}
	if f.keepLogs != "" {
		if err := os.MkdirAll(f.keepLogs, 0o755); err != nil {
			return nil, fmt.Errorf("--keep-logs: %w", err)
		}
	}
	runner := helperpod.New(client, a.Clock(), helperpod.Config{
		Namespace: a.namespace, Run: string(uuid.NewUUID())[:8], Image: f.image, PullSecret: f.pullSecret,
	})
	views := s.Views(pool.Nodes...)
	done := 0
	return poolprobe.Gather(ctx, s, poolprobe.Options{
		Pool: pool, Resource: a.resource, Driver: a.driver, Parallel: f.parallel,
		Probe: func(ctx context.Context, node string) (*nodeprobe.NodeReport, error) {
			wait := helperpod.Wait{Timeout: f.timeout, KeepLog: f.keeper(a, node)}
			found, err := runner.Probe(ctx, node, helperpod.ProbeOptions{Wait: wait, Reach: f.reachOf(views[node], a.driver), Beside: true})
			if helperpod.KindOf(err) == helperpod.Incomplete {
				err = nil // what is missing stands in the report
			}
			return found, err
		},
		Look: func(ctx context.Context) (*cluster.Snapshot, error) { return a.look(ctx, cluster.LoadOptions{}) },
		Done: func(node string, err error) {
			done++
			how := "answered"
			if err != nil {
				how = "gave no full answer"
			}
			fmt.Fprintf(a.Err, "node/%s %s (%d)\n", node, how, done)
		},
	})
}

// keeper writes the log of a pod that failed; nil if nobody wants it.
func (f *probeFlags) keeper(a *app, node string) func(string) {
	if f.keepLogs == "" {
		return nil
	}
	return func(log string) {
		name := filepath.Join(f.keepLogs, node+".log")
		err := wholefile.Write(name, func(w io.Writer) error { _, err := io.WriteString(w, log); return err })
		if err != nil {
			fmt.Fprintf(a.Err, "Warning: --keep-logs: %v\n", err)
		}
	}
}
