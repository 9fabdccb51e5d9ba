package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dramigrate/dramigrate/internal/nodeprobe"
	"github.com/dramigrate/dramigrate/internal/report"
)

// nodeProbe are the flags of node-probe.
type nodeProbe struct {
	app     *app
	o       nodeprobe.Options
	format  *format
	parts   []string
	roots   []string
	proc    string
	apiFile string
}

// newNodeProbe is the verb that runs on a node, in a pod which another verb makes.
func newNodeProbe(app *app) *cobra.Command {
	p := &nodeProbe{app: app, format: newFormat("json", "table")}
	cmd := &cobra.Command{
		Use:   "node-probe --node NAME",
		Short: "Look at the devices of this node: who offers and who holds each (runs on the node)",
		Long: `node-probe looks at the node that it runs on and says of each GPU, and of each
partition in MIG, who offers it (device plugin, DRA driver, both) and who holds it.

It asks the kubelet by its PodResources API, whose List call also makes the kubelet
forget the devices of pods that are gone, which DRA needs on kubelets up to 1.37.2. It
reads the checkpoints of kubelet and driver, lists sockets and CDI specifications, and
looks at the hardware through the driver's library. Nothing is written. Which devices
DRA offers is not told on the node: --api gives the API server's view, as printed by
"kubectl get resourceslices,resourceclaims,pods -A -o yaml".

The other verbs run it in a short pod as root. What cannot be read is unknown in the
report, with the reason. Exit codes: 0 clean; 3 a device is offered or held by both; 7
something is unknown; 1 no report.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&p.o.Node, "node", "", "name of this node, for the report")
	f.StringSliceVar(&p.parts, "parts", partNames(), "what to look at")
	f.StringVar(&p.o.Socket, "socket", nodeprobe.DefaultSocket, "the kubelet's PodResources socket")
	f.DurationVar(&p.o.Timeout, "timeout", nodeprobe.DefaultTimeout, "how long the kubelet may take to answer a call")
	f.StringVar(&p.o.KubeletRoot, "kubelet-root", nodeprobe.DefaultKubeletRoot, "the kubelet's root folder")
	f.StringSliceVar(&p.o.CDIDirs, "cdi-dir", nodeprobe.DefaultCDIDirs(), "folders of CDI specifications")
	f.StringSliceVar(&p.roots, "driver-root", nil, "folders to look for the NVIDIA driver in, instead of the usual ones")
	f.StringVar(&p.o.NVML.LibraryPath, "nvml-library", "", "file of libnvidia-ml.so.1; nothing else is tried then")
	f.BoolVar(&p.o.Processes, "processes", false, "find whose the processes on the devices are (takes the host's process table)")
	f.StringVar(&p.proc, "proc", "/proc", "procfs of the host's process table, for --processes")
	f.StringVar(&p.apiFile, "api", "", "the API server's ResourceSlices, ResourceClaims and Pods of this node, as YAML; - is stdin")
	offer(cmd, "parts", partNames()...)
	p.format.addFlag(cmd)
	return cmd
}

func partNames() []string {
	return []string{string(nodeprobe.AskKubelet), string(nodeprobe.AskNVML), string(nodeprobe.AskCheckpoints), string(nodeprobe.AskCDI)}
}

func (p *nodeProbe) run(cmd *cobra.Command) error {
	if p.o.Node == "" {
		return usageError("--node is required")
	}
	if p.o.Timeout <= 0 {
		return usageError("--timeout must be positive")
	}
	if len(p.parts) == 0 {
		return usageError("--parts needs at least one of %s", strings.Join(partNames(), ", "))
	}
	for _, part := range p.parts {
		if !slices.Contains(partNames(), part) {
			return usageError("--parts: %q is none of %s", part, strings.Join(partNames(), ", "))
		}
		p.o.Parts = append(p.o.Parts, nodeprobe.Part(part))
	}
	if p.o.NVML.LibraryPath != "" && len(p.roots) > 0 {
		return usageError("--nvml-library and --driver-root exclude each other")
	}
	if err := p.idle(cmd.Flags()); err != nil {
		return err
	}
	p.o.NVML.Roots, p.o.NVML.Proc = p.roots, p.proc
	var err error
	if p.o.API, err = p.readAPI(); err != nil {
		return err
	}
	if p.format.value == "json" {
		exit, err := nodeprobe.Run(cmd.Context(), p.o, p.app.Out)
		return ended(exit, err)
	}
	found, err := nodeprobe.Collect(cmd.Context(), p.o)
	if err != nil {
		return err
	}
	if err := report.NodeReport(p.app.sheet(), found); err != nil {
		return err
	}
	return ended(found.Exit(), nil)
}

// idle refuses flags of parts that are not looked at. --kubelet-root is not among them:
// whoever makes the pod may name it beside --socket.
func (p *nodeProbe) idle(set *pflag.FlagSet) error {
	asks := func(part nodeprobe.Part) bool { return slices.Contains(p.o.Parts, part) }
	if !asks(nodeprobe.AskNVML) {
		if err := idle(set, "--parts nvml", "driver-root", "nvml-library", "processes", "proc"); err != nil {
			return err
		}
	}
	if !p.o.Processes {
		if err := idle(set, "--processes", "proc"); err != nil {
			return err
		}
	}
	if !asks(nodeprobe.AskCDI) {
		if err := idle(set, "--parts cdi", "cdi-dir"); err != nil {
			return err
		}
	}
	if set.Changed("api") && slices.Equal(p.o.Parts, []nodeprobe.Part{nodeprobe.AskKubelet}) {
		return usageError("--api is for a verdict, which --parts kubelet alone gives none of: name more parts, or leave --api out")
	}
	return nil
}

func ended(exit int, err error) error {
	switch {
	case err != nil:
		return &codeError{exit, err}
	case exit != ExitOK:
		return silent{exit}
	}
	return nil
}

// readAPI reads what the caller gives of the API; nil if nothing is given.
func (p *nodeProbe) readAPI() (view *nodeprobe.APIView, err error) {
	var in io.Reader
	switch p.apiFile {
	case "":
		return nil, nil
	case "-":
		in = p.app.In
	default:
		f, err := os.Open(p.apiFile)
		if err != nil {
			return nil, fmt.Errorf("--api: %w", err)
		}
		defer func() { _ = f.Close() }() // read alone: nothing is lost
		in = f
	}
	if view, err = nodeprobe.ReadAPIView(in); err != nil {
		return nil, fmt.Errorf("--api %s: %w", p.apiFile, err)
	}
	return view, nil
}
