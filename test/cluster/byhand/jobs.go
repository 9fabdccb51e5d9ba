package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/test/cluster/e2e"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

const (
	// batch is the app label of the short jobs.
	batch = "batch"
	// keepJobs is how long a finished job stays.
	keepJobs = 10 * time.Second
	// clearPatience bounds the removal of the jobs that hang.
	clearPatience = 2 * time.Minute
)

// traffic submits short jobs of one GPU each, as the users of a cluster go on doing
// while somebody migrates a pool. It never retries a job.
type traffic struct {
	bench *e2e.Bench
	every time.Duration
	stop  context.CancelFunc
	done  chan struct{}
	count int
	err   error
}

// startTraffic submits the first job at once.
func startTraffic(ctx context.Context, bench *e2e.Bench, every time.Duration) *traffic {
	t := &traffic{bench: bench, every: every, done: make(chan struct{})}
	ctx, t.stop = context.WithCancel(ctx)
	go t.run(ctx)
	return t
}

func (t *traffic) run(ctx context.Context) {
	defer close(t.done)
	tick := time.NewTicker(t.every)
	defer tick.Stop()
	for {
		if err := t.submit(ctx); err != nil {
			if ctx.Err() == nil {
				t.err = err
			}
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (t *traffic) submit(ctx context.Context) error {
	t.count++
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{GenerateName: batch + "-"},
		Spec: batchv1.JobSpec{
			BackoffLimit:            new(int32(0)),
			TTLSecondsAfterFinished: new(int32(keepJobs.Seconds())),
			Template:                corev1.PodTemplateSpec{Spec: manifests.WorkloadPod("", batch, nil).Spec},
		},
	}
	job.Spec.Template.Labels = map[string]string{"app": batch}
	// It lists its GPU and ends.
	job.Spec.Template.Spec.Containers[0].Args = []string{"-L"}
	_, err := t.bench.Client().BatchV1().Jobs(metav1.NamespaceDefault).Create(ctx, job, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("job %d: %w", t.count, err)
	}
	return nil
}

// end submits no more and says whether something went wrong.
func (t *traffic) end() error {
	t.stop()
	<-t.done
	return t.err
}

// clear removes all jobs with their pods, those that hang as well.
func (t *traffic) clear(ctx context.Context) error {
	policy := metav1.DeletePropagationBackground
	jobs := t.bench.Client().BatchV1().Jobs(metav1.NamespaceDefault)
	why := e2e.Eventually(ctx, clearPatience, func() string {
		if err := jobs.DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &policy}, metav1.ListOptions{}); err != nil {
			return err.Error()
		}
		left, err := jobs.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		if n := len(left.Items); n > 0 {
			return fmt.Sprintf("%d jobs are left", n)
		}
		return ""
	})
	if why != "" {
		return errors.New(why)
	}
	return nil
}
