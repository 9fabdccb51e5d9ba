// Package dradriver is the DRA driver of the test cluster: gpu.nvidia.com, or another
// vendor's. It publishes the node's simulated GPUs in ResourceSlices and prepares claims for
// them, on the same helper library as the vendor's driver, with that driver's
// names for devices, attributes and files on the node.
package dradriver

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/dramigrate/dramigrate/test/cluster/internal/gpu"
)

const (
	// DriverName is the driver's name in slices, claims and the kubelet's folders.
	DriverName = "gpu.nvidia.com"
	// ImageRepository is the image that stands for this driver, without a tag.
	ImageRepository = "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu"
)

// config is where a driver finds its surroundings.
type config struct {
	make        Make
	node        string
	setFile     string
	faultFile   string
	pluginsDir  string // the kubelet's folder of plugins; the driver owns one below it
	registryDir string // the kubelet's folder of registration sockets
	cdiDir      string
	client      kubernetes.Interface
}

// Run serves the driver until ctx ends. It leaves its ResourceSlices as they
// are: removing them is the kubelet's part.
//
// The node's name comes from the environment variable NODE_NAME, the API server
// from the pod's service account unless --kubeconfig is given.
func (m Make) Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg := config{make: m}
	var kubeconfig string
	flags := flag.NewFlagSet(m.Command, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&cfg.node, "node-name", os.Getenv("NODE_NAME"), "name of the node")
	flags.StringVar(&cfg.setFile, "gpus", gpu.SetFile, "file with the node's GPU set")
	flags.StringVar(&cfg.faultFile, "fault", FaultFile, "file with the fault to show")
	flags.StringVar(&cfg.pluginsDir, "kubelet-plugins-directory-path", kubeletplugin.KubeletPluginsDir, "the kubelet's folder of plugins")
	flags.StringVar(&cfg.registryDir, "kubelet-registrar-directory-path", kubeletplugin.KubeletRegistryDir, "the kubelet's folder of registration sockets")
	flags.StringVar(&cfg.cdiDir, "cdi-root", "/var/run/cdi", "folder of CDI specs")
	flags.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig file; empty means the pod's service account")
	if err := flags.Parse(args); err != nil {
		return err
	}
	rest, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("DRA driver: API access: %w", err)
	}
	if cfg.client, err = kubernetes.NewForConfig(rest); err != nil {
		return fmt.Errorf("DRA driver: API access: %w", err)
	}
	ctx = klog.NewContext(ctx, textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(stderr))))
	// Whatever fails because the driver is asked to end is no failure: starting
	// takes some requests, and each can be cut off.
	if err := run(ctx, cfg); err != nil && ctx.Err() == nil {
		return fmt.Errorf("DRA driver %s: %w", m.Driver, err)
	}
	return nil
}

func run(ctx context.Context, cfg config) error {
	if cfg.node == "" {
		return errors.New("the node's name is not known: NODE_NAME is not set")
	}
	fault, err := ReadFault(cfg.faultFile)
	if err != nil {
		return err
	}
	if fault == FaultCrashLoop {
		return errors.New("crashes on purpose")
	}
	set, err := gpu.Load(cfg.setFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	published := set
	if fault == FaultMissingDevice && len(set.GPUs) > 0 {
		published.GPUs = set.GPUs[:len(set.GPUs)-1]
	}
	devices, err := cfg.make.devices(published)
	if err != nil {
		return err
	}
	dir := filepath.Join(cfg.pluginsDir, cfg.make.Driver)
	for _, d := range []string{dir, cfg.cdiDir} {
		if err := os.MkdirAll(d, 0o750); err != nil {
			return err
		}
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	d := &driver{make: cfg.make, node: cfg.node, set: set, faultFile: cfg.faultFile, fail: fail}
	if d.checkpoint, err = loadCheckpoint(dir); err != nil {
		return err
	}
	if d.injector, err = newInjector(cfg.make, cfg.cdiDir); err != nil {
		return err
	}
	helper, err := kubeletplugin.Start(ctx, d,
		kubeletplugin.DriverName(cfg.make.Driver),
		kubeletplugin.KubeClient(cfg.client),
		kubeletplugin.NodeName(cfg.node),
		kubeletplugin.PluginDataDirectoryPath(dir),
		kubeletplugin.RegistrarDirectoryPath(cfg.registryDir),
		kubeletplugin.HealthService(false),
	)
	if err != nil {
		return err
	}
	defer helper.Stop()
	if err := helper.PublishResources(ctx, pool(cfg.node, devices)); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Serving", "node", cfg.node, "devices", len(devices), "fault", fault)
	<-ctx.Done()
	return context.Cause(ctx)
}
