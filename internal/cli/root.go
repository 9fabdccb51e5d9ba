package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/engine"
	"github.com/dramigrate/dramigrate/internal/report"
	"github.com/dramigrate/dramigrate/internal/vendor"
)

// app is what all verbs share: the streams, the world, and the flags of the root.
type app struct {
	Streams
	Factory
	build Build
	// name is how a person calls the program: dramigrate or kubectl dramigrate.
	name string
	// namespace is the tool's own.
	namespace string
	resource  string
	driver    string
	// from are the files to read instead of a cluster.
	from []string
	// newRunner makes what runs plans.
	newRunner func(engine.Deps) (Runner, error)
}

// Main runs the program and returns its exit code. The first SIGINT or SIGTERM asks
// the verb to stop at a clean point, the second ends the process at once.
func Main(args []string, streams Streams, build Build) int {
	// client-go's own log lines would tear the live region apart, and what they tell
	// comes back as errors and events anyway.
	klog.SetLogger(logr.Discard())

	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals)
		cancel(errInterrupted)
	}()

	argv0, args := args[0], args[1:]
	root := NewCommand(argv0, streams, build)
	if completes(argv0) {
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	return runRoot(ctx, root, args, streams)
}

// NewCommand is the whole command line. argv0 is how the program was called: as
// dramigrate, or by kubectl.
func NewCommand(argv0 string, streams Streams, build Build) *cobra.Command {
	factory := newKubeFactory("dramigrate/"+build.Version, streams.Err)
	root := newRoot(&app{Streams: streams, Factory: factory, build: build, newRunner: newEngine}, argv0)
	factory.addFlags(root)
	return root
}

func runRoot(ctx context.Context, root *cobra.Command, args []string, streams Streams) int {
	root.SetArgs(args)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	code := exitCode(err)
	switch {
	case code == ExitInterrupted && errors.Is(err, errInterrupted):
		err = fmt.Errorf("%w; nothing was changed", err)
	case code == ExitError && errors.Is(context.Cause(ctx), errInterrupted):
		// Whatever failed failed because of it, and nothing had begun: the engine
		// says so otherwise.
		code, err = ExitInterrupted, errors.New("interrupted; nothing was changed")
	}
	var quiet silent
	if errors.As(err, &quiet) {
		return code
	}
	// Several errors that were joined stand on several lines; a log wants one.
	text := report.Clean(strings.ReplaceAll(explain(err), "\n", "; "))
	fmt.Fprintf(streams.Err, "Error: %s\n", asTyped(text, root.DisplayName()))
	if code == ExitUsage {
		fmt.Fprintf(streams.Err, "See '%s --help'.\n", cmd.CommandPath())
	}
	return code
}

func newRoot(a *app, argv0 string) *cobra.Command {
	root := &cobra.Command{
		Use:   "dramigrate",
		Short: "Move GPU node pools from device plugins to Dynamic Resource Allocation and back",
		Long: `dramigrate moves one GPU node pool at a time from a device plugin to Dynamic
Resource Allocation (DRA), and back. Workloads that ask for nvidia.com/gpu are not
touched: a DeviceClass serves the same name.

  dramigrate pools                        what there is
  dramigrate check                        what could go wrong
  dramigrate prepare --driver-manifests DIR   once a cluster: shared objects
  dramigrate plan POOL                    what a move would do; changes nothing
  dramigrate apply POOL                   move the pool
  dramigrate status                       where every node stands
  dramigrate rollback POOL                put the pool back as it was`,
		PersistentPreRunE: func(*cobra.Command, []string) error { return a.validate() },
		SilenceUsage:      true,
		SilenceErrors:     true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			hint := ""
			if s := cmd.SuggestionsFor(args[0]); len(s) > 0 {
				hint = "; did you mean " + strings.Join(s, " or ") + "?"
			}
			return usageError("unknown verb %q%s", args[0], hint)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError("%w", err) })

	flags := root.PersistentFlags()
	flags.StringVar(&a.namespace, "tool-namespace", defaultNamespace, "namespace of the tool's own objects: journal, locks, helper pods")
	flags.StringVar(&a.resource, "resource", defaultResource, "extended resource that workloads ask for")
	flags.StringVar(&a.driver, "driver", "", "DRA driver that serves the resource; by default that of the resource's vendor, as gpu.nvidia.com for nvidia.com/gpu")
	for _, name := range []string{"tool-namespace", "resource", "driver"} {
		offer(root, name)
	}

	root.AddCommand(
		newPools(a), newCheck(a), newExplain(a), newPlan(a), newPrepare(a), newApply(a), newRollback(a), newUnprepare(a),
		newStatus(a), newVerify(a), newProbe(a), newUnlock(a), newNodeProbe(a), newVersion(a), newSnapshot(a),
		newRBAC(a),
	)
	addCompletion(root, a.Streams)
	if calledByKubectl(argv0) {
		actAsPlugin(root)
	}
	a.name = root.DisplayName()
	return root
}

// validate checks the flags of the root before a verb asks anything of a cluster.
func (a *app) validate() error {
	if bad := validation.IsDNS1123Label(a.namespace); len(bad) > 0 {
		return usageError("--tool-namespace %q: %s", a.namespace, bad[0])
	}
	// As Kubernetes names extended resources (pkg/apis/core/v1/helper,
	// IsExtendedResourceName): qualified, and not in its own domain.
	if bad := validation.IsQualifiedName(a.resource); len(bad) > 0 || !cluster.IsExtended(corev1.ResourceName(a.resource)) {
		return usageError("--resource %q: must be the name of an extended resource, as nvidia.com/gpu", a.resource)
	}
	if a.driver == "" {
		return a.vendorDriver()
	}
	bad := validation.IsDNS1123Subdomain(a.driver)
	if len(a.driver) > resourcev1.DriverNameMaxLength {
		bad = append(bad, fmt.Sprintf("must have at most %d characters", resourcev1.DriverNameMaxLength))
	}
	if len(bad) > 0 {
		return usageError("--driver %q: %s", a.driver, bad[0])
	}
	return nil
}

// vendorDriver is the driver of the resource's vendor, where no driver has been named.
func (a *app) vendorDriver() error {
	driver, known := vendor.DriverOf(a.resource)
	if !known {
		return usageError("--resource %s: no DRA driver is known for it; name the one that serves it by --driver", a.resource)
	}
	a.driver = driver
	return nil
}

const (
	defaultNamespace = "dramigrate-system"
	defaultResource  = "nvidia.com/gpu"
)

func newEngine(d engine.Deps) (Runner, error) {
	e, err := engine.New(d)
	if err != nil {
		return nil, err
	}
	return e, nil
}

func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError("unexpected argument %q", args[0])
	}
	return nil
}
