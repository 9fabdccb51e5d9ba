//go:build no_podresources_list

package nodeprobe

import (
	"context"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// callList leaves the call out. The build exists for one test alone: that without
// the call the containers do fail for which it is made. No release carries the tag.
// The report then has ListCalled false and no Holders, and does not name them as
// unknown: a run must get past the probe to where the failure shows.
func callList(context.Context, podresources.PodResourcesListerClient) (*podresources.ListPodResourcesResponse, bool, error) {
	return nil, false, nil
}
