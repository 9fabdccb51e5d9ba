//go:build slow

package e2e

import (
	"testing"
	"time"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
)

// TestSlowKubeletGrace waits out the 5 minutes of a kubelet as released.
func TestSlowKubeletGrace(t *testing.T) {
	t.Parallel()
	f := newFixture(t, BenchOptions{Nodes: []cluster.NodeSpec{GPUNode("gpu-a-1", "gpu-a", 1)}, StatusInterval: 10 * time.Second})
	f.outliveGrace(5*time.Minute+10*time.Second, false, false)
}

// TestSlowKubeletGraceWithoutList shows that the call is what cures.
func TestSlowKubeletGraceWithoutList(t *testing.T) {
	t.Parallel()
	f := newFixture(t, BenchOptions{Binary: binaries.withoutList, Nodes: []cluster.NodeSpec{GPUNode("gpu-a-1", "gpu-a", 1)}})
	f.outliveGrace(5*time.Minute+10*time.Second, false, true)
}

// TestSlowFloor does the whole job on the oldest version that the tool serves.
func TestSlowFloor(t *testing.T) {
	t.Parallel()
	f := newFixture(t, BenchOptions{Version: "v1.36.3", Nodes: []cluster.NodeSpec{GPUNode("gpu-a-1", "gpu-a", 1)}})
	f.ok(f.RunWorkload(f.ctx, "train", "gpu-a", 1))
	before := f.look("gpu-a-1")
	f.prepare()
	f.run(0, apply("gpu-a")...)
	f.ok(f.WorkloadReady(f.ctx, "train", 1))
	if n := f.onDRA("train", "gpu-a-1"); n != 1 {
		t.Errorf("%d pods on DRA, want 1", n)
	}
	f.run(0, rollback("gpu-a")...)
	f.asBefore("gpu-a-1", before)
	f.run(0, "unprepare", "--yes")
	f.nothingLeft()
}
