package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

const (
	gpuNode = "gpu-0"
	// patience bounds every wait of the GPU test. What is waited for takes
	// seconds; the machine may be busy.
	patience = 2 * time.Minute
)

// A gpuBench is a cluster with one real node of four GPUs.
type gpuBench struct {
	*testing.T
	cluster *cluster.Cluster
	client  kubernetes.Interface
}

func (b *gpuBench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// until waits for what a person would see next, and says what was seen instead.
func (b *gpuBench) until(what string, seen func() (bool, string)) {
	b.Helper()
	var last string
	begin := time.Now()
	err := wait.PollUntilContextTimeout(b.Context(), 100*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		var done bool
		done, last = seen()
		return done, nil
	})
	if err != nil {
		b.Fatalf("%s: not within %v: %s", what, patience, last)
	}
	b.Logf("%s after %v", what, time.Since(begin).Round(10*time.Millisecond))
}

func (b *gpuBench) waitAllocatable(want string) {
	b.Helper()
	b.until("allocatable nvidia.com/gpu is "+want, func() (bool, string) {
		node, err := b.client.CoreV1().Nodes().Get(b.Context(), gpuNode, metav1.GetOptions{})
		b.must(err)
		got, has := node.Status.Allocatable["nvidia.com/gpu"]
		return has && got.String() == want, fmt.Sprintf("%s, present: %v", got.String(), has)
	})
}

func (b *gpuBench) pod(name string) *corev1.Pod {
	b.Helper()
	pod, err := b.client.CoreV1().Pods("default").Get(b.Context(), name, metav1.GetOptions{})
	b.must(err)
	return pod
}

func (b *gpuBench) createLegacyPod(name string) {
	b.Helper()
	pod := manifests.WorkloadPod("default", name, map[string]string{"pool": "a"})
	_, err := b.client.CoreV1().Pods("default").Create(b.Context(), pod, metav1.CreateOptions{})
	b.must(err)
}

func (b *gpuBench) waitRunning(name string) {
	b.Helper()
	b.until("pod "+name+" runs", func() (bool, string) {
		pod := b.pod(name)
		if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
			b.Fatalf("pod %s has ended: %+v", name, pod.Status)
		}
		return pod.Status.Phase == corev1.PodRunning, fmt.Sprintf("%+v", pod.Status)
	})
}

// runLegacyPod runs a pod that asks for nvidia.com/gpu and returns the UUID of
// the one GPU that its container printed.
func (b *gpuBench) runLegacyPod(name string) string {
	b.Helper()
	b.createLegacyPod(name)
	b.waitRunning(name)
	var found [][]string
	b.until("pod "+name+" prints its GPU", func() (bool, string) {
		stream, err := b.client.CoreV1().Pods("default").GetLogs(name, &corev1.PodLogOptions{}).Stream(b.Context())
		if err != nil {
			return false, err.Error()
		}
		text, err := io.ReadAll(stream)
		err = errors.Join(err, stream.Close())
		found = listed.FindAllStringSubmatch(string(text), -1)
		return err == nil && len(found) > 0, fmt.Sprintf("%q, %v", text, err)
	})
	if len(found) != 1 {
		b.Fatalf("pod %s sees %d GPUs, want 1: %v", name, len(found), found)
	}
	return found[0][1]
}

// listed is a line of `nvidia-smi -L`.
var listed = regexp.MustCompile(`(?m)^GPU \d+: NVIDIA H100 80GB HBM3 \(UUID: (GPU-[0-9a-f-]{36})\)$`)

func (b *gpuBench) deletePod(name string) {
	b.Helper()
	b.must(b.client.CoreV1().Pods("default").Delete(b.Context(), name, metav1.DeleteOptions{}))
	b.until("pod "+name+" is gone", func() (bool, string) {
		pod, err := b.client.CoreV1().Pods("default").Get(b.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, ""
		}
		b.must(err)
		return false, fmt.Sprintf("%+v", pod.Status)
	})
}

