package main

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/dramigrate/dramigrate/test/cluster/e2e"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

// driverFirstFigures are what a way back that removes the driver first does to pods
// with claims.
type driverFirstFigures struct {
	figures
	// terminating are the pods that were still there at its end, and longest is how
	// long the first of them had been.
	terminating int
	longest     time.Duration
	// left are those still there after the driver was brought back, and freed is how
	// long that took.
	left  int
	freed time.Duration
}

// freePatience bounds the wait for pods that hang to go once the driver is back.
const freePatience = 2 * time.Minute

func (r *rig) driverFirst(ctx context.Context, s *script, every time.Duration) (driverFirstFigures, error) {
	var f driverFirstFigures
	var err error
	f.figures, err = r.phase(ctx, every, 0, func(ctx context.Context) error {
		failure := s.run(ctx, "back-driver-first", "TIMEOUT="+shortTimeout)
		now := time.Now()
		stuck := r.terminating()
		f.terminating = len(stuck)
		for _, life := range stuck {
			f.longest = max(f.longest, now.Sub(life.leaving))
		}
		return failure
	})
	if err != nil || f.terminating == 0 {
		return f, err
	}
	begin := time.Now()
	objects := manifests.Driver()
	for _, o := range objects {
		if ds, ok := o.(*appsv1.DaemonSet); ok {
			ds.Spec.Template.Spec.NodeSelector = map[string]string{e2e.PoolLabel: poolName}
		}
	}
	if err := r.bench.Apply(ctx, objects...); err != nil {
		return f, err
	}
	_ = e2e.Eventually(ctx, freePatience, func() string {
		if f.left = len(r.terminating()); f.left > 0 {
			return "pods are still there"
		}
		return ""
	})
	f.freed = time.Since(begin)
	return f, ctx.Err()
}

// terminating are the workload's pods that are asked to end and are still there.
func (r *rig) terminating() []podLife {
	return r.observer.lives(func(l *podLife) bool {
		return l.app == workload && !l.leaving.IsZero() && l.gone.IsZero()
	})
}
