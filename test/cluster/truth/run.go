package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

const (
	// atOnce is how many claims of the shared place are proven side by side.
	atOnce = 4
	// claimLimit bounds the proof of one claim.
	claimLimit = 10 * time.Minute
)

// prover proves claims on a running cluster and prints each as soon as it is decided.
type prover struct {
	bench *bench
	out   io.Writer
	// isVerbose prints what was seen as well.
	isVerbose bool

	mu   sync.Mutex
	held int
}

// run proves all: first those that need the name unmapped, then, with the DeviceClass,
// the others.
func (p *prover) run(ctx context.Context, all []claim) error {
	var unmapped, mapped []claim
	for _, c := range all {
		if c.isUnmapped {
			unmapped = append(unmapped, c)
		} else {
			mapped = append(mapped, c)
		}
	}
	p.stage(ctx, unmapped)
	if err := p.bench.Apply(ctx, manifests.DeviceClass()); err != nil {
		return err
	}
	p.stage(ctx, mapped)
	return ctx.Err()
}

// stage proves claims: places side by side, and the claims of a place that is not
// shared one after the other.
func (p *prover) stage(ctx context.Context, all []claim) {
	queues := map[place][]claim{}
	for _, c := range all {
		queues[c.place] = append(queues[c.place], c)
	}
	var places sync.WaitGroup
	for at, queue := range queues {
		workers := 1
		if at.isShared() {
			workers = atOnce
		}
		next := make(chan claim)
		for range workers {
			places.Go(func() {
				for c := range next {
					p.prove(ctx, c)
				}
			})
		}
		places.Go(func() {
			defer close(next)
			for _, c := range queue {
				next <- c
			}
		})
	}
	places.Wait()
}

func (p *prover) prove(ctx context.Context, c claim) {
	if ctx.Err() != nil {
		return
	}
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, claimLimit, fmt.Errorf("not decided within %s", claimLimit))
	defer cancel()
	s, err := newScene(ctx, p.bench, c)
	if err == nil {
		err = c.prove(ctx, s)
	}
	if err != nil && errors.Is(err, ctx.Err()) {
		err = errors.Join(context.Cause(ctx), err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	verdict, detail := "ok", ""
	if err == nil {
		p.held++
	} else {
		verdict, detail = "no", ": "+strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	p.printf("%s %-5s  %s  %.1fs%s\n", verdict, c.id, c.says, time.Since(began).Seconds(), detail)
	if p.isVerbose && s != nil {
		for _, line := range s.observed() {
			p.printf("           %s\n", line)
		}
	}
}

func (p *prover) printf(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format, args...) }
