package cri

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// clockTick is USER_HZ: the unit of CPU times in /proc, 1/100 s on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// stats measures a container's main process and its ended children: without cgroups there is no
// account of the whole container. A container that does not run has no CPU and memory figures.
func (s *server) stats(c *container) *runtimeapi.ContainerStats {
	now := time.Now().UnixNano()
	out := &runtimeapi.ContainerStats{
		Attributes: &runtimeapi.ContainerAttributes{
			Id: c.id, Metadata: c.config.GetMetadata(),
			Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(),
		},
		WritableLayer: &runtimeapi.FilesystemUsage{
			Timestamp:  now,
			FsId:       &runtimeapi.FilesystemIdentifier{Mountpoint: s.cfg.StateDir},
			UsedBytes:  &runtimeapi.UInt64Value{}, // the root is in memory
			InodesUsed: &runtimeapi.UInt64Value{},
		},
	}
	p := c.running()
	if p == nil {
		return out
	}
	cpu, rss, err := processUsage(p.cmd.Process.Pid)
	if err != nil {
		return out // it ended this moment
	}
	out.Cpu = &runtimeapi.CpuUsage{Timestamp: now, UsageCoreNanoSeconds: &runtimeapi.UInt64Value{Value: uint64(cpu)}}
	out.Memory = &runtimeapi.MemoryUsage{
		Timestamp:       now,
		WorkingSetBytes: &runtimeapi.UInt64Value{Value: rss},
		UsageBytes:      &runtimeapi.UInt64Value{Value: rss},
		RssBytes:        &runtimeapi.UInt64Value{Value: rss},
	}
	return out
}

// processUsage reads CPU time and resident bytes from /proc/<pid>/stat (proc_pid_stat(5)).
func processUsage(pid int) (cpu time.Duration, rss uint64, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	fields := statFields(raw)
	const utime, cstime, resident = 14 - 3, 17 - 3, 24 - 3
	if len(fields) <= resident {
		return 0, 0, fmt.Errorf("process %d: short stat line", pid)
	}
	for _, f := range fields[utime : cstime+1] {
		ticks, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, 0, err
		}
		cpu += time.Duration(ticks) * clockTick
	}
	pages, err := strconv.ParseUint(fields[resident], 10, 64)
	return cpu, pages * uint64(os.Getpagesize()), err
}

// statFields are the fields of a stat line from the third on. The second, the command's name in
// parentheses, may contain anything.
func statFields(raw []byte) []string {
	return strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
}

func (s *server) ContainerStats(_ context.Context, r *runtimeapi.ContainerStatsRequest) (*runtimeapi.ContainerStatsResponse, error) {
	c, err := s.store.container(r.GetContainerId())
	if err != nil {
		return nil, err
	}
	return &runtimeapi.ContainerStatsResponse{Stats: s.stats(c)}, nil
}

func (s *server) ListContainerStats(_ context.Context, r *runtimeapi.ListContainerStatsRequest) (*runtimeapi.ListContainerStatsResponse, error) {
	f := r.GetFilter()
	out := &runtimeapi.ListContainerStatsResponse{}
	for _, c := range s.store.listContainers() {
		if f.GetId() != "" && f.GetId() != c.id ||
			f.GetPodSandboxId() != "" && f.GetPodSandboxId() != c.sandbox.id ||
			!matches(f.GetLabelSelector(), c.config.GetLabels()) {
			continue
		}
		out.Stats = append(out.Stats, s.stats(c))
	}
	return out, nil
}

func (s *server) sandboxStats(sb *sandbox) *runtimeapi.PodSandboxStats {
	now := time.Now().UnixNano()
	linux := &runtimeapi.LinuxPodSandboxStats{
		Cpu:    &runtimeapi.CpuUsage{Timestamp: now, UsageCoreNanoSeconds: &runtimeapi.UInt64Value{}},
		Memory: &runtimeapi.MemoryUsage{Timestamp: now, WorkingSetBytes: &runtimeapi.UInt64Value{}},
	}
	for _, c := range s.store.containersOf(sb.id) {
		stats := s.stats(c)
		linux.Containers = append(linux.Containers, stats)
		linux.Cpu.UsageCoreNanoSeconds.Value += stats.GetCpu().GetUsageCoreNanoSeconds().GetValue()
		linux.Memory.WorkingSetBytes.Value += stats.GetMemory().GetWorkingSetBytes().GetValue()
	}
	return &runtimeapi.PodSandboxStats{
		Attributes: &runtimeapi.PodSandboxAttributes{
			Id: sb.id, Metadata: sb.config.GetMetadata(),
			Labels: sb.config.GetLabels(), Annotations: sb.config.GetAnnotations(),
		},
		Linux: linux,
	}
}

func (s *server) PodSandboxStats(_ context.Context, r *runtimeapi.PodSandboxStatsRequest) (*runtimeapi.PodSandboxStatsResponse, error) {
	sb, err := s.store.sandbox(r.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	return &runtimeapi.PodSandboxStatsResponse{Stats: s.sandboxStats(sb)}, nil
}

func (s *server) ListPodSandboxStats(_ context.Context, r *runtimeapi.ListPodSandboxStatsRequest) (*runtimeapi.ListPodSandboxStatsResponse, error) {
	f := r.GetFilter()
	out := &runtimeapi.ListPodSandboxStatsResponse{}
	for _, sb := range s.store.listSandboxes() {
		if f.GetId() != "" && f.GetId() != sb.id || !matches(f.GetLabelSelector(), sb.config.GetLabels()) {
			continue
		}
		out.Stats = append(out.Stats, s.sandboxStats(sb))
	}
	return out, nil
}

// ListMetricDescriptors names no metric: there are no cgroups to take them from.
func (s *server) ListMetricDescriptors(context.Context, *runtimeapi.ListMetricDescriptorsRequest) (*runtimeapi.ListMetricDescriptorsResponse, error) {
	return &runtimeapi.ListMetricDescriptorsResponse{}, nil
}

// ListPodSandboxMetrics has the pods, without metrics.
func (s *server) ListPodSandboxMetrics(context.Context, *runtimeapi.ListPodSandboxMetricsRequest) (*runtimeapi.ListPodSandboxMetricsResponse, error) {
	out := &runtimeapi.ListPodSandboxMetricsResponse{}
	for _, sb := range s.store.listSandboxes() {
		out.PodMetrics = append(out.PodMetrics, &runtimeapi.PodSandboxMetrics{PodSandboxId: sb.id})
	}
	return out, nil
}
