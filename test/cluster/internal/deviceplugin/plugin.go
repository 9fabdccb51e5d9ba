// Package deviceplugin is the device plugin of the test cluster. It advertises
// the node's simulated GPUs, as nvidia.com/gpu or as another vendor's plugin does, over
// the kubelet's real device-plugin API (v1beta1).
package deviceplugin

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/fsnotify/fsnotify"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/dramigrate/dramigrate/test/cluster/internal/gpu"
)

const (
	// ImageRepository is the image that stands for this plugin, without a tag.
	ImageRepository = "nvcr.io/nvidia/k8s-device-plugin"
	// ResourceName is what the plugin advertises.
	ResourceName = "nvidia.com/gpu"
)

const (
	// socketName is the one of the vendor's plugin: nvidia-<resource>.sock.
	socketName = "nvidia-gpu.sock"
	// registerTimeout bounds one registration, in which the kubelet connects back. It is
	// long: a kubelet that still ends one connection to the socket when the next is made
	// may drop the new one without a word (pkg/kubelet/cm/devicemanager/plugin/v1beta1,
	// runClient, v1.37.2), and the plugin is then advertised no more.
	registerTimeout = time.Minute
	// firstRetry and lastRetry are the back-off after a registration that failed.
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
	// envFailOnInitError is the vendor's switch: whether to end with an error on
	// a node without GPUs (the default) or to stay and do nothing.
	envFailOnInitError = "FAIL_ON_INIT_ERROR"
)

// config is where a plugin finds its surroundings.
type config struct {
	make            Make
	pluginDir       string // the kubelet's folder of device-plugin sockets
	setFile         string // the node's GPU set
	failOnInitError bool
	log             *slog.Logger
}

// Run serves the plugin until ctx ends, and then removes its socket.
//
// The set of GPUs is read once, at the start; later changes of the file change
// their health alone, as the vendor's plugin discovers devices only once.
func (m Make) Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg := config{make: m, log: slog.New(slog.NewTextHandler(stderr, nil)), failOnInitError: true}
	if value, ok := os.LookupEnv(envFailOnInitError); ok {
		parsed, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("device plugin: %s: %w", envFailOnInitError, err)
		}
		cfg.failOnInitError = parsed
	}
	flags := flag.NewFlagSet(m.Command, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&cfg.pluginDir, "device-plugin-dir", pluginapi.DevicePluginPath, "the kubelet's folder of device-plugin sockets")
	flags.StringVar(&cfg.setFile, "gpus", gpu.SetFile, "file with the node's GPU set")
	flags.BoolVar(&cfg.failOnInitError, "fail-on-init-error", cfg.failOnInitError, "end with an error on a node without GPUs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := run(ctx, cfg); err != nil {
		return fmt.Errorf("device plugin: %w", err)
	}
	return nil
}

func run(ctx context.Context, cfg config) error {
	set, err := gpu.Load(cfg.setFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(set.GPUs) == 0 {
		if cfg.failOnInitError {
			return fmt.Errorf("no GPUs in %s", cfg.setFile)
		}
		cfg.log.Info("no GPUs on this node, nothing to do", "file", cfg.setFile)
		<-ctx.Done()
		return nil
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	// Folders are watched, not files: both files are replaced, not rewritten.
	for _, dir := range []string{cfg.pluginDir, filepath.Dir(cfg.setFile)} {
		if err := watcher.Add(filepath.Clean(dir)); err != nil {
			return fmt.Errorf("watch %s: %w", dir, err)
		}
	}
	p := &plugin{config: cfg, inventory: newInventory(set, cfg.make.ID)}
	return p.loop(ctx, watcher)
}

// A plugin keeps one server registered with whichever kubelet runs.
type plugin struct {
	config
	inventory *inventory
	server    *server
	// kubelet is the kubelet's socket as it was when server was registered.
	kubelet os.FileInfo
}

// kubeletSocket is where kubelets are registered with.
func (p *plugin) kubeletSocket() string {
	return filepath.Join(p.pluginDir, filepath.Base(pluginapi.KubeletSocket))
}

// knowsKubelet says that the plugin is registered with the kubelet that serves now. The
// word that a kubelet has started may come after the registration with it, and a second
// one cuts the connection that the kubelet has just made.
func (p *plugin) knowsKubelet() bool {
	if p.server == nil || p.kubelet == nil {
		return false
	}
	now, err := os.Stat(p.kubeletSocket())
	return err == nil && os.SameFile(p.kubelet, now) && p.kubelet.ModTime().Equal(now.ModTime())
}

func (p *plugin) loop(ctx context.Context, watcher *fsnotify.Watcher) error {
	defer func() { p.stop() }()
	backoff := firstRetry
	// The timer fires at once: the first registration is a retry like any other.
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			p.log.Info("stopping")
			return nil
		case event := <-watcher.Events:
			switch {
			case event.Name == p.kubeletSocket() && event.Has(fsnotify.Create) && !p.knowsKubelet():
				// A new kubelet has forgotten all plugins and removed their sockets.
				p.log.Info("kubelet has started, registering anew")
				backoff = firstRetry
				retry.Reset(0)
			case event.Name == filepath.Clean(p.setFile) && !event.Has(fsnotify.Remove):
				p.reload()
			}
		case err := <-watcher.Errors:
			return fmt.Errorf("watch: %w", err)
		case <-retry.C:
			if err := p.start(ctx); err != nil {
				p.log.Warn("not registered", "error", err, "retry", backoff)
				retry.Reset(backoff)
				backoff = min(2*backoff, lastRetry)
				continue
			}
			backoff = firstRetry
			p.log.Info("registered", "resource", p.make.Resource, "devices", len(p.inventory.devices()))
		}
	}
}

// start serves on a new socket and registers it. Whatever served before is stopped.
func (p *plugin) start(ctx context.Context) error {
	p.stop()
	srv, err := serve(filepath.Join(p.pluginDir, p.make.Socket), p.make, p.inventory)
	if err != nil {
		return err
	}
	// Before it is dialled: a kubelet that comes in between is then a new one.
	kubelet, err := os.Stat(p.kubeletSocket())
	if err != nil {
		srv.stop()
		return fmt.Errorf("no kubelet: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	if err := register(ctx, p.make, p.kubeletSocket()); err != nil {
		srv.stop()
		return err
	}
	p.server, p.kubelet = srv, kubelet
	return nil
}

func (p *plugin) stop() {
	if p.server != nil {
		p.server.stop()
		p.server = nil
	}
}

// reload takes the health of the devices from the file. A file that cannot be
// read leaves everything as it was.
func (p *plugin) reload() {
	set, err := gpu.Load(p.setFile)
	if err != nil {
		p.log.Warn("GPU set not read again", "error", err)
		return
	}
	if p.inventory.updateHealth(set) {
		p.log.Info("health changed")
	}
}
