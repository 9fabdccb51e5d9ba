package config

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/plan"
)

// over is a pool's settings, completed by the file's.
func (p PoolSettings) over(file PoolSettings) PoolSettings {
	return PoolSettings{
		Drain: Drain{
			Evict:              cmp.Or(p.Drain.Evict, file.Drain.Evict),
			Timeout:            cmp.Or(p.Drain.Timeout, file.Drain.Timeout),
			DeleteEmptyDirData: cmp.Or(p.Drain.DeleteEmptyDirData, file.Drain.DeleteEmptyDirData),
			EvictUnmanaged:     cmp.Or(p.Drain.EvictUnmanaged, file.Drain.EvictUnmanaged),
		},
		Soak:         cmp.Or(p.Soak, file.Soak),
		KubeletGrace: cmp.Or(p.KubeletGrace, file.KubeletGrace),
		Deadlines:    deadlinesOver(p.Deadlines, file.Deadlines),
		Skips:        slices.Concat(p.Skips, file.Skips),
	}
}

func (b Batches) over(file Batches) Batches {
	return Batches{MaxUnavailable: cmp.Or(b.MaxUnavailable, file.MaxUnavailable), First: cmp.Or(b.First, file.First)}
}

func deadlinesOver(p, file plan.Deadlines) plan.Deadlines {
	or := cmp.Or[metav1.Duration]
	return plan.Deadlines{
		ClaimsGone: or(p.ClaimsGone, file.ClaimsGone), PluginGone: or(p.PluginGone, file.PluginGone),
		DriverReady: or(p.DriverReady, file.DriverReady), SlicesComplete: or(p.SlicesComplete, file.SlicesComplete),
		Canary: or(p.Canary, file.Canary), SlicesGone: or(p.SlicesGone, file.SlicesGone),
		PluginReady: or(p.PluginReady, file.PluginReady),
	}
}
