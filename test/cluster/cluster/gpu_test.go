package cluster_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

// The whole stack on a real kubelet: the plugin serves a pod, then the driver
// serves the same pod, each with GPUs of the node's set, and every fault of the
// driver can be seen.
func TestGPUStack(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	needNodes(t)
	c, err := cluster.Start(t.Context(), cluster.Options{
		Kubelet: cluster.KubeletQuick,
		Nodes: []cluster.NodeSpec{{
			Name:   gpuNode,
			Labels: map[string]string{"pool": "a", "nvidia.com/gpu.present": "true"},
			Taints: []corev1.Taint{{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}},
			GPUs:   4,
		}},
		Log: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	b := &gpuBench{T: t, cluster: c, client: c.Client()}
	// The steps build on one another: after one that failed the rest would only
	// add noise.
	for _, step := range []struct {
		name string
		run  func(*gpuBench)
	}{
		{"plugin serves", pluginServes},
		{"plugin outlives the kubelet", pluginOutlivesKubelet},
		{"plugin leaves", pluginLeaves},
		{"driver serves", driverServes},
		{"wrong device", wrongDevice},
		{"prepare error", prepareError},
		{"missing device", missingDevice},
		{"crash loop", crashLoop},
		{"driver recovers and leaves", driverLeaves},
		{"plugin serves again", pluginServes},
	} {
		ok := t.Run(step.name, func(t *testing.T) {
			step.run(&gpuBench{T: t, cluster: c, client: b.client})
		})
		if !ok {
			return
		}
	}
}

func pluginServes(b *gpuBench) {
	plugin := manifests.PluginChart()
	b.must(b.cluster.Apply(b.Context(), plugin.Objects()...))
	b.waitAllocatable("4")
	printed := b.runLegacyPod("on-plugin")
	if pod := b.pod("on-plugin"); pod.Status.ExtendedResourceClaimStatus != nil {
		b.Errorf("the pod is served by a claim: %v", pod.Status.ExtendedResourceClaimStatus)
	}
	if !slices.Contains(b.cluster.GPUs(gpuNode).UUIDs(), printed) {
		b.Errorf("the pod saw %s, which is none of %v", printed, b.cluster.GPUs(gpuNode).UUIDs())
	}
	b.deletePod("on-plugin")
}

func pluginOutlivesKubelet(b *gpuBench) {
	b.must(b.cluster.RestartKubelet(b.Context(), gpuNode))
	want := b.cluster.GPUs(gpuNode).UUIDs()
	slices.Sort(want)
	b.until("the new kubelet has the plugin's devices", func() (bool, string) {
		got, err := b.kubeletDevices()
		slices.Sort(got)
		return err == nil && slices.Equal(got, want), fmt.Sprintf("%v, %v", got, err)
	})
	b.waitAllocatable("4")
}

func pluginLeaves(b *gpuBench) {
	ds := manifests.PluginChart().DaemonSet
	b.must(b.client.AppsV1().DaemonSets(ds.Namespace).Delete(b.Context(), ds.Name, metav1.DeleteOptions{}))
	b.waitAllocatable("0")
	// Without this the kubelet's memory of the plugin's pod breaks DRA-backed
	// pods once the grace period of the plugin is over (Kubernetes up to 1.37).
	b.listPodResources()
}

func driverServes(b *gpuBench) {
	b.must(b.cluster.Apply(b.Context(), manifests.Driver()...))
	b.must(b.cluster.Apply(b.Context(), manifests.DeviceClass()))
	want := b.cluster.GPUs(gpuNode).UUIDs()
	slices.Sort(want)
	b.until("the slices hold the node's GPUs", func() (bool, string) {
		got := b.published()
		slices.Sort(got)
		return slices.Equal(got, want), fmt.Sprintf("published %v, want %v", got, want)
	})
	printed, allocated := b.runLegacyPod("on-driver"), b.allocated("on-driver")
	if printed != allocated {
		b.Errorf("the pod saw %s and its claim has %s", printed, allocated)
	}
	b.deletePod("on-driver")
}

func wrongDevice(b *gpuBench) {
	b.must(b.cluster.SetDriverFault(gpuNode, cluster.FaultWrongDevice))
	printed, allocated := b.runLegacyPod("cheated"), b.allocated("cheated")
	if printed == allocated {
		b.Errorf("the pod saw %s, as its claim has it, in spite of the fault", printed)
	}
	if !slices.Contains(b.cluster.GPUs(gpuNode).UUIDs(), printed) {
		b.Errorf("the pod saw %s, which the node does not have", printed)
	}
	b.deletePod("cheated")
}

func prepareError(b *gpuBench) {
	b.must(b.cluster.SetDriverFault(gpuNode, cluster.FaultPrepareError))
	b.createLegacyPod("stuck")
	b.until("the kubelet reports that prepare fails", func() (bool, string) {
		events, err := b.client.CoreV1().Events("default").List(b.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=stuck"})
		b.must(err)
		var reasons []string
		for _, e := range events.Items {
			reasons = append(reasons, e.Reason)
		}
		return slices.Contains(reasons, "FailedPrepareDynamicResources"), fmt.Sprintf("events %v", reasons)
	})
	if phase := b.pod("stuck").Status.Phase; phase != corev1.PodPending {
		b.Errorf("the pod is %s", phase)
	}
	// A new pod, as the kubelet tries the old one again only after a minute.
	b.deletePod("stuck")
	b.must(b.cluster.SetDriverFault(gpuNode, cluster.FaultNone))
	if printed, allocated := b.runLegacyPod("cured"), b.allocated("cured"); printed != allocated {
		b.Errorf("the pod saw %s and its claim has %s", printed, allocated)
	}
	b.deletePod("cured")
}

func missingDevice(b *gpuBench) {
	b.must(b.cluster.SetDriverFault(gpuNode, cluster.FaultMissingDevice))
	b.restartDriver()
	want := b.cluster.GPUs(gpuNode).UUIDs()[:3]
	slices.Sort(want)
	b.until("the slices lack the last GPU", func() (bool, string) {
		got := b.published()
		slices.Sort(got)
		return slices.Equal(got, want), fmt.Sprintf("published %v, want %v", got, want)
	})
}

func crashLoop(b *gpuBench) {
	b.must(b.cluster.SetDriverFault(gpuNode, cluster.FaultCrashLoop))
	b.restartDriver()
	b.until("the driver's container has crashed", func() (bool, string) {
		pod := b.driverPod()
		if len(pod.Status.ContainerStatuses) == 0 {
			return false, string(pod.Status.Phase)
		}
		status := pod.Status.ContainerStatuses[0]
		ended := status.LastTerminationState.Terminated
		return status.RestartCount > 0 && ended != nil && ended.ExitCode == 1, fmt.Sprintf("%+v", status)
	})
	b.until("the slices are wiped", func() (bool, string) {
		got := b.published()
		return len(got) == 0, fmt.Sprintf("published %v", got)
	})
}

func driverLeaves(b *gpuBench) {
	b.must(b.cluster.SetDriverFault(gpuNode, cluster.FaultNone))
	b.restartDriver()
	b.until("the slices are back", func() (bool, string) {
		got := b.published()
		return len(got) == 4, fmt.Sprintf("published %v", got)
	})
	ds := manifests.DriverDaemonSet()
	b.must(b.client.AppsV1().DaemonSets(ds.Namespace).Delete(b.Context(), ds.Name, metav1.DeleteOptions{}))
	b.until("the slices are wiped", func() (bool, string) {
		got := b.published()
		return len(got) == 0, fmt.Sprintf("published %v", got)
	})
}