func (b *gpuBench) slices() []resourceapi.ResourceSlice {
	b.Helper()
	list, err := b.client.ResourceV1().ResourceSlices().List(b.Context(),
		metav1.ListOptions{FieldSelector: "spec.driver=gpu.nvidia.com,spec.nodeName=" + gpuNode})
	b.must(err)
	return list.Items
}

// published are the UUIDs of all devices in the node's slices.
func (b *gpuBench) published() []string {
	b.Helper()
	var ids []string
	for _, s := range b.slices() {
		for _, d := range s.Spec.Devices {
			ids = append(ids, *d.Attributes["uuid"].StringValue)
		}
	}
	return ids
}

// allocated is the UUID, by the slices, of the device in the claim that serves
// the pod's request for nvidia.com/gpu.
func (b *gpuBench) allocated(name string) string {
	b.Helper()
	status := b.pod(name).Status.ExtendedResourceClaimStatus
	if status == nil {
		b.Fatalf("pod %s is not served by a claim", name)
	}
	claim, err := b.client.ResourceV1().ResourceClaims("default").Get(b.Context(), status.ResourceClaimName, metav1.GetOptions{})
	b.must(err)
	if claim.Status.Allocation == nil || len(claim.Status.Allocation.Devices.Results) != 1 {
		b.Fatalf("claim of pod %s: %+v", name, claim.Status)
	}
	result := claim.Status.Allocation.Devices.Results[0]
	for _, s := range b.slices() {
		for _, d := range s.Spec.Devices {
			if s.Spec.Pool.Name == result.Pool && d.Name == result.Device {
				return *d.Attributes["uuid"].StringValue
			}
		}
	}
	b.Fatalf("device %s/%s of pod %s is in no slice", result.Pool, result.Device, name)
	return ""
}

func (b *gpuBench) driverPod() *corev1.Pod {
	b.Helper()
	ds := manifests.DriverDaemonSet()
	list, err := b.client.CoreV1().Pods(ds.Namespace).List(b.Context(), metav1.ListOptions{LabelSelector: "dra-driver-nvidia-gpu-component=kubelet-plugin"})
	b.must(err)
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			return &list.Items[i]
		}
	}
	return &corev1.Pod{}
}

// restartDriver has the DaemonSet make another pod.
func (b *gpuBench) restartDriver() {
	b.Helper()
	old := b.driverPod()
	b.must(b.client.CoreV1().Pods(old.Namespace).Delete(b.Context(), old.Name, metav1.DeleteOptions{}))
	b.until("the driver has a new pod", func() (bool, string) {
		pod := b.driverPod()
		return pod.UID != "" && pod.UID != old.UID, pod.Name
	})
}

// listPodResources makes the kubelet drop what it remembers of ended pods.
func (b *gpuBench) listPodResources() {
	b.Helper()
	resp, err := b.podResources().List(b.Context(), &podresourcesapi.ListPodResourcesRequest{})
	b.must(err)
	for _, pod := range resp.PodResources {
		for _, c := range pod.Containers {
			for _, d := range c.Devices {
				if strings.HasPrefix(d.ResourceName, "nvidia.com/") {
					b.Errorf("pod %s/%s still holds %v", pod.Namespace, pod.Name, d)
				}
			}
		}
	}
}

// kubeletDevices are the healthy devices that the kubelet has of plugins.
func (b *gpuBench) kubeletDevices() ([]string, error) {
	b.Helper()
	resp, err := b.podResources().GetAllocatableResources(b.Context(), &podresourcesapi.AllocatableResourcesRequest{})
	var ids []string
	for _, d := range resp.GetDevices() {
		ids = append(ids, d.DeviceIds...)
	}
	return ids, err
}

func (b *gpuBench) podResources() podresourcesapi.PodResourcesListerClient {
	b.Helper()
	socket := filepath.Join(b.cluster.KubeletDir(gpuNode), "pod-resources", "kubelet.sock")
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	b.must(err)
	b.Cleanup(func() { conn.Close() })
	return podresourcesapi.NewPodResourcesListerClient(conn)
}
