package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/engine"
	"github.com/dramigrate/dramigrate/internal/helperpod"
	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/vendor"
)

// canaryConfig is what the canaries of one pool need.
type canaryConfig struct {
	namespace, pool, resource, driver string
	image, pullSecret, holder         string
	wait                              time.Duration
}

// canaryFunc runs a canary on a node and says which devices it was given, and what of it
// could not be looked at; empty if all was.
type canaryFunc func(ctx context.Context, node string) (devices, unseen string, err error)

// newCanary takes the pool's lock and returns a function that runs canaries under
// it, and one that gives the lock back. Pods are made through a client that sends no
// change once the lock is lost.
func (a *app) newCanary(ctx context.Context, c canaryConfig) (canaryFunc, func(), error) {
	config, err := a.Config()
	if err != nil {
		return nil, nil, err
	}
	bare, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("kubeconfig: %w", err)
	}
	fence := engine.NewFence()
	config.Wrap(fence.Wrap)
	fenced, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("kubeconfig: %w", err)
	}
	journal, _, err := (&engine.Journals{Client: bare, Namespace: c.namespace, Clock: a.Clock()}).Load(ctx, c.pool)
	if err != nil {
		return nil, nil, err
	}
	lock, err := engine.Acquire(ctx, engine.LockOptions{
		Client: bare, Namespace: c.namespace, Name: cluster.RecordName(c.pool), Holder: c.holder,
		Wait: c.wait, Info: map[string]string{"operation": "verify", "version": a.build.Version},
		MinEpoch: engine.MaxEpoch(journal), Clock: a.Clock(),
	})
	if err != nil {
		return nil, nil, err
	}
	fence.Hold(lock)
	release := func() {
		done, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		fence.Drop(lock)
		if err := lock.Release(done); err != nil {
			fmt.Fprintf(a.Err, "Warning: %v; it expires by itself\n", err)
		}
	}
	runner := helperpod.New(fenced, a.Clock(), helperpod.Config{
		Namespace: c.namespace, Run: string(uuid.NewUUID())[:8], Image: c.image, PullSecret: c.pullSecret,
	})
	v, _ := vendor.OfDriver(c.driver)
	run := func(_ context.Context, node string) (string, string, error) {
		// The lock's context ends with the verb's, and when the lock is lost.
		result, err := runner.Canary(lock.Context(), node, helperpod.CanaryOptions{
			Wait:     helperpod.Wait{Timeout: plan.CanaryDeadline, Report: a.waits("node/" + node)},
			Resource: c.resource, Driver: c.driver, Image: c.image, Look: v.Look,
		})
		if err != nil {
			return "", "", err
		}
		if !result.Looked {
			return "", result.Unseen(), nil
		}
		var names []string
		for _, d := range result.Devices {
			names = append(names, strings.TrimSpace(d.Name+" "+d.Key))
		}
		return strings.Join(names, ", "), "", nil
	}
	return run, release, nil
}

// waits tells on stderr what something waits for.
func (a *app) waits(object string) func(reason string) {
	return func(reason string) { fmt.Fprintf(a.Err, "%s: waits for %s\n", object, reason) }
}
