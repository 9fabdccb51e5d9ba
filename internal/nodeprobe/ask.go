package nodeprobe

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// askKubelet makes the calls of the PodResources API. One call may fail where the other
// works, so each has its own deadline.
func askKubelet(ctx context.Context, k *kubelet, o Options, report *NodeReport) gaps {
	var g gaps
	if resp, err := within(ctx, o.Timeout, func(ctx context.Context) (*podresources.AllocatableResourcesResponse, error) {
		return k.GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{})
	}); err != nil {
		g.add(PartAdvertised, "GetAllocatableResources: "+k.reason(err, o.Timeout))
	} else {
		report.Advertised = advertised(resp)
	}
	if resp, err := within(ctx, o.Timeout, func(ctx context.Context) (resp *podresources.ListPodResourcesResponse, err error) {
		resp, report.ListCalled, err = callList(ctx, k)
		return resp, err
	}); err != nil {
		g.add(PartHolders, "List: "+k.reason(err, o.Timeout))
	} else if report.ListCalled {
		report.Holders = holders(resp)
	}
	return g
}

func within[T any](ctx context.Context, timeout time.Duration, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return call(ctx)
}

// confirm asks once more for each pod that is said to share a device with the other
// mechanism. The node was not looked at in one moment: a pod may have ended after List
// and its device have been given on. It is true if one has, and the report is to be
// joined anew.
func confirm(ctx context.Context, k *kubelet, o Options, report *NodeReport) bool {
	changed := false
	for _, pod := range doublyHolding(report) {
		resp, err := within(ctx, o.Timeout, func(ctx context.Context) (*podresources.GetPodResourcesResponse, error) {
			return k.Get(ctx, &podresources.GetPodResourcesRequest{PodNamespace: pod.namespace, PodName: pod.name})
		})
		ref := pod.namespace + "/" + pod.name
		before := slices.Clone(report.Holders)
		switch {
		case err == nil:
			now := holders(&podresources.ListPodResourcesResponse{PodResources: []*podresources.PodResources{resp.GetPodResources()}})
			report.Holders = slices.DeleteFunc(slices.Clone(report.Holders), func(h Holder) bool { return h.Pod == ref && !slices.ContainsFunc(now, h.equal) })
		// The kubelet has no code of its own for a pod that it does not have
		// (pkg/kubelet/apis/podresources/server_v1.go, v1.37.2).
		case status.Code(err) == codes.Unknown && status.Convert(err).Message() == "pod "+pod.name+" in namespace "+pod.namespace+" not found":
			report.Holders = slices.DeleteFunc(slices.Clone(report.Holders), func(h Holder) bool { return h.Pod == ref })
		default:
			// List has said it, and nothing takes it back.
			continue
		}
		changed = changed || len(before) != len(report.Holders)
	}
	return changed
}

func (h Holder) equal(o Holder) bool {
	return h.Pod == o.Pod && h.Container == o.Container && h.Resource == o.Resource && h.Claim == o.Claim &&
		slices.Equal(h.IDs, o.IDs) && slices.Equal(h.Devices, o.Devices)
}

type podRef struct{ namespace, name string }

// doublyHolding are the pods of List that hold a device which is held twice.
func doublyHolding(report *NodeReport) []podRef {
	var out []podRef
	for i := range report.Devices {
		d := &report.Devices[i]
		if d.Verdict != DoubleHeld {
			continue
		}
		for _, h := range d.Holds {
			if !slices.Contains(h.Witnesses, WitnessList) {
				continue
			}
			if ref, ok := parsePodRef(h.Pod); ok && !slices.Contains(out, ref) {
				out = append(out, ref)
			}
		}
	}
	return out
}
