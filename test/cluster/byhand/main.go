// Command byhand moves a pool from the device plugin to DRA and back with the kubectl
// script of docs/by-hand, on a real control plane and real kubelets, and measures what
// that does to the cluster. With --dramigrate it does the same with the tool.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
	"github.com/dramigrate/dramigrate/test/cluster/e2e"
	"github.com/dramigrate/dramigrate/test/cluster/internal/build"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// comparison is what is run and with what.
type comparison struct {
	script  string
	kubectl string
	binary  string
	kubelet string
	every   time.Duration
	out     io.Writer
	log     io.Writer
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c := comparison{out: stdout, log: stderr}
	flags := flag.NewFlagSet("byhand", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&c.binary, "dramigrate", "", "`path` of dramigrate, to do the same with it and print both")
	flags.StringVar(&c.kubelet, "kubelet", "both", "which part to run: stock (there and back), quick (what shows after the kubelet's waits) or both")
	flags.DurationVar(&c.every, "every", 2*time.Second, "how often a short job is submitted")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if !slices.Contains([]string{"both", "stock", "quick"}, c.kubelet) {
		return fmt.Errorf("--kubelet %q: must be stock, quick or both", c.kubelet)
	}
	module, err := build.ModuleDir(ctx)
	if err != nil {
		return err
	}
	c.script = filepath.Join(module, "..", "..", "docs", "by-hand", "by-hand.sh")
	cache, err := build.CacheDir()
	if err != nil {
		return err
	}
	kubernetes, err := build.Builder{Cache: cache, Log: stderr}.Kubernetes(ctx, cluster.DefaultVersion, false)
	if err != nil {
		return err
	}
	c.kubectl = kubernetes.Kubectl
	return c.run(ctx)
}

// result is what one mover did.
type result struct {
	mover         string
	typed         [2]int // forward, back
	forward, back figures
	grace         graceFigures
	driverFirst   *driverFirstFigures
}

func (c *comparison) run(ctx context.Context) error {
	var results []result
	for _, withTool := range []bool{false, true} {
		if withTool && c.binary == "" {
			continue
		}
		res := result{}
		if c.kubelet != "quick" {
			if err := c.stock(ctx, withTool, &res); err != nil {
				return err
			}
		}
		if c.kubelet != "stock" {
			if err := c.quick(ctx, withTool, &res); err != nil {
				return err
			}
		}
		results = append(results, res)
	}
	c.print(results)
	return nil
}

// stock moves the pool there and back with kubelets as released.
func (c *comparison) stock(ctx context.Context, withTool bool, res *result) error {
	return c.with(ctx, cluster.KubeletStock, full(), withTool, func(r *rig, m mover) (err error) {
		res.mover = m.name()
		c.heading("%s, forward", m.name())
		if res.forward, err = r.phase(ctx, c.every, afterwards, m.forward); err != nil {
			return err
		}
		res.typed[0] = m.typed()
		table(c.out, "forward", []string{m.name()}, rowsOf([]figures{res.forward}))
		c.heading("%s, back", m.name())
		if res.back, err = r.phase(ctx, c.every, afterwards, m.back); err != nil {
			return err
		}
		res.typed[1] = m.typed() - res.typed[0]
		table(c.out, "back", []string{m.name()}, rowsOf([]figures{res.back}))
		return nil
	})
}

// afterwards is how long the cluster is watched after a move; the kubelet removes the
// slices of a driver that left after 30 s.
const afterwards = 35 * time.Second

// shortTimeout is for drains and rollouts that are expected to hang.
const shortTimeout = "60s"

// quick moves the pool with kubelets whose waits are short, and looks at what shows
// only after them.
func (c *comparison) quick(ctx context.Context, withTool bool, res *result) error {
	return c.with(ctx, cluster.KubeletQuick, few(), withTool, func(r *rig, m mover) (err error) {
		res.mover = m.name()
		c.heading("%s, forward, with kubelets that forget the plugin after 20 s instead of 5 min", m.name())
		s, isScript := m.(*script)
		var failure error
		if isScript {
			failure = s.run(ctx, "forward", "TIMEOUT="+shortTimeout)
		} else {
			failure = m.forward(ctx)
		}
		c.heading("%s, new pods after that", m.name())
		if res.grace, err = r.afterGrace(ctx); err != nil {
			return errors.Join(failure, err)
		}
		res.grace.failure = failure
		table(c.out, "new pods", []string{m.name()}, graceRows([]graceFigures{res.grace}))
		if !isScript {
			return m.back(ctx)
		}
		c.heading("by hand, back, the driver first")
		f, err := r.driverFirst(ctx, s, c.every)
		res.driverFirst = &f
		return err
	})
}

// with runs do on a cluster of its own.
func (c *comparison) with(ctx context.Context, kubelet cluster.Kubelet, s size, withTool bool, do func(*rig, mover) error) (err error) {
	binary := ""
	if withTool {
		binary = c.binary
	}
	r, err := newRig(ctx, kubelet, s, binary, c.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	var m mover = &tool{
		Tool: e2e.Tool{Binary: c.binary, Kubeconfig: r.kubeconfig}, driverDir: r.bench.DriverDir, out: c.out, grace: graceOf(kubelet),
	}
	if !withTool {
		if m, err = newScript(c.script, c.kubectl, r.kubeconfig, r.bench, r.dir, c.out); err != nil {
			return err
		}
	}
	return do(r, m)
}

// graceOf is the kubelet's grace for a plugin that left.
func graceOf(kubelet cluster.Kubelet) time.Duration {
	if kubelet == cluster.KubeletQuick {
		return build.QuickEndpointGrace
	}
	return 5 * time.Minute
}

func (c *comparison) heading(format string, args ...any) {
	_, _ = fmt.Fprintf(c.out, "\n== %s\n", fmt.Sprintf(format, args...))
}

func (c *comparison) print(results []result) {
	var movers []string
	var forward, back []figures
	var grace []graceFigures
	typed := [2]row{{what: "commands typed"}, {what: "commands typed"}}
	for _, r := range results {
		movers = append(movers, r.mover)
		forward, back, grace = append(forward, r.forward), append(back, r.back), append(grace, r.grace)
		for i := range typed {
			typed[i].cells = append(typed[i].cells, fmt.Sprint(r.typed[i]))
		}
	}
	if c.kubelet != "quick" {
		table(c.out, "Forward (kubelets as released)", movers, slices.Concat([]row{typed[0]}, rowsOf(forward)))
		table(c.out, "Back (kubelets as released)", movers, slices.Concat([]row{typed[1]}, rowsOf(back)))
	}
	if c.kubelet == "stock" {
		return
	}
	table(c.out, "New pods on the moved pool after the kubelets' grace (quick kubelets)", movers, graceRows(grace))
	for _, r := range results {
		if r.driverFirst != nil {
			table(c.out, "Back with the driver removed first (quick kubelets)", []string{r.mover}, driverFirstRows(*r.driverFirst))
		}
	}
}
