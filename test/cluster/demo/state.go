package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/test/cluster/e2e"
)

// state is what must be the same after everything was taken back.
type state struct {
	// nodes by name: labels, taints, annotations, cordon.
	nodes map[string]string
	// advertised are the UUIDs that each node's kubelet offers by the plugin.
	advertised map[string][]string
	// pluginPods are the UIDs of the plugin's pods by node.
	pluginPods map[string]string
	// daemonSets are the specs by namespace/name.
	daemonSets map[string]string
	// objects are the names of cluster-wide objects that prepare may add to.
	objects map[string][]string
	// manifest is the workload's spec, generation its count of changes.
	manifest   string
	generation int64
}

// look reads the state.
func (d *demo) look(ctx context.Context) (state, error) {
	s := state{nodes: map[string]string{}, advertised: map[string][]string{}, daemonSets: map[string]string{}, objects: map[string][]string{}}
	var err error
	for _, n := range allNodes() {
		if s.nodes[n], err = d.bench.Fingerprint(ctx, n); err != nil {
			return s, err
		}
		if s.advertised[n], err = d.bench.Advertised(ctx, n); err != nil {
			return s, err
		}
	}
	if s.pluginPods, err = d.pluginPods(ctx); err != nil {
		return s, err
	}
	client := d.bench.Client()
	sets, err := client.AppsV1().DaemonSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, err
	}
	for _, ds := range sets.Items {
		if s.daemonSets[ds.Namespace+"/"+ds.Name], err = text(ds.Spec); err != nil {
			return s, err
		}
	}
	classes, err := client.ResourceV1().DeviceClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, err
	}
	for _, o := range classes.Items {
		s.add("DeviceClass", o.Name)
	}
	namespaces, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, err
	}
	for _, o := range namespaces.Items {
		s.add("Namespace", o.Name)
	}
	roles, err := client.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, err
	}
	for _, o := range roles.Items {
		s.add("ClusterRole", o.Name)
	}
	bindings, err := client.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, err
	}
	for _, o := range bindings.Items {
		s.add("ClusterRoleBinding", o.Name)
	}
	deployment, err := client.AppsV1().Deployments(namespace).Get(ctx, workload, metav1.GetOptions{})
	if err != nil {
		return s, err
	}
	s.generation = deployment.Generation
	s.manifest, err = text(deployment.Spec)
	return s, err
}

func (s state) add(kind, name string) { s.objects[kind] = append(s.objects[kind], name) }

func (d *demo) pluginPods(ctx context.Context) (map[string]string, error) {
	return d.bench.DaemonPods(ctx, d.plugin.Namespace, d.plugin.Name)
}

func text(v any) (string, error) {
	out, err := json.MarshalIndent(v, "", "  ")
	return string(out), err
}

// nodesDiffer says how the nodes of a pool are not as they were before.
func nodesDiffer(before, now state, nodes []string) string {
	for _, n := range nodes {
		if before.nodes[n] != now.nodes[n] {
			return fmt.Sprintf("node/%s: labels, taints, annotations or cordon are\n%s\nand were\n%s", n, now.nodes[n], before.nodes[n])
		}
		if !slices.Equal(before.advertised[n], now.advertised[n]) {
			return fmt.Sprintf("node/%s: the kubelet offers %q and offered %q", n, now.advertised[n], before.advertised[n])
		}
	}
	return ""
}

// sharedDiffer says how shared objects are not as they were, but for the tool's
// namespace.
func sharedDiffer(before, now state) string {
	if !maps.Equal(before.daemonSets, now.daemonSets) {
		return fmt.Sprintf("DaemonSets are\n%v\nand were\n%v", now.daemonSets, before.daemonSets)
	}
	for _, kind := range []string{"DeviceClass", "Namespace", "ClusterRole", "ClusterRoleBinding"} {
		was := slices.Clone(before.objects[kind])
		if kind == "Namespace" {
			was = append(was, e2e.ToolNamespace)
		}
		is := slices.Clone(now.objects[kind])
		slices.Sort(was)
		slices.Sort(is)
		if !slices.Equal(was, is) {
			return fmt.Sprintf("%s: there are %q, there should be %q", kind, is, was)
		}
	}
	return ""
}

// workloadDiffers says whether somebody has changed the workload's manifest.
func workloadDiffers(before, now state) string {
	if before.manifest != now.manifest || before.generation != now.generation {
		return fmt.Sprintf("deployment/%s: generation %d, was %d; spec\n%s\nwas\n%s", workload, now.generation, before.generation, now.manifest, before.manifest)
	}
	return ""
}
