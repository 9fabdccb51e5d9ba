package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/dramigrate/dramigrate/internal/helperpod"
	"github.com/dramigrate/dramigrate/internal/nodeprobe"
)

func unmountable(volumes ...string) error {
	return &helperpod.Error{Kind: helperpod.NotMounted, Detail: "hostPath type check failed", Unmounted: volumes}
}

// A pod that does not start is tried with less to look at; any other end is the answer.
// The first try has 2 minutes, those that follow have 2 between them. What hangs takes
// its time, what is told of takes none.
func TestLookLess(t *testing.T) {
	const (
		gpusLess    = "the GPUs"
		recordsLess = "what kubelet and driver have on record"
		claimsLess  = "the kubelet's record of claims"
		whole       = 2 * time.Minute
	)
	var (
		all      = helperpod.Reach{GPUs: true, DriverRoot: "/run/nvidia/driver", Checkpoints: true, ClaimState: true}
		class    = helperpod.Reach{GPUs: true, RuntimeClass: "nvidia", Checkpoints: true, ClaimState: true}
		records  = helperpod.Reach{Checkpoints: true, ClaimState: true}
		gpus     = helperpod.Reach{GPUs: true, DriverRoot: "/run/nvidia/driver"}
		noClaims = helperpod.Reach{GPUs: true, DriverRoot: "/run/nvidia/driver", Checkpoints: true}
		none     = helperpod.Reach{}

		driver  = unmountable("driver-root")
		plugins = unmountable("plugins", "plugins-registry")
		claims  = unmountable("claim-state")
		both    = unmountable("claim-state", "driver-root")
		socket  = unmountable("driver-root", "pod-resources")
		unnamed = unmountable()
		late    = unmountable("plugins")
		stuck   = error(&helperpod.Error{Kind: helperpod.NotStarted, Detail: "no runtime"})
		broken  = error(&helperpod.Error{Kind: helperpod.NoAnswer})
		seen    = &nodeprobe.NodeReport{Node: "gpu-7"}
	)
	type try struct {
		Reach helperpod.Reach
		Limit time.Duration
	}
	for _, tt := range []struct {
		name    string
		reach   helperpod.Reach
		answers []error
		tried   []try
		less    map[string]error
		// later is what a later probe of the node tries.
		later helperpod.Reach
	}{
		{"all is seen", all, []error{nil}, []try{{all, whole}}, nil, all},
		{"no runtime for the GPUs", class, []error{stuck, nil}, []try{{class, whole}, {records, whole}},
			map[string]error{gpusLess: stuck}, records},
		{"no driver root", all, []error{driver, nil}, []try{{all, whole}, {records, whole}},
			map[string]error{gpusLess: driver}, records},
		{"no folders of plugins", all, []error{plugins, nil}, []try{{all, whole}, {gpus, whole}},
			map[string]error{recordsLess: plugins}, gpus},
		{"no record of claims", all, []error{claims, nil}, []try{{all, whole}, {noClaims, whole}},
			map[string]error{claimsLess: claims}, noClaims},
		{"neither record of claims nor driver root", all, []error{both, nil}, []try{{all, whole}, {helperpod.Reach{Checkpoints: true}, whole}},
			map[string]error{claimsLess: both, gpusLess: both}, helperpod.Reach{Checkpoints: true}},
		{"no folders of plugins, then no driver root", all, []error{plugins, driver, nil}, []try{{all, whole}, {gpus, whole}, {none, whole}},
			map[string]error{recordsLess: plugins, gpusLess: driver}, none},
		{"no folder of the kubelet's socket", all, []error{socket}, []try{{all, whole}}, nil, all},
		{"unnamed", all, []error{unnamed, nil}, []try{{all, whole}, {gpus, whole}},
			map[string]error{recordsLess: unnamed}, gpus},
		{"unnamed, and no runtime", all, []error{unnamed, stuck}, []try{{all, whole}, {gpus, whole}},
			map[string]error{recordsLess: unnamed}, all},
		{"no driver root, and folders of which one hears late", all, []error{driver, late, nil}, []try{{all, whole}, {records, whole}, {none, whole - 30*time.Second}},
			map[string]error{gpusLess: driver, recordsLess: late}, none},
		{"nothing starts", all, []error{stuck, stuck}, []try{{all, whole}, {records, whole}},
			map[string]error{gpusLess: stuck}, all},
		{"no answer", all, []error{broken}, []try{{all, whole}}, nil, all},
		{"no answer without GPUs", all, []error{driver, broken}, []try{{all, whole}, {records, whole}},
			map[string]error{gpusLess: driver}, records},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
			var blind blindSpots
			var tried []try
			less := map[string]error{}
			l := lessening{clock: clock, limit: 2 * time.Minute,
				probe: func(r helperpod.Reach, limit time.Duration) (*nodeprobe.NodeReport, error) {
					tried = append(tried, try{r, limit})
					err := tt.answers[len(tried)-1]
					if err == nil {
						return seen, nil
					}
					switch {
					case errors.Is(err, stuck):
						clock.SetTime(clock.Now().Add(limit))
					case errors.Is(err, late):
						clock.SetTime(clock.Now().Add(30 * time.Second))
					}
					return nil, err
				},
				less: func(at helperpod.Look, err error) { less[string(at)] = err },
			}
			report, err := blind.look("gpu-7", tt.reach, l)
			if diff := cmp.Diff(tt.tried, tried); diff != "" {
				t.Errorf("tried (-want +got):\n%s", diff)
			}
			for at, why := range tt.less {
				if less[at] != why {
					t.Errorf("told of no look at %s: %v, want %v", at, less[at], why)
				}
			}
			if len(less) != len(tt.less) {
				t.Errorf("told of %v, want %v", less, tt.less)
			}
			if last := tt.answers[len(tried)-1]; last == nil && (err != nil || report != seen) || last != nil && !errors.Is(err, last) {
				t.Errorf("report %v, error %v; want those of the last try, %v", report, err, last)
			}

			var later []helperpod.Reach
			l.probe = func(r helperpod.Reach, _ time.Duration) (*nodeprobe.NodeReport, error) {
				later = append(later, r)
				return seen, nil
			}
			l.less = func(at helperpod.Look, _ error) { t.Errorf("told again of no look at %s", at) }
			for _, node := range []string{"gpu-7", "gpu-8"} {
				if _, err := blind.look(node, tt.reach, l); err != nil {
					t.Error(err)
				}
			}
			if diff := cmp.Diff([]helperpod.Reach{tt.later, tt.reach}, later); diff != "" {
				t.Errorf("later on gpu-7, and on gpu-8 (-want +got):\n%s", diff)
			}
		})
	}
}
