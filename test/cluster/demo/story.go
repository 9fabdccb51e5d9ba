package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/test/cluster/e2e"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

const (
	poolA, poolB = "gpu-a", "gpu-b"
	gpusPerNode  = 2
	namespace    = "default"
	workload     = "inference"
	// Four pods on six GPUs leave room for one drained node; the budget lets one pod
	// go at a time.
	replicas, minAvailable = 4, 3
	// managedByTool selects what the tool has made.
	managedByTool = "app.kubernetes.io/managed-by=dramigrate"
	// removalPatience bounds what the cluster itself still has to clear away.
	removalPatience = 2 * time.Minute
)

func nodesA() []string   { return []string{"gpu-a-1", "gpu-a-2"} }
func nodesB() []string   { return []string{"gpu-b-1"} }
func allNodes() []string { return slices.Concat(nodesA(), nodesB()) }

type demo struct {
	bench  *e2e.Bench
	tool   tool
	out    io.Writer
	dir    string
	began  time.Time
	laps   []lap
	plugin metav1.ObjectMeta
	// before is the state at the start; checked is what was found to be true.
	before  state
	checked []string
}

// check ends the demo if problem says something, and else remembers the claim.
func (d *demo) check(claim, problem string) error {
	if problem != "" {
		return fmt.Errorf("it is not so that %s: %s", claim, problem)
	}
	d.say("  ok  %s", claim)
	d.checked = append(d.checked, claim)
	return nil
}

func (d *demo) story(ctx context.Context) error {
	d.plugin = manifests.PluginStatic().DaemonSet.ObjectMeta
	for _, part := range []func(context.Context) error{d.start, d.prepare, d.migrate, d.rollback, d.unprepare} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	d.summary()
	return nil
}

// start runs the workload and notes how everything is.
func (d *demo) start(ctx context.Context) error {
	d.heading("The start: every GPU is handed out by the device plugin")
	if err := d.bench.Apply(ctx, manifests.Budget(namespace, workload, minAvailable)); err != nil {
		return err
	}
	if err := d.bench.RunWorkload(ctx, workload, "", replicas); err != nil {
		return err
	}
	d.say("Deployment %s: %d pods with nvidia.com/gpu: 1, and a PodDisruptionBudget of at least %d.", workload, replicas, minAvailable)
	if _, err := d.showWorkload(ctx); err != nil {
		return err
	}
	var err error
	if d.before, err = d.look(ctx); err != nil {
		return err
	}
	return d.tool.run(ctx, "pools")
}

func (d *demo) prepare(ctx context.Context) error {
	d.heading("Prepare, once for the cluster: shared objects, with their plan")
	begin := time.Now()
	if err := d.tool.run(ctx, "prepare", "--driver-manifests", "driver", "--plugin-rollout", "on-delete", "--yes"); err != nil {
		return err
	}
	d.took("prepare", begin)
	d.say("")
	now, err := d.look(ctx)
	if err != nil {
		return err
	}
	return errors.Join(
		d.check("prepare touched no node", nodesDiffer(d.before, now, allNodes())),
		d.samePluginPods("prepare restarted no plugin pod", now, allNodes()),
	)
}

