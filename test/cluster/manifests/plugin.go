package manifests

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A Plugin is the device plugin in one of the forms it is installed in.
type Plugin struct {
	// Namespace is nil if the DaemonSet lives in one that every cluster has.
	Namespace *corev1.Namespace
	DaemonSet *appsv1.DaemonSet
	// Pods are the plugin where no DaemonSet runs it, one for each node that has it.
	Pods []*corev1.Pod
}

// Objects in the order in which they have to be created.
func (p Plugin) Objects() []runtime.Object {
	var out []runtime.Object
	if p.Namespace != nil {
		out = append(out, p.Namespace)
	}
	if p.DaemonSet != nil {
		out = append(out, p.DaemonSet)
	}
	for _, pod := range p.Pods {
		out = append(out, pod)
	}
	return out
}

// PluginOfNodes stands for a plugin that is part of its nodes, as a service of their
// image is: no DaemonSet owns it, and no label moves it.
func PluginOfNodes(nodes ...string) Plugin {
	template := PluginStatic().DaemonSet.Spec.Template.Spec
	var out Plugin
	for _, node := range nodes {
		pod := &corev1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "nvidia-k8s-device-plugin-" + node},
			Spec:       *template.DeepCopy(),
		}
		pod.Spec.NodeName = node
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		out.Pods = append(out.Pods, pod)
	}
	return out
}

// PluginStatic is the plugin from the vendor's single-file manifest: nobody owns
// it, it is in kube-system, and it has no affinity at all.
func PluginStatic() Plugin {
	return Plugin{DaemonSet: only[*appsv1.DaemonSet](embedded("plugin/static.yaml"))}
}

// A ChartOption changes what [PluginChart] returns.
type ChartOption func(*appsv1.DaemonSet)

// WithHelmOwner adds what Helm writes on each object of a release.
func WithHelmOwner() ChartOption {
	return func(ds *appsv1.DaemonSet) {
		ds.Labels["app.kubernetes.io/managed-by"] = "Helm"
		ds.Labels["helm.sh/chart"] = "nvidia-device-plugin-0.20.0"
		ds.Annotations = map[string]string{
			"meta.helm.sh/release-name":      ds.Labels["app.kubernetes.io/instance"],
			"meta.helm.sh/release-namespace": ds.Namespace,
		}
	}
}

// PluginChart is the plugin as the vendor's chart places it, by three OR-ed node
// selector terms, rendered and applied by hand unless [WithHelmOwner] is given.
func PluginChart(options ...ChartOption) Plugin {
	objects := embedded("plugin/chart.yaml")
	p := Plugin{
		Namespace: only[*corev1.Namespace](objects),
		DaemonSet: only[*appsv1.DaemonSet](objects),
	}
	for _, o := range options {
		o(p.DaemonSet)
	}
	return p
}

// PluginEmptyTerm is [PluginChart] with the second of the three terms left
// empty. An empty term matches no node; with an expression added that holds for
// nearly every node, it would match nearly every node.
func PluginEmptyTerm() Plugin {
	p := PluginChart()
	required := p.DaemonSet.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	required.NodeSelectorTerms[1] = corev1.NodeSelectorTerm{}
	return p
}
