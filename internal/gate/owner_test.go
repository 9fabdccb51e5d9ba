package gate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestOwnerOf(t *testing.T) {
	t.Parallel()
	meta := func(change func(*metav1.ObjectMeta)) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Labels: map[string]string{}, Annotations: map[string]string{}}
		change(&m)
		return m
	}
	wrote := func(m *metav1.ObjectMeta, managers ...string) {
		for _, name := range managers {
			m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{Manager: name})
		}
	}
	for _, tt := range []struct {
		name string
		meta metav1.ObjectMeta
		want string // Owner.String
	}{
		{"nothing", meta(func(m *metav1.ObjectMeta) {}), "nobody"},
		{"kubectl apply", meta(func(m *metav1.ObjectMeta) {
			m.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = ""
			wrote(m, "kubectl-client-side-apply", "kube-controller-manager")
		}), "nobody"},
		{"kubectl apply of a rendered chart", meta(func(m *metav1.ObjectMeta) {
			m.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = ""
			m.Labels["app.kubernetes.io/managed-by"] = "Helm"
			m.Labels["app.kubernetes.io/instance"] = "nvdp"
		}), "nobody"},
		{"the tool itself", meta(func(m *metav1.ObjectMeta) { m.Labels["app.kubernetes.io/managed-by"] = "dramigrate" }), "nobody"},
		{"GPU Operator", meta(func(m *metav1.ObjectMeta) {
			m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "nvidia.com/v1", Kind: "ClusterPolicy", Name: "cluster-policy", Controller: ptr.To(true)}}
		}), "operator ClusterPolicy/cluster-policy"},
		{"an owner that is no controller", meta(func(m *metav1.ObjectMeta) {
			m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "x/v1", Kind: "App", Name: "a"}}
		}), "operator App/a"},
		{"helm install", meta(func(m *metav1.ObjectMeta) {
			m.Labels["app.kubernetes.io/managed-by"] = "Helm"
			m.Annotations["meta.helm.sh/release-name"] = "nvdp"
			m.Annotations["meta.helm.sh/release-namespace"] = "gpu"
			wrote(m, "helm")
		}), "Helm release gpu/nvdp"},
		{"the label of a chart alone", meta(func(m *metav1.ObjectMeta) { m.Labels["app.kubernetes.io/managed-by"] = "Helm" }), "Helm"},
		{"Argo CD by annotation", meta(func(m *metav1.ObjectMeta) {
			m.Annotations["argocd.argoproj.io/tracking-id"] = "gpu-stack:apps/DaemonSet:kube-system/nvdp"
			m.Labels["app.kubernetes.io/managed-by"] = "Helm"
		}), "Argo CD application gpu-stack"},
		{"Argo CD by label", meta(func(m *metav1.ObjectMeta) { m.Labels["argocd.argoproj.io/instance"] = "gpu-stack" }), "Argo CD application gpu-stack"},
		{"Argo CD tracking by the common label, applied client-side", meta(func(m *metav1.ObjectMeta) {
			m.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = ""
			m.Labels["app.kubernetes.io/instance"] = "gpu-stack"
			wrote(m, "argocd-controller")
		}), "Argo CD application gpu-stack"},
		{"Flux HelmRelease", meta(func(m *metav1.ObjectMeta) {
			m.Labels["helm.toolkit.fluxcd.io/name"] = "nvdp"
			m.Labels["helm.toolkit.fluxcd.io/namespace"] = "flux-system"
			m.Annotations["meta.helm.sh/release-name"] = "nvdp"
		}), "Flux flux-system/nvdp"},
		{"Flux Kustomization", meta(func(m *metav1.ObjectMeta) {
			m.Labels["kustomize.toolkit.fluxcd.io/name"] = "infra"
			m.Labels["kustomize.toolkit.fluxcd.io/namespace"] = "flux-system"
		}), "Flux flux-system/infra"},
		{"add-on manager", meta(func(m *metav1.ObjectMeta) { m.Labels["addonmanager.kubernetes.io/mode"] = "Reconcile" }), "addon manager in mode Reconcile"},
		{"EKS add-on", meta(func(m *metav1.ObjectMeta) { wrote(m, "eks") }), "EKS add-on"},
		{"eksctl", meta(func(m *metav1.ObjectMeta) { wrote(m, "eksctl") }), "eksctl"},
		{"whoever the common label names", meta(func(m *metav1.ObjectMeta) { m.Labels["app.kubernetes.io/managed-by"] = "pulumi" }), "another tool pulumi"},
		{"a field manager of the status alone", meta(func(m *metav1.ObjectMeta) {
			m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "helm", Subresource: "status"}}
		}), "nobody"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := OwnerOf(&appsv1.DaemonSet{ObjectMeta: tt.meta})
			if diff := cmp.Diff(tt.want, o.String()); diff != "" {
				t.Errorf("owner (-want +got):\n%s", diff)
			}
			if o.Owned() == (tt.want == "nobody") || o.Owned() != (o.Evidence != "") {
				t.Errorf("Owned %t, evidence %q: an owner comes with evidence, nobody with none", o.Owned(), o.Evidence)
			}
		})
	}
}