func (d *demo) migrate(ctx context.Context) error {
	d.heading("The plan for pool %s, for the change review", poolA)
	d.say("--kubelet-grace 10s: kubelets remember a plugin that left for 5 minutes, and the run waits for")
	d.say("that at its end; the demo does not. Without the flag it would.")
	if err := d.tool.run(ctx, "plan", poolA, "--helper-image", e2e.HelperImage, "--kubelet-grace", "10s", "--soak", "2s", "--out", "plan.yaml"); err != nil {
		return err
	}
	d.heading("Migrate pool %s, as planned", poolA)
	begin := time.Now()
	if err := d.tool.runBriefly(ctx, "apply", "--plan", "plan.yaml", "--yes"); err != nil {
		return err
	}
	d.took("migrate pool "+poolA, begin)
	pods, err := d.showWorkload(ctx)
	if err != nil {
		return err
	}
	d.say("")
	now, err := d.look(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(
		d.check("the pods on pool "+poolA+" run on DRA, and each sees the GPU of its claim", notServed(pods, nodesA(), true)),
		d.check("the pods on pool "+poolB+" run on the device plugin", notServed(pods, nodesB(), false)),
		d.samePluginPods("no plugin pod of pool "+poolB+" restarted", now, nodesB()),
		d.check("the workload's manifest was not touched", workloadDiffers(d.before, now)),
	); err != nil {
		return err
	}
	begin = time.Now()
	if err := d.tool.run(ctx, "verify", poolA); err != nil {
		return err
	}
	d.took("verify", begin)
	return d.tool.run(ctx, "status")
}

func (d *demo) rollback(ctx context.Context) error {
	d.heading("Roll pool %s back", poolA)
	begin := time.Now()
	if err := d.tool.runBriefly(ctx, "rollback", poolA, "--helper-image", e2e.HelperImage, "--yes"); err != nil {
		return err
	}
	d.took("roll pool "+poolA+" back", begin)
	pods, err := d.showWorkload(ctx)
	if err != nil {
		return err
	}
	d.say("")
	now, err := d.look(ctx)
	if err != nil {
		return err
	}
	var left []string
	for _, n := range nodesA() {
		more, err := d.bench.Leftovers(ctx, n)
		if err != nil {
			return err
		}
		left = append(left, more...)
	}
	return errors.Join(
		d.check("the nodes of pool "+poolA+" have the labels, taints, annotations and advertised UUIDs of before", nodesDiffer(d.before, now, nodesA())),
		d.check("no claim, slice, driver pod or helper pod is left on them", strings.Join(left, ", ")),
		d.check("every pod is served by the device plugin", notServed(pods, allNodes(), false)),
		d.samePluginPods("the plugin pods of pool "+poolB+" are still the same", now, nodesB()),
	)
}

func (d *demo) unprepare(ctx context.Context) error {
	d.heading("Take back what prepare did")
	begin := time.Now()
	if err := d.tool.runBriefly(ctx, "unprepare", "--yes"); err != nil {
		return err
	}
	d.took("unprepare", begin)
	d.say("")
	var now state
	// The driver's namespace is emptied by the cluster's controllers, and the plugin's
	// pods on pool A, which get their former template back, register with the kubelet.
	var shared, nodes string
	_ = e2e.Eventually(ctx, removalPatience, func() string {
		var err error
		if now, err = d.look(ctx); err != nil {
			return err.Error()
		}
		shared, nodes = sharedDiffer(d.before, now), nodesDiffer(d.before, now, allNodes())
		return shared + nodes
	})
	pods, err := d.bench.Client().CoreV1().Pods(e2e.ToolNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	journals, err := d.bench.Client().CoreV1().ConfigMaps(e2e.ToolNamespace).List(ctx, metav1.ListOptions{LabelSelector: managedByTool})
	if err != nil {
		return err
	}
	noJournal := ""
	if len(journals.Items) == 0 {
		noJournal = "there is no ConfigMap with label " + managedByTool
	}
	var helpers []string
	for _, p := range pods.Items {
		helpers = append(helpers, "pod "+p.Name)
	}
	return errors.Join(
		d.check("DaemonSets, DeviceClasses, roles and namespaces are as at the start, but for "+e2e.ToolNamespace+" with its journal", shared),
		d.check("the journal is there", noJournal),
		d.check("no pod is left in "+e2e.ToolNamespace, strings.Join(helpers, ", ")),
		d.check("all nodes are as at the start", nodes),
		d.samePluginPods("the plugin pods of pool "+poolB+" were the same all the way", now, nodesB()),
		d.check("the workload's manifest was never touched", workloadDiffers(d.before, now)),
	)
}

// samePluginPods checks that the plugin's pods on nodes are those of the start.
func (d *demo) samePluginPods(claim string, now state, nodes []string) error {
	problem := ""
	for _, n := range nodes {
		if was, is := d.before.pluginPods[n], now.pluginPods[n]; was == "" || was != is {
			problem = fmt.Sprintf("node/%s: the plugin's pod has UID %q, had %q", n, is, was)
		}
	}
	return d.check(claim, problem)
}

// notServed says which pod on the nodes is not served by DRA, or by the plugin. With
// DRA there must be one at least, and each must see exactly the devices of its claim.
func notServed(pods []e2e.Served, nodes []string, byDRA bool) string {
	found := 0
	for _, p := range pods {
		if !slices.Contains(nodes, p.Node) {
			continue
		}
		found++
		switch {
		case byDRA && p.Claim == "":
			return fmt.Sprintf("pod %s on %s has no claim", p.Pod, p.Node)
		case !byDRA && p.Claim != "":
			return fmt.Sprintf("pod %s on %s has claim %s", p.Pod, p.Node, p.Claim)
		case byDRA && !slices.Equal(p.Holds, p.Sees):
			return fmt.Sprintf("pod %s on %s holds %q and sees %q", p.Pod, p.Node, p.Holds, p.Sees)
		}
	}
	if found == 0 {
		return "no pod runs there"
	}
	return ""
}
