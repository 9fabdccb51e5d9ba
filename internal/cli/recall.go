package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/engine"
)

// podWay is how helper pods are made: by which image, and how they get at GPUs.
type podWay struct {
	image, pullSecret        string
	runtimeClass, driverRoot string
}

// reachGiven says that a person has said how helper pods get at GPUs, be it that they do
// not. RuntimeClass and driver root are alternatives, so that one of them stands for both.
func reachGiven(flags *pflag.FlagSet) bool {
	return flags.Changed("runtime-class") || flags.Changed("driver-root")
}

// recall puts what the pool's last run with helper pods had where nothing is said now: a
// person who goes on, or rolls back in a hurry, needs no more than the pool's name.
func (w *podWay) recall(journal *cluster.Journal, reachGiven bool) {
	last := lastWithPods(journal)
	if last == nil {
		return
	}
	if w.image == "" {
		w.image = last.HelperImage
		if w.pullSecret == "" {
			w.pullSecret = last.PullSecret
		}
	}
	if !reachGiven && w.runtimeClass == "" && w.driverRoot == "" {
		w.runtimeClass, w.driverRoot = last.RuntimeClass, last.DriverRoot
	}
}

// lastWithPods is the pool's last run that had an image for helper pods and went to its
// end, or if there is none the last that had one: the image of a run that has stopped may
// be what it stopped at.
func lastWithPods(journal *cluster.Journal) *cluster.RunRecord {
	if journal == nil {
		return nil
	}
	var last *cluster.RunRecord
	for i := range slices.Backward(journal.Runs) {
		switch r := &journal.Runs[i]; {
		case r.HelperImage == "":
		case r.Outcome == cluster.RunDone:
			return r
		case last == nil:
			last = r
		}
	}
	return last
}

// recall is for verbs that make pods and run no plan. pool is "" for nodes that were
// named without one, whose runs are not known. The right to read the journal is needed
// only where there is no image otherwise.
func (f *probeFlags) recall(ctx context.Context, a *app, pool string) error {
	if pool != "" && !(f.image != "" && (reachGiven(f.set) || f.runtimeClass != "" || f.driverRoot != "")) {
		client, err := a.Client()
		if err != nil {
			return err
		}
		journal, _, err := (&engine.Journals{Client: client, Namespace: a.namespace, Clock: a.Clock()}).Load(ctx, pool)
		switch {
		case err == nil:
			f.podWay.recall(journal, reachGiven(f.set))
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case f.image == "":
			return f.noImage("the pool's journal, which may name one, could not be read: " + err.Error())
		default:
			fmt.Fprintf(a.Err, "Warning: how the pool's last run got at the GPUs is not known: %v; give --runtime-class or --driver-root\n", err)
		}
	}
	if f.image == "" {
		return f.noImage("no earlier run of the pool has named one")
	}
	return nil
}

func (f *probeFlags) noImage(why string) error {
	return usageError("give the image of the helper pods by --helper-image or the variable %s; %s", helperImageVariable, why)
}
