//go:build !no_podresources_list

package nodeprobe

import (
	"context"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// callList asks the kubelet for the devices of all active pods, and reports that
// it did.
//
// The call is more than a question. In kubelets up to v1.37.2 the device manager
// keeps the allocations of pods that are gone until somebody asks for this list
// (UpdateAllocatedDevices, called by List in
// pkg/kubelet/apis/podresources/server_v1.go, and in
// pkg/kubelet/cm/devicemanager/manager.go only by what a node without the plugin
// no longer does). Once the plugin has been away for the grace period of 5 minutes
// (endpointStopGracePeriod, devicemanager/types.go), such a remnant makes every
// container that asks for the resource through DRA fail with
// CreateContainerConfigError, "endpoint not found in cache for a registered
// resource", over kubelet restarts too. One List cures it; fixed in v1.38
// (kubernetes/kubernetes#141426). The kubelet clears its memory and not its
// checkpoint, and nothing at all before it has seen all of its pod sources.
func callList(ctx context.Context, k podresources.PodResourcesListerClient) (*podresources.ListPodResourcesResponse, bool, error) {
	resp, err := k.List(ctx, &podresources.ListPodResourcesRequest{})
	return resp, err == nil, err
}
