package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
	"github.com/dramigrate/dramigrate/test/cluster/e2e"
	"github.com/dramigrate/dramigrate/test/cluster/internal/faultproxy"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

const (
	poolName    = "gpu-a"
	workload    = "inference"
	gpusPerNode = 4
	// stockStatus is how often a kubelet reports its node's status by default.
	stockStatus = 10 * time.Second
)

// size is how many pods the workload has and how many its budget asks for.
type size struct{ replicas, minAvailable int }

// full leaves just room for one drained node; few leaves room for more pods.
func full() size { return size{6, 5} }
func few() size  { return size{3, 2} }

// rig is a cluster with the workload on it, under observation.
type rig struct {
	size
	bench    *e2e.Bench
	observer *observer
	proxy    *faultproxy.Proxy
	// kubeconfig goes through the proxy, which counts.
	kubeconfig string
	dir        string
	nodes      []string
	pool       []string
	cancel     context.CancelFunc
}

// newRig starts a cluster with stock or quick kubelets. binary is the tool's program,
// if it takes part.
func newRig(ctx context.Context, kubelet cluster.Kubelet, s size, binary string, log io.Writer) (_ *rig, err error) {
	dir, err := os.MkdirTemp("", "by-hand-")
	if err != nil {
		return nil, err
	}
	r := &rig{size: s, dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.stop())
		}
	}()
	specs := []cluster.NodeSpec{
		e2e.GPUNode("gpu-a-1", poolName, gpusPerNode),
		e2e.GPUNode("gpu-a-2", poolName, gpusPerNode),
		e2e.GPUNode("gpu-b-1", "gpu-b", gpusPerNode),
	}
	for _, n := range specs {
		r.nodes = append(r.nodes, n.Name)
		if n.Labels[e2e.PoolLabel] == poolName {
			r.pool = append(r.pool, n.Name)
		}
	}
	r.bench, err = e2e.NewBench(ctx, e2e.BenchOptions{
		Binary: binary, Plugin: manifests.PluginStatic(), Kubelet: kubelet, Nodes: specs,
		StatusInterval: stockStatus, Dir: dir, Log: log,
	})
	if err != nil {
		return nil, err
	}
	if r.proxy, err = faultproxy.Start(r.bench.RESTConfig(), func(faultproxy.Mutation) error { return nil }); err != nil {
		return nil, err
	}
	if r.kubeconfig, err = r.proxy.Kubeconfig(dir); err != nil {
		return nil, err
	}
	watching, cancel := context.WithCancel(ctx)
	r.cancel = cancel
	r.observer = newObserver(r.bench, r.nodes)
	if err := r.observer.start(watching); err != nil {
		return nil, err
	}
	// The workload goes before the short jobs when there is a queue for GPUs.
	priority := &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: workload}, Value: 1000, PreemptionPolicy: new(corev1.PreemptNever),
	}
	if err := r.bench.Apply(ctx, priority, manifests.Budget("default", workload, s.minAvailable)); err != nil {
		return nil, err
	}
	deployment := manifests.Workload("default", workload, int32(s.replicas), nil)
	deployment.Spec.Template.Spec.PriorityClassName = priority.Name
	// Like most services the workload ends soon when it is asked to.
	deployment.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(5))
	if err := r.bench.Apply(ctx, deployment); err != nil {
		return nil, err
	}
	if why := r.bench.WorkloadReady(ctx, workload, s.replicas); why != "" {
		return nil, errors.New(why)
	}
	return r, nil
}

func (r *rig) stop() error {
	if r.cancel != nil {
		r.cancel()
	}
	var errs []error
	if r.proxy != nil {
		errs = append(errs, r.proxy.Close())
	}
	if r.bench != nil {
		errs = append(errs, r.bench.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(r.dir))...)
}

// phase is one move of the pool, with short jobs going on, and what it did. A move
// that fails is one of the figures, not an error.
func (r *rig) phase(ctx context.Context, every, after time.Duration, move func(context.Context) error) (figures, error) {
	mutations := r.proxy.Count()
	jobs := startTraffic(ctx, r.bench, every)
	s := span{from: time.Now()}
	failure := move(ctx)
	took := time.Since(s.from)
	mutations = r.proxy.Count() - mutations
	// What a move leaves behind shows after it.
	select {
	case <-ctx.Done():
		return figures{}, context.Cause(ctx)
	case <-time.After(after):
	}
	s.to = time.Now()
	if err := jobs.end(); err != nil {
		return figures{}, errors.Join(failure, err)
	}
	// The last jobs may still end; what does not end by then hangs.
	_ = e2e.Eventually(ctx, lastJobs, func() string {
		if n := r.observer.jobs(s).hanging(); n > 0 {
			return fmt.Sprintf("%d jobs have not ended", n)
		}
		return ""
	})
	f := r.observer.measure(s, r.pool, r.size)
	f.failure, f.took, f.mutations = failure, took, mutations
	return f, jobs.clear(ctx)
}

// lastJobs is how long the last jobs of a phase may take.
const lastJobs = 30 * time.Second
