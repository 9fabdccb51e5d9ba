package e2e

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
	"github.com/dramigrate/dramigrate/test/cluster/internal/faultproxy"
)

var errKilled = errors.New("the program was killed")

// Only a part of the requests can be tried, to look at one again.
var (
	killFrom = flag.Int("kill-from", 1, "first mutating request that TestKilledAtEachRequest tries")
	killTo   = flag.Int("kill-to", 1000, "last mutating request that TestKilledAtEachRequest tries")
)

// kill runs the tool and kills it with SIGKILL at its n-th mutating request, before
// the server sees it or after the server has answered. It returns how many mutating
// requests there were and how the tool ended.
func (f *fixture) kill(n int, moment faultproxy.Moment, args ...string) (int, Result) {
	f.Helper()
	var p *Process
	started := make(chan struct{})
	tool, proxy := f.proxied(func(m faultproxy.Mutation) error {
		if m.N != n || m.Moment != moment {
			return nil
		}
		<-started
		f.Logf("%s: killed %s", args[:2], m)
		if err := p.Signal(syscall.SIGKILL); err != nil {
			return err
		}
		return errKilled
	})
	defer func() { _ = proxy.Close() }()
	var err error
	p, err = tool.Start(f.ctx, slices.Concat(args, mortal)...)
	f.ok(err)
	close(started)
	r := p.Wait()
	return proxy.Count(), r
}

// killPools are pools of one node each, so that several kills can be tried at a time.
var killPools = []string{"gpu-a", "gpu-b", "gpu-c"}

// TestKilledAtEachRequest kills apply and rollback with SIGKILL before and after each
// of their mutating requests and runs the same command again: it must end as if
// nothing had happened. It also rolls back from each half-done state.
func TestKilledAtEachRequest(t *testing.T) {
	t.Parallel()
	var nodes []cluster.NodeSpec
	for _, pool := range killPools {
		nodes = append(nodes, GPUNode(pool+"-1", pool, 1))
	}
	f := newFixture(t, BenchOptions{Kubelet: cluster.KubeletQuick, Nodes: nodes})
	before := map[string]nodeIs{}
	for _, pool := range killPools {
		f.ok(f.RunWorkload(f.ctx, "train-"+pool, pool, 1))
		before[pool] = f.look(pool + "-1")
	}
	f.prepare()

	// The first run of all makes the DeviceClass, which the others adopt. It also
	// tells how many requests there are.
	steps, r := f.kill(-1, faultproxy.Before, apply(killPools[0])...)
	if r.Code != 0 {
		t.Fatal(r)
	}
	f.onDRA("train-"+killPools[0], killPools[0]+"-1")
	back, r := f.kill(-1, faultproxy.Before, rollback(killPools[0])...)
	if r.Code != 0 {
		t.Fatal(r)
	}
	f.asBefore(killPools[0]+"-1", before[killPools[0]])
	t.Logf("apply sends %d mutating requests, rollback %d", steps, back)
	if steps < 15 || back < 10 {
		t.Fatalf("apply sends %d mutating requests, rollback %d: fewer than their steps need; does the proxy see them?", steps, back)
	}

	type point struct {
		n      int
		moment faultproxy.Moment
		turn   bool // turn back from the half-done state, rather than go on
	}
	var points []point
	for n := max(1, *killFrom); n <= min(max(steps, back), *killTo); n++ {
		points = append(points, point{n, faultproxy.Before, false}, point{n, faultproxy.After, false})
		if n <= steps {
			points = append(points, point{n, faultproxy.After, true})
		}
	}
	work := make(chan point, len(points))
	for _, p := range points {
		work <- p
	}
	close(work)
	t.Run("points", func(t *testing.T) {
		for _, pool := range killPools {
			t.Run(pool, func(t *testing.T) {
				t.Parallel()
				f := &fixture{T: t, Bench: f.Bench, ctx: f.ctx}
				for p := range work {
					what := fmt.Sprintf("%s request %d", p.moment, p.n)
					if p.n <= steps {
						f.kill(p.n, p.moment, apply(pool)...)
						if p.turn {
							f.run(0, rollback(pool)...)
							f.restored(pool, before[pool], what+", then rollback")
							continue
						}
						f.run(0, apply(pool)...)
					} else {
						f.run(0, apply(pool)...)
					}
					f.ok(f.WorkloadReady(f.ctx, "train-"+pool, 1))
					if n := f.onDRA("train-"+pool, pool+"-1"); n != 1 {
						t.Fatalf("apply killed %s and resumed: %d pods on DRA, want 1", what, n)
					}
					f.kill(p.n, p.moment, rollback(pool)...)
					f.run(0, rollback(pool)...)
					f.restored(pool, before[pool], what)
				}
			})
		}
	})
}

func (f *fixture) restored(pool string, before nodeIs, what string) {
	f.Helper()
	f.asBefore(pool+"-1", before)
	if why := f.WorkloadReady(f.ctx, "train-"+pool, 1); why != "" {
		f.Fatalf("killed %s: %s", what, why)
	}
}

// TestKilledAtDeviceClass kills the very first apply of a cluster before and after it
// makes the DeviceClass: there must be exactly one in the end, recorded as the
// tool's own, so that unprepare removes it.
func TestKilledAtDeviceClass(t *testing.T) {
	t.Parallel()
	f := newFixture(t, BenchOptions{Kubelet: cluster.KubeletQuick, Nodes: []cluster.NodeSpec{GPUNode("gpu-a-1", "gpu-a", 1)}})
	before := f.look("gpu-a-1")
	for _, moment := range []faultproxy.Moment{faultproxy.Before, faultproxy.After} {
		f.prepare()
		var once sync.Once
		var p *Process
		started := make(chan struct{})
		tool, _ := f.proxied(func(m faultproxy.Mutation) error {
			if m.Moment != moment || m.Path != "/apis/resource.k8s.io/v1/deviceclasses" {
				return nil
			}
			<-started
			killed := false
			once.Do(func() { killed = p.Signal(syscall.SIGKILL) == nil })
			if killed {
				return errKilled
			}
			return nil
		})
		var err error
		p, err = tool.Start(f.ctx, apply("gpu-a", mortal...)...)
		f.ok(err)
		close(started)
		if r := p.Wait(); r.Signal != syscall.SIGKILL {
			t.Fatalf("not killed %s the class is made:\n%s", moment, r)
		}
		f.run(0, apply("gpu-a")...)
		classes, err := f.Client().ResourceV1().DeviceClasses().List(f.ctx, metav1.ListOptions{})
		f.ok(err)
		var names []string
		for _, c := range classes.Items {
			names = append(names, c.Name)
		}
		if !slices.Equal(names, []string{"dramigrate-nvidia-gpu"}) {
			t.Fatalf("killed %s the class was made: there are classes %q, want one", moment, names)
		}
		f.run(0, rollback("gpu-a")...)
		f.run(0, slices.Concat([]string{"unprepare", "--yes"}, locked)...)
		f.nothingLeft()
		f.asBefore("gpu-a-1", before)
	}
}
