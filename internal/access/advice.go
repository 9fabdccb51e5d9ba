package access

// advice is what checks read besides, to say more. Nothing that a run does depends on
// it, so all of it is optional.
func (t table) advice() []Rule {
	read := func(group, resource, why, unknown string) Rule {
		return Rule{Group: group, Resource: resource, Verbs: []string{"list"}, Why: why, Without: unknown + " stays unknown"}
	}
	dashboards := read("", "configmaps", "to find dashboards that read the extended resource from node metrics; it shows every ConfigMap of the cluster, whatever stands in it",
		"which dashboards will show nothing any more")
	dashboards.Withheld = true
	return []Rule{
		// A quota can leave every pod of a pool waiting, so nobody goes on without this.
		wide("", "resourcequotas", "to see which quotas begin to count devices by class", "list"),
		read("", "limitranges", "to see which limits apply to the pods that the tool and the driver run", "whether a LimitRange is in the way"),
		read("", "namespaces", "to see the pod-security level that the driver's pods meet", "whether pod security lets the driver in"),
		read("scheduling.k8s.io", "priorityclasses", "to see whether the priority that the driver asks for is there", "whether the driver's pods can be made"),
		read("apps", "deployments", "to name the owners of pods rather than the pods", "what workloads without pods at the moment will meet"),
		read("apps", "statefulsets", "to name the owners of pods rather than the pods", "what workloads without pods at the moment will meet"),
		read("batch", "jobs", "to see which jobs an eviction would lose", "what a job loses by an eviction"),
		read("batch", "cronjobs", "to see which jobs will ask for devices later", "what jobs that are not running will meet"),
		read("autoscaling", "horizontalpodautoscalers", "to find scaling by metrics that change their name", "which autoscalers lose their metric"),
		read("keda.sh", "scaledobjects", "to find scaling by metrics that change their name", "which autoscalers lose their metric"),
		read("monitoring.coreos.com", "prometheusrules", "to find alerts that read the extended resource from node metrics", "which alerts go silent"),
		read("monitoring.coreos.com", "servicemonitors", "to see what is scraped of plugin and driver", "which metrics end"),
		read("nvidia.com", "clusterpolicies", "to see how the GPU Operator is set up", "what the GPU Operator will do to the nodes"),
		read("nvidia.com", "gpuclusters", "to see how the GPU Operator is set up", "what the GPU Operator will do to the nodes"),
		read("nvidia.com", "nvidiadrivers", "to see which driver upgrades the GPU Operator has under way", "whether a driver upgrade is in the way"),
		{Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Names: []string{"system:kube-scheduler"}, Verbs: []string{"get"},
			Why: "to see by the scheduler's own rights whether it serves extended resources by DRA", Without: "one sign that the feature is on stays unknown"},
		{Paths: []string{"/metrics"}, Verbs: []string{"get"},
			Why: "to see which feature gates the API server has on", Without: "whether the feature is on may stay unknown"},
		dashboards,
	}
}
