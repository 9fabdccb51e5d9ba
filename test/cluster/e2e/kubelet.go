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
	conn, err := b.podResources(node)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	answer, err := podresources.NewPodResourcesListerClient(conn).GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{})
	if err != nil {
		return nil, fmt.Errorf("node/%s: kubelet: %w", node, err)
	}
	var out []string
	for _, d := range answer.Devices {
		if d.ResourceName == string(b.Make.Resource) {
			out = append(out, d.DeviceIds...)
		}
	}
	slices.Sort(out)
	return out, nil
}

// ListPodResources makes one List call to a node's kubelet, which lets it forget the
// devices of pods that are gone.
func (b *Bench) ListPodResources(ctx context.Context, node string) error {
	conn, err := b.podResources(node)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := podresources.NewPodResourcesListerClient(conn).List(ctx, &podresources.ListPodResourcesRequest{}); err != nil {
		return fmt.Errorf("node/%s: kubelet: %w", node, err)
	}
	return nil
}

func (b *Bench) podResources(node string) (*grpc.ClientConn, error) {
	socket := filepath.Join(b.KubeletDir(node), "pod-resources", "kubelet.sock")
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("node/%s: kubelet: %w", node, err)
	}
	return conn, nil
}
