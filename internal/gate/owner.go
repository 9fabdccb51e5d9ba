package gate

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OwnerKind is what keeps a DaemonSet as it is, beside a person.
type OwnerKind string

// The owners. An edit of an object that has one is undone sooner or later, or
// breaks what the owner does next.
const (
	Nobody       OwnerKind = ""
	Operator     OwnerKind = "operator"
	Flux         OwnerKind = "Flux"
	ArgoCD       OwnerKind = "Argo CD"
	Helm         OwnerKind = "Helm"
	AddonManager OwnerKind = "addon manager"
	EKSAddon     OwnerKind = "EKS add-on"
	Eksctl       OwnerKind = "eksctl"
	OtherTool    OwnerKind = "another tool"
)

// Owner says who owns an object, and by what that was seen.
type Owner struct {
	Kind OwnerKind `json:"kind,omitempty"`
	// Name is the owning object, release or application, as far as it is known.
	Name string `json:"name,omitempty"`
	// Evidence is the field of the object that says so.
	Evidence string `json:"evidence,omitempty"`
}

// Owned says that somebody else owns the object.
func (o Owner) Owned() bool { return o.Kind != Nobody }

// Keeps says that the owner makes the object anew as it wants it and offers no setting
// for it, so that no edit of it lasts.
func (o Owner) Keeps() bool { return o.Kind == Operator || o.Kind == AddonManager }

// String is the owner as messages name it: `Helm release nvdp/kube-system`.
func (o Owner) String() string {
	switch {
	case o.Kind == Nobody:
		return "nobody"
	case o.Name == "":
		return string(o.Kind)
	default:
		return string(o.Kind) + " " + o.Name
	}
}

// OwnerOf finds who owns a DaemonSet. What applies on its own comes before what
// only made the object once: an Argo CD application that renders a chart leaves the
// chart's Helm label on it, but it is Argo CD that takes an edit back. An object
// that kubectl applied belongs to nobody.
func OwnerOf(ds *appsv1.DaemonSet) Owner {
	for _, find := range []func(*appsv1.DaemonSet) Owner{
		ownerReference, flux, argoCD, addonManager, eks, eksctl, helm, managedBy,
	} {
		if o := find(ds); o.Owned() {
			return o
		}
	}
	return Owner{}
}

func ownerReference(ds *appsv1.DaemonSet) Owner {
	ref := metav1.GetControllerOf(ds)
	if ref == nil && len(ds.OwnerReferences) > 0 {
		ref = &ds.OwnerReferences[0]
	}
	if ref == nil {
		return Owner{}
	}
	return Owner{Operator, ref.Kind + "/" + ref.Name, "ownerReference to " + ref.APIVersion + " " + ref.Kind}
}

// flux knows the labels of its two controllers
// (fluxcd.io, "Kustomization" and "HelmRelease": inventory labels).
func flux(ds *appsv1.DaemonSet) Owner {
	for _, group := range []string{"helm.toolkit.fluxcd.io", "kustomize.toolkit.fluxcd.io"} {
		if name, ok := ds.Labels[group+"/name"]; ok {
			return Owner{Flux, ds.Labels[group+"/namespace"] + "/" + name, "label " + group + "/name"}
		}
	}
	if m, ok := manager(ds, "kustomize-controller", "helm-controller"); ok {
		return Owner{Flux, "", "field manager " + m}
	}
	return Owner{}
}

// argoCD knows the two ways in which Argo CD tracks objects (Argo CD docs,
// "Resource Tracking"). The label app.kubernetes.io/instance, its third, is used by
// every chart and so proves nothing; the field manager does.
func argoCD(ds *appsv1.DaemonSet) Owner {
	if id, ok := ds.Annotations["argocd.argoproj.io/tracking-id"]; ok {
		app, _, _ := strings.Cut(id, ":")
		return Owner{ArgoCD, "application " + app, "annotation argocd.argoproj.io/tracking-id"}
	}
	for _, key := range []string{"argocd.argoproj.io/instance", "argocd.argoproj.io/app-name"} {
		if app, ok := ds.Labels[key]; ok {
			return Owner{ArgoCD, "application " + app, "label " + key}
		}
	}
	if m, ok := manager(ds, "argocd-controller", "argocd-application-controller"); ok {
		o := Owner{ArgoCD, "", "field manager " + m}
		if app := ds.Labels["app.kubernetes.io/instance"]; app != "" {
			o.Name = "application " + app
		}
		return o
	}
	return Owner{}
}

// addonManager knows the label of the add-on manager of GKE and kube-up clusters;
// with mode EnsureExists it only makes the object again when it is gone.
func addonManager(ds *appsv1.DaemonSet) Owner {
	const key = "addonmanager.kubernetes.io/mode"
	if mode, ok := ds.Labels[key]; ok {
		return Owner{AddonManager, "in mode " + mode, "label " + key}
	}
	return Owner{}
}

func eks(ds *appsv1.DaemonSet) Owner {
	if m, ok := manager(ds, "eks"); ok {
		return Owner{EKSAddon, "", "field manager " + m}
	}
	return Owner{}
}

// eksctl installs the NVIDIA plugin when it makes a GPU node group
// (eksctl docs, "GPU Support"), and brings it up to date with `eksctl utils`.
func eksctl(ds *appsv1.DaemonSet) Owner {
	for key := range ds.Labels {
		if strings.HasPrefix(key, "alpha.eksctl.io/") {
			return Owner{Eksctl, "", "label " + key}
		}
	}
	if m, ok := manager(ds, "eksctl"); ok {
		return Owner{Eksctl, "", "field manager " + m}
	}
	return Owner{}
}

// helm knows a release by its annotations. The label alone comes from any rendered
// chart: if kubectl applied what `helm template` printed, nobody owns it.
func helm(ds *appsv1.DaemonSet) Owner {
	const release = "meta.helm.sh/release-name"
	if name, ok := ds.Annotations[release]; ok {
		return Owner{Helm, "release " + ds.Annotations["meta.helm.sh/release-namespace"] + "/" + name, "annotation " + release}
	}
	if m, ok := manager(ds, "helm"); ok {
		return Owner{Helm, "", "field manager " + m}
	}
	if _, applied := ds.Annotations[corev1.LastAppliedConfigAnnotation]; !applied && ds.Labels[ManagedByLabel] == "Helm" {
		return Owner{Helm, "", "label " + ManagedByLabel + "=Helm"}
	}
	return Owner{}
}

// managedBy takes the common label at its word, whoever it names.
func managedBy(ds *appsv1.DaemonSet) Owner {
	switch by := ds.Labels[ManagedByLabel]; by {
	case "", "Helm", "kubectl", ManagedBy:
		return Owner{}
	default:
		return Owner{OtherTool, by, fmt.Sprintf("label %s=%s", ManagedByLabel, by)}
	}
}

// manager finds the first of the named field managers that wrote to the object.
func manager(ds *appsv1.DaemonSet, names ...string) (string, bool) {
	for i := range ds.ManagedFields {
		if m := &ds.ManagedFields[i]; m.Subresource == "" && slices.Contains(names, m.Manager) {
			return m.Manager, true
		}
	}
	return "", false
}
