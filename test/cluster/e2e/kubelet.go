package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Advertised are the device IDs that a node's kubelet offers by the plugin, asked at
// its socket from outside the node. It makes no List call, which would change what
// the kubelet remembers.
func (b *Bench) Advertised(ctx context.Context, node string) ([]string, error) {
	socket := filepath.Join(b.KubeletDir(node), "pod-resources", "kubelet.sock")
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("node/%s: kubelet: %w", node, err)
	}
	defer func() { _ = conn.Close() }()
	answer, err := podresources.NewPodResourcesListerClient(conn).GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{})
	if err != nil {
		return nil, fmt.Errorf("node/%s: kubelet: %w", node, err)
	}
	var out []string
	for _, d := range answer.Devices {
		if d.ResourceName == Resource {
			out = append(out, d.DeviceIds...)
		}
	}
	slices.Sort(out)
	return out, nil
}
