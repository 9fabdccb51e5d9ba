package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dramigrate/dramigrate/internal/helperpod"
	"github.com/dramigrate/dramigrate/internal/nodeprobe"
)

// A pod that does not start is tried with less to look at; any other end is the answer.
func TestLookLess(t *testing.T) {
	var (
		all     = helperpod.Reach{GPUs: true, RuntimeClass: "nvidia", Checkpoints: true, ClaimState: true}
		records = helperpod.Reach{Checkpoints: true, ClaimState: true}
		gpus    = helperpod.Reach{GPUs: true, RuntimeClass: "nvidia"}
		absent  = &helperpod.Error{Kind: helperpod.NotMounted, Detail: "hostPath type check failed"}
		stuck   = &helperpod.Error{Kind: helperpod.NotStarted, Detail: "no runtime"}
		broken  = &helperpod.Error{Kind: helperpod.NoAnswer}
		seen    = &nodeprobe.NodeReport{Node: "gpu-7"}
	)
	for _, tt := range []struct {
		name    string
		answers []error
		tried   []helperpod.Reach
		less    string
	}{
		{"all is seen", []error{nil}, []helperpod.Reach{all}, ""},
		{"no runtime for the GPUs", []error{stuck, nil}, []helperpod.Reach{all, records}, "the GPUs"},
		{"a folder is not there", []error{absent, nil}, []helperpod.Reach{all, gpus}, "what kubelet and driver have on record"},
		{"neither the folder nor the runtime", []error{absent, stuck, nil}, []helperpod.Reach{all, gpus, {}}, "what kubelet and driver have on record, the GPUs"},
		{"nor the folder of the driver's libraries", []error{absent, absent, nil}, []helperpod.Reach{all, gpus, {}}, "what kubelet and driver have on record, the GPUs"},
		{"no folder for the kubelet either", []error{absent, absent, absent}, []helperpod.Reach{all, gpus, {}}, "what kubelet and driver have on record, the GPUs"},
		{"nothing starts", []error{stuck, stuck, stuck}, []helperpod.Reach{all, records, {}}, "the GPUs, what kubelet and driver have on record"},
		{"no answer", []error{broken}, []helperpod.Reach{all}, ""},
		{"no answer without GPUs", []error{stuck, broken}, []helperpod.Reach{all, records}, "the GPUs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var tried []helperpod.Reach
			var less []string
			report, err := lookLess(all, func(r helperpod.Reach) (*nodeprobe.NodeReport, error) {
				tried = append(tried, r)
				if err := tt.answers[len(tried)-1]; err != nil {
					return nil, err
				}
				return seen, nil
			}, func(at string, err error) {
				if !errors.Is(err, stuck) && !errors.Is(err, absent) {
					t.Errorf("told of %v, want what kept the pod from starting", err)
				}
				less = append(less, at)
			})
			if diff := cmp.Diff(tt.tried, tried); diff != "" {
				t.Errorf("tried (-want +got):\n%s", diff)
			}
			if got := strings.Join(less, ", "); got != tt.less {
				t.Errorf("told that it does not see %q, want %q", got, tt.less)
			}
			if last := tt.answers[len(tt.answers)-1]; last == nil && (err != nil || report != seen) || last != nil && !errors.Is(err, last) {
				t.Errorf("report %v, error %v; want those of the last try, %v", report, err, last)
			}
		})
	}
}
