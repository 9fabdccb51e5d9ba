package poolprobe

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/nodeprobe"
)

// APIView is a node as the API has it, in the form that a report is judged with. A part
// that could not be read is null, which is unknown there.
func APIView(v cluster.NodeView, unknown func(part string) bool) *nodeprobe.APIView {
	api := &nodeprobe.APIView{}
	if !unknown(cluster.PartSlices) {
		api.Slices = append([]resourcev1.ResourceSlice{}, v.Slices...)
	}
	if !unknown(cluster.PartClaims) {
		api.Claims = append([]resourcev1.ResourceClaim{}, v.Claims...)
	}
	if !unknown(cluster.PartPods) {
		api.Pods = []corev1.Pod{}
		for i := range v.Pods {
			api.Pods = append(api.Pods, podOf(&v.Pods[i]))
		}
	}
	return api
}

// podOf is what of a pod says which devices are its own.
func podOf(p *cluster.Pod) corev1.Pod {
	out := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, Labels: p.Labels},
		Spec:       corev1.PodSpec{NodeName: p.Node},
		Status:     corev1.PodStatus{Phase: p.Phase},
	}
	for _, r := range p.Requests {
		list := &out.Spec.Containers
		if r.Init {
			list = &out.Spec.InitContainers
		}
		n := len(*list)
		if n == 0 || (*list)[n-1].Name != r.Container {
			*list = append(*list, corev1.Container{Name: r.Container, Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{}}})
			n++
		}
		(*list)[n-1].Resources.Limits[r.Resource] = *resource.NewQuantity(r.Count, resource.DecimalSI)
	}
	for _, claim := range p.Claims {
		out.Status.ResourceClaimStatuses = append(out.Status.ResourceClaimStatuses,
			corev1.PodResourceClaimStatus{Name: claim, ResourceClaimName: &claim})
	}
	if p.Bridge != nil {
		s := &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: p.Bridge.Claim}
		for _, m := range p.Bridge.Mappings {
			s.RequestMappings = append(s.RequestMappings, corev1.ContainerExtendedResourceRequest{
				ContainerName: m.Container, ResourceName: string(m.Resource), RequestName: m.Request,
			})
		}
		out.Status.ExtendedResourceClaimStatus = s
	}
	return out
}
