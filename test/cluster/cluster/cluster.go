package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/dramigrate/dramigrate/test/cluster/internal/build"
	"github.com/dramigrate/dramigrate/test/cluster/internal/loopback"
	"github.com/dramigrate/dramigrate/test/cluster/internal/node"
	"github.com/dramigrate/dramigrate/test/cluster/internal/plane"
	"github.com/dramigrate/dramigrate/test/cluster/internal/process"
)

// Cluster is a running cluster that this process started.
type Cluster struct {
	options Options
	dir     string
	isTemp  bool
	spawner *process.Spawner
	block   *loopback.Block
	plane   *plane.Plane
	nodes   []*node.Node
	sim     *process.Process
	config  *rest.Config
	client  kubernetes.Interface

	stopOnce sync.Once
	stopErr  error
}

// Start starts a cluster and returns when all its nodes are ready to run pods.
// The first start of a version builds it, which takes minutes. When ctx ends or
// something fails, nothing is left.
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	if missing := Missing(); len(missing) > 0 && len(o.Nodes) > 0 {
		return nil, &MissingError{What: missing}
	}
	cache := o.Cache
	if cache == "" {
		if cache, err = build.CacheDir(); err != nil {
			return nil, err
		}
	}
	builder := build.Builder{Cache: cache, Log: o.Log}
	bin, err := builder.Kubernetes(ctx, o.Version, o.Kubelet == KubeletQuick && len(o.Nodes) > 0)
	if err != nil {
		return nil, err
	}
	kubelets, err := o.buildKubelets(ctx, builder, bin.Kubelet)
	if err != nil {
		return nil, err
	}
	if o.Program == "" {
		if o.Program, err = builder.Program(ctx); err != nil {
			return nil, err
		}
	}
	c := &Cluster{options: o}
	if err := c.makeDir(); err != nil {
		return nil, err
	}
	if err := c.saveState(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("cluster %s: %w", c.dir, err), c.Stop())
		}
	}()
	return c, c.start(ctx, cache, bin, kubelets)
}

// MissingError says that this machine or user cannot run real kubelets.
type MissingError struct {
	What []string
}

func (e *MissingError) Error() string {
	return "real kubelets cannot run here:\n  - " + strings.Join(e.What, "\n  - ") +
		"\na control plane with simulated nodes can (up --simulated)"
}

// Missing says what this machine and user lack to run real kubelets; nothing if
// all is there.
func Missing() []string { return node.Missing() }

func (c *Cluster) makeDir() (err error) {
	if c.options.Dir == "" {
		c.isTemp = true
		c.dir, err = os.MkdirTemp("", "dramigrate-")
		return err
	}
	if c.dir, err = filepath.Abs(c.options.Dir); err != nil {
		return err
	}
	if err := clearFolder(c.dir); err != nil {
		return err
	}
	return os.MkdirAll(c.dir, 0o755)
}

func (c *Cluster) start(ctx context.Context, cache string, bin build.Binaries, kubelets map[string]string) (err error) {
	begin := time.Now()
	programs, err := installPrograms(c.dir, c.options, kubelets)
	if err != nil {
		return err
	}
	c.spawner = process.NewSpawner(!c.options.Detached)
	if c.block, err = loopback.Take(cache); err != nil {
		return err
	}
	if c.plane, err = plane.New(filepath.Join(c.dir, "plane"), bin, c.block, c.spawner); err != nil {
		return err
	}
	c.plane.Flags = c.options.ControlPlane
	if err := c.prepareNodes(programs); err != nil {
		return err
	}
	// Should this process be killed at any time, `down` finds what runs.
	c.plane.OnStart = c.saveState
	if err := c.plane.Start(ctx); err != nil {
		return err
	}
	c.logf("control plane %s ready at %s after %s", c.options.Version, c.plane.URL(), since(begin))
	if c.config, err = c.plane.RESTConfig(); err != nil {
		return err
	}
	if c.client, err = kubernetes.NewForConfig(c.config); err != nil {
		return err
	}
	if err := c.startNodes(programs); err != nil {
		return err
	}
	if err := c.waitReady(ctx); err != nil {
		return err
	}
	c.logf("%d nodes ready after %s", len(c.options.Nodes)+len(c.options.SimNodes), since(begin))
	return nil
}

// Stop ends everything at once and removes the state folder if it is temporary;
// another keeps its logs. Stopping a second time does nothing.
func (c *Cluster) Stop() error {
	c.stopOnce.Do(func() { c.stopErr = c.stop() })
	return c.stopErr
}

func (c *Cluster) stop() error {
	var refs []process.Ref
	for _, n := range c.nodes {
		if n.Process != nil {
			refs = append(refs, n.Process.Ref)
		}
	}
	if c.sim != nil {
		refs = append(refs, c.sim.Ref)
	}
	errs := []error{process.Kill(refs...)}
	if c.plane != nil {
		errs = append(errs, c.plane.Kill())
	}
	if c.block != nil {
		errs = append(errs, c.block.Release())
	}
	if c.spawner != nil {
		c.spawner.Close()
	}
	if c.isTemp {
		errs = append(errs, removeAll(c.dir))
	}
	return errors.Join(errs...)
}

// Dir is the state folder; logs are below it.
func (c *Cluster) Dir() string { return c.dir }

// Kubeconfig is the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.plane.AdminKubeconfig() }

// RESTConfig is the administrator's client configuration, a copy.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Client acts as the administrator.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

func (c *Cluster) logf(format string, args ...any) {
	_, _ = fmt.Fprintf(c.options.Log, format+"\n", args...)
}

func since(t time.Time) time.Duration { return time.Since(t).Round(10 * time.Millisecond) }
