package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
	"github.com/dramigrate/dramigrate/test/cluster/internal/faultproxy"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

// binaries are the program under test and the build of it whose node helper makes no
// PodResources List call.
var binaries struct{ tool, withoutList string }

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		if missing := cluster.Missing(); len(missing) > 0 {
			fmt.Fprintf(os.Stderr, "end-to-end tests need real kubelets, which cannot run here: %s\n", strings.Join(missing, "; "))
			if os.Getenv("CI") != "" {
				return 1
			}
			return 0
		}
		dir, err := os.MkdirTemp("", "dramigrate-e2e-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		if binaries.tool, err = BuildTool(context.Background(), dir); err == nil {
			binaries.withoutList, err = BuildTool(context.Background(), dir, "no_podresources_list")
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// fixture is a bench in a test.
type fixture struct {
	*testing.T
	*Bench
	ctx context.Context
}

// quick are flags that keep a test short and change nothing that it proves.
var quick = slices.Concat([]string{"--yes", "--soak", "0s", "--helper-image", HelperImage}, locked)

// locked are the flags of the lock: a run on a busy machine renews it in time, and a
// test stays within its own time when it meets the lock of a run that died.
var locked = []string{"--lock-ttl", "20s", "--lock-wait", "90s"}

// mortal are those of a run that is killed: nobody waits long for its lock.
var mortal = []string{"--lock-ttl", "6s"}

func newFixture(t *testing.T, o BenchOptions) *fixture {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	if o.Binary == "" {
		o.Binary = binaries.tool
	}
	if o.Plugin.DaemonSet == nil && len(o.Plugin.Pods) == 0 {
		o.Plugin = manifests.PluginStatic()
	}
	o.Dir, o.Log = t.TempDir(), t.Output()
	b, err := NewBench(ctx, o)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := b.Stop(); err != nil {
			t.Errorf("stop the cluster: %v", err)
		}
	})
	return &fixture{T: t, Bench: b, ctx: ctx}
}

// run runs a verb and wants an exit code of it.
func (f *fixture) run(want int, args ...string) Result {
	f.Helper()
	return f.runAs(f.Tool, want, args...)
}

func (f *fixture) runAs(tool Tool, want int, args ...string) Result {
	f.Helper()
	began := time.Now()
	r := tool.Run(f.ctx, args...)
	f.Logf("dramigrate %s: exit code %d in %s", strings.Join(args, " "), r.Code, time.Since(began).Round(100*time.Millisecond))
	if r.Code != want {
		f.Fatalf("exit code %d, want %d\n%s", r.Code, want, r)
	}
	return r
}

// prepare is the one-off preparation, without a restart of the plugin.
func (f *fixture) prepare() {
	f.Helper()
	f.run(0, slices.Concat([]string{"prepare", "--yes", "--plugin-rollout", "on-delete", "--driver-manifests", f.DriverDir}, locked)...)
}

// apply and rollback are the arguments for a pool of the bench.
func apply(pool string, more ...string) []string {
	return slices.Concat([]string{"apply", pool, "--kubelet-grace", "1s"}, quick, more)
}

func into(old, fresh string) []string {
	return slices.Concat([]string{"apply", old, "--into", fresh}, quick)
}

func rollback(pool string, more ...string) []string {
	args := slices.Concat([]string{"rollback", pool}, quick, more)
	i := slices.Index(args, "--soak") // there is nothing to soak
	return slices.Delete(args, i, i+2)
}

// ok fails the test at an error or a reason.
func (f *fixture) ok(why any) {
	f.Helper()
	switch why := why.(type) {
	case nil:
	case error:
		f.Fatal(why)
	case string:
		if why != "" {
			f.Fatal(why)
		}
	}
}

// nodeIs is what a node looks like to somebody who wants to put it back.
type nodeIs struct {
	print      string
	advertised []string
}

func (f *fixture) look(node string) nodeIs {
	f.Helper()
	var is nodeIs
	var err error
	is.print, err = f.Fingerprint(f.ctx, node)
	f.ok(err)
	is.advertised, err = f.Advertised(f.ctx, node)
	f.ok(err)
	return is
}

// asBefore wants a node to be exactly as it was: labels, taints, annotations, cordon,
// advertised GPUs, and nothing of DRA on it.
func (f *fixture) asBefore(node string, before nodeIs) {
	f.Helper()
	f.ok(Eventually(f.ctx, patience, func() string {
		now := f.look(node)
		if now.print != before.print {
			return fmt.Sprintf("node/%s is\n%s\nwas\n%s", node, now.print, before.print)
		}
		if !slices.Equal(now.advertised, before.advertised) {
			return fmt.Sprintf("node/%s advertises %q, advertised %q", node, now.advertised, before.advertised)
		}
		left, err := f.Leftovers(f.ctx, node)
		f.ok(err)
		if len(left) > 0 {
			return fmt.Sprintf("left on node/%s: %q", node, left)
		}
		return ""
	}))
}

// onDRA wants the workload's pods on the pool's nodes to be served by DRA with the
// devices of their claims, and returns how many they are.
func (f *fixture) onDRA(workload string, nodes ...string) int {
	f.Helper()
	count := 0
	f.ok(Eventually(f.ctx, patience, func() string {
		pods, err := f.Workload(f.ctx, "default", workload)
		f.ok(err)
		count = 0
		for _, p := range pods {
			if !slices.Contains(nodes, p.Node) {
				continue
			}
			if p.Claim == "" {
				return fmt.Sprintf("pod %s on %s is served by the plugin", p.Pod, p.Node)
			}
			if !slices.Equal(p.Holds, p.Sees) || len(p.Sees) != 1 {
				return fmt.Sprintf("pod %s on %s holds %q and sees %q", p.Pod, p.Node, p.Holds, p.Sees)
			}
			count++
		}
		return ""
	}))
	return count
}

// proxied is the tool with a fault proxy in between.
func (f *fixture) proxied(hook faultproxy.Hook) (Tool, *faultproxy.Proxy) {
	f.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", f.Kubeconfig())
	f.ok(err)
	p, err := faultproxy.Start(config, hook)
	f.ok(err)
	f.Cleanup(func() { _ = p.Close() })
	tool := f.Tool
	tool.Kubeconfig, err = p.Kubeconfig(f.TempDir())
	f.ok(err)
	return tool, p
}
