package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	kruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/dramigrate/dramigrate/internal/nodeprobe"
	"github.com/dramigrate/dramigrate/internal/nvml/nvmltest"
	"github.com/dramigrate/dramigrate/internal/poolprobe"
	"github.com/dramigrate/dramigrate/test/cluster/cluster"
	"github.com/dramigrate/dramigrate/test/cluster/internal/gpu"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

// nodeHelper builds the program as the helper's image has it: with the binding to the
// driver's library. It is told by its node's name which GPUs the stand-in has to show,
// by a script, for which the images get a shell. The folder of driver is for
// --driver-root, and holds all that the stand-in needs.
func nodeHelper(t *testing.T, nodes ...cluster.NodeSpec) (helper string, commands map[string]string, driver string) {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "dramigrate-node")
	_, file, _, _ := runtime.Caller(0)
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "nvml", "-ldflags", "-extldflags=-Wl,-z,lazy", "-o", binary, "./cmd/dramigrate")
	build.Dir = filepath.Join(filepath.Dir(file), "..", "..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the node's helper: %v\n%s", err, out)
	}
	driver = filepath.Join(dir, "driver")
	lib := filepath.Join(driver, "lib64")
	if err := os.MkdirAll(lib, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := nvmltest.Build(lib); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		config, err := gpu.NewSet(n.Name, n.GPUs).NVML()
		if err != nil {
			t.Fatal(err)
		}
		if err := config.Write(filepath.Join(driver, n.Name+".conf")); err != nil {
			t.Fatal(err)
		}
	}
	helper = filepath.Join(dir, "helper")
	script := fmt.Sprintf("#!/bin/sh\nnode=\nprevious=\nfor word in \"$@\"; do\n\t[ \"$previous\" = --node ] && node=$word\n\tprevious=$word\ndone\n"+
		"%s=%s/$node.conf exec /usr/local/bin/dramigrate-node \"$@\"\n", nvmltest.ConfigEnv, driver)
	if err := os.WriteFile(helper, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return helper, map[string]string{"sh": "/bin/sh", "dramigrate-node": binary}, driver
}

// TestProbe tells the story of a GPU in two hands on real kubelets, and what the nodes
// themselves say of it.
func TestProbe(t *testing.T) {
	t.Parallel()
	nodes := []cluster.NodeSpec{GPUNode("gpu-a-1", "gpu-a", 2), GPUNode("gpu-b-1", "gpu-b", 1)}
	helper, commands, driver := nodeHelper(t, nodes...)
	f := newFixture(t, BenchOptions{Kubelet: cluster.KubeletQuick, Nodes: nodes, Helper: helper, Commands: commands})
	f.ok(f.Apply(f.ctx, &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: ToolNamespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}},
	}))
	p := &probing{fixture: f, driver: driver}
	for _, c := range []struct {
		name string
		run  func(*probing)
	}{
		{"nodes of the plugin alone are clean", (*probing).clean},
		{"plugin and driver both on, two pods on one GPU", (*probing).double},
		{"the plugin is gone, its pod still runs", (*probing).pluginGone},
		{"a kubelet restart hides nothing", (*probing).restarted},
		{"a driver restart hides nothing", (*probing).driverRestarted},
		{"when both pods are gone, what they left on disk is nothing", (*probing).ended},
		{"the List call lets a legacy pod run by DRA after the grace", (*probing).legacyPodRuns},
		{"what cannot be seen is unknown", (*probing).blind},
		{"what may not be read is unknown", (*probing).denied},
	} {
		ok := t.Run(c.name, func(t *testing.T) {
			p.fixture = &fixture{T: t, Bench: f.Bench, ctx: f.ctx}
			c.run(p)
			p.noPodLeft()
		})
		if !ok {
			return // the next part of the story begins where this one ends
		}
	}
}

type probing struct {
	*fixture
	driver         string
	legacy, claims string // the two pods on one GPU
	gpu            string
}

// probe probes a pool and wants an exit code, and a verdict for its one node.
func (p *probing) probe(pool string, code int, want nodeprobe.Verdict, more ...string) *poolprobe.Node {
	p.Helper()
	r := p.run(code, append([]string{"probe", pool, "--helper-image", HelperImage, "--driver-root", p.driver, "-o", "json"}, more...)...)
	var got poolprobe.Result
	if err := json.Unmarshal([]byte(r.Stdout), &got); err != nil {
		p.Fatalf("%v\n%s", err, r)
	}
	if len(got.Nodes) != 1 || got.Verdict != want || got.Nodes[0].Verdict != want {
		p.Fatalf("verdict %q, want %q for one node\n%s", got.Verdict, want, r)
	}
	return &got.Nodes[0]
}

// noPodLeft: the pods of the probes are gone, whatever became of them.
func (p *probing) noPodLeft() {
	p.Helper()
	list, err := p.Client().CoreV1().Pods(ToolNamespace).List(p.ctx, metav1.ListOptions{})
	p.ok(err)
	for _, pod := range list.Items {
		p.Errorf("pod %s is left", pod.Name)
	}
}

func (p *probing) clean() {
	n := p.probe("gpu-a", 0, nodeprobe.Clean)
	if n.GPUs == nil || *n.GPUs != 2 || n.Plugin != 2 || n.DRA != 0 || n.Both != 0 || len(n.Holders) != 0 {
		p.Errorf("GPUs %v, plugin %d, DRA %d, both %d, holders %v; want 2 GPUs, both of the plugin's, and nobody", n.GPUs, n.Plugin, n.DRA, n.Both, n.Holders)
	}
	for i, d := range n.Report.Devices {
		if want := p.GPUs("gpu-a-1").UUIDs(); !slices.Contains(want, d.UUID) || !d.Seen {
			p.Errorf("device %d is %s (seen: %v), want one of %q", i, d.UUID, d.Seen, want)
		}
	}
}

// double gives one GPU to two pods: to one by the plugin, to the other by a claim that
// names its UUID. Nothing in Kubernetes checks for it.
func (p *probing) double() {
	p.ok(p.RunWorkload(p.ctx, "legacy", "gpu-a", 1))
	served, err := p.Workload(p.ctx, "default", "legacy")
	p.ok(err)
	p.legacy, p.gpu = "default/"+served[0].Pod, served[0].Sees[0]

	p.ok(p.Apply(p.ctx, manifests.Driver()...))
	p.ok(Eventually(p.ctx, patience, func() string { return p.published("gpu-a-1", 2) }))
	p.probe("gpu-a", 3, nodeprobe.DoubleAdvertised)

	p.claims = "default/explicit"
	p.ok(p.Apply(p.ctx, claimFor(p.gpu)...))
	p.ok(Eventually(p.ctx, patience, func() string { return p.runs("explicit") }))
	pod, err := p.Client().CoreV1().Pods("default").Get(p.ctx, "explicit", metav1.GetOptions{})
	p.ok(err)
	sees, err := p.Seen(p.ctx, pod)
	p.ok(err)
	if !slices.Equal(sees, []string{p.gpu}) {
		p.Fatalf("the pod with the claim sees %q, want %s: there is nothing to find", sees, p.gpu)
	}
	n := p.probe("gpu-a", 3, nodeprobe.DoubleHeld)
	p.bothNamed(n)
	if n.Both != 2 || n.Plugin != 0 || n.DRA != 0 {
		p.Errorf("plugin %d, DRA %d, both %d; want both of the 2 GPUs offered by both", n.Plugin, n.DRA, n.Both)
	}
	table := p.run(3, "probe", "gpu-a", "--helper-image", HelperImage, "--driver-root", p.driver)
	for _, want := range []string{"DOUBLE-HELD", p.legacy, p.claims} {
		if !strings.Contains(unwrapped(table.Stdout), want) {
			p.Errorf("the table does not say %s:\n%s", want, table.Stdout)
		}
	}
}

// bothNamed wants the GPU to be the one in two hands, and both pods in one reason.
func (p *probing) bothNamed(n *poolprobe.Node) {
	p.Helper()
	for _, d := range n.Report.Devices {
		if (d.Verdict == nodeprobe.DoubleHeld) != (d.UUID == p.gpu) {
			p.Errorf("device %s is %s: %q", d.UUID, d.Verdict, d.Reasons)
		}
	}
	named := slices.ContainsFunc(n.Reasons, func(why string) bool {
		return strings.Contains(why, p.legacy) && strings.Contains(why, p.claims)
	})
	if !named {
		p.Errorf("no reason names %s and %s: %q", p.legacy, p.claims, n.Reasons)
	}
}

func (p *probing) pluginGone() {
	set := manifests.PluginStatic().DaemonSet
	p.ok(p.Client().AppsV1().DaemonSets(set.Namespace).Delete(p.ctx, set.Name, metav1.DeleteOptions{}))
	p.ok(Eventually(p.ctx, patience, func() string { return p.Allocatable(p.ctx, "gpu-a-1", 0) }))
	n := p.probe("gpu-a", 3, nodeprobe.DoubleHeld)
	p.bothNamed(n)
	if n.Both != 0 || n.DRA != 2 {
		p.Errorf("DRA %d, both %d; want 2 GPUs of DRA alone", n.DRA, n.Both)
	}
}

func (p *probing) restarted() {
	p.ok(p.RestartKubelet(p.ctx, "gpu-a-1"))
	// A kubelet that starts removes the node's slices, and the driver publishes them anew
	// some seconds later: meanwhile the answer is unknown, and never clean.
	p.ok(Eventually(p.ctx, patience, p.doubleOrUnknown))
	p.bothNamed(p.probe("gpu-a", 3, nodeprobe.DoubleHeld))
}

// doubleOrUnknown probes the pool whose GPU is in two hands, and never takes it for clean.
func (p *probing) doubleOrUnknown() string {
	p.Helper()
	switch r := p.Tool.Run(p.ctx, "probe", "gpu-a", "--helper-image", HelperImage, "--driver-root", p.driver, "-o", "json"); r.Code {
	case 3:
		return ""
	case 7:
		return "unknown still:\n" + r.String()
	default:
		p.Fatalf("neither double nor unknown:\n%s", r)
		return ""
	}
}

// driverRestarted ends the driver's pod under the two pods, and probes until another has
// taken its place.
func (p *probing) driverRestarted() {
	set := manifests.DriverDaemonSet()
	pods := func() []corev1.Pod {
		list, err := p.PodsOn(p.ctx, "gpu-a-1")
		p.ok(err)
		return slices.DeleteFunc(list, func(pod corev1.Pod) bool {
			owner := metav1.GetControllerOf(&pod)
			return owner == nil || owner.Name != set.Name || pod.Namespace != set.Namespace
		})
	}
	was := pods()
	if len(was) != 1 {
		p.Fatalf("%d pods of the driver are on the node, want one", len(was))
	}
	p.ok(p.Client().CoreV1().Pods(set.Namespace).Delete(p.ctx, was[0].Name, metav1.DeleteOptions{}))
	p.ok(Eventually(p.ctx, patience, func() string {
		double := p.doubleOrUnknown()
		if now := pods(); len(now) != 1 || now[0].UID == was[0].UID || !ready(&now[0]) {
			return "the driver's new pod is not ready"
		}
		return double
	}))
	p.ok(Eventually(p.ctx, patience, func() string { return p.published("gpu-a-1", 2) }))
	p.bothNamed(p.probe("gpu-a", 3, nodeprobe.DoubleHeld))
}

func (p *probing) ended() {
	none := int64(0)
	p.ok(p.Client().AppsV1().Deployments("default").Delete(p.ctx, "legacy", metav1.DeleteOptions{}))
	p.ok(p.Client().CoreV1().Pods("default").Delete(p.ctx, "explicit", metav1.DeleteOptions{GracePeriodSeconds: &none}))
	p.ok(Eventually(p.ctx, patience, func() string {
		list, err := p.Client().CoreV1().Pods("default").List(p.ctx, metav1.ListOptions{})
		p.ok(err)
		if len(list.Items) > 0 {
			return fmt.Sprintf("%d pods are left", len(list.Items))
		}
		return ""
	}))
	// The claim stays; a force-deleted pod's hand on it goes when the kubelet has let go.
	p.ok(Eventually(p.ctx, patience, func() string {
		r := p.Tool.Run(p.ctx, "probe", "gpu-a", "--helper-image", HelperImage, "--driver-root", p.driver)
		if r.Code != 0 {
			return r.String()
		}
		return ""
	}))
	n := p.probe("gpu-a", 0, nodeprobe.Clean)
	if len(n.Holders) != 0 || n.DRA != 2 {
		p.Errorf("holders %v, DRA %d; want nobody, and 2 GPUs of DRA", n.Holders, n.DRA)
	}
}

// legacyPodRuns: once the kubelet's grace for the plugin is over, its memory of the pod
// would keep every DRA container of the resource from starting, had no List been made.
func (p *probing) legacyPodRuns() {
	p.ok(Eventually(p.ctx, quickGrace+patience, func() string {
		n, err := p.Client().CoreV1().Nodes().Get(p.ctx, "gpu-a-1", metav1.GetOptions{})
		p.ok(err)
		if q := n.Status.Capacity[Resource]; !q.IsZero() {
			return "capacity is still " + q.String()
		}
		return ""
	}))
	p.probe("gpu-a", 0, nodeprobe.Clean)
	p.ok(p.Apply(p.ctx, manifests.DeviceClass()))
	p.ok(p.RunWorkload(p.ctx, "bridged", "gpu-a", 1))
	if n := p.onDRA("bridged", "gpu-a-1"); n != 1 {
		p.Errorf("%d pods on DRA, want 1", n)
	}
	n := p.probe("gpu-a", 0, nodeprobe.Clean)
	if len(n.Holders) != 1 || n.Holders[0].By != nodeprobe.ByDRA {
		p.Errorf("holders %v, want the one pod, by DRA", n.Holders)
	}
}

// blind takes one witness after another away. None of it may read as clean.
func (p *probing) blind() {
	n := p.probe("gpu-b", 7, nodeprobe.Undecided, "--driver-root", p.TempDir())
	if !unknownOf(n, nodeprobe.PartHardware) {
		p.Errorf("without the driver's library unknown is %v", n.Report.Unknown)
	}
	socket := filepath.Join(p.KubeletDir("gpu-b-1"), "pod-resources", "kubelet.sock")
	p.ok(os.Rename(socket, socket+".away"))
	n = p.probe("gpu-b", 7, nodeprobe.Undecided)
	p.ok(os.Rename(socket+".away", socket))
	if !unknownOf(n, nodeprobe.PartHolders) {
		p.Errorf("without the kubelet's socket unknown is %v", n.Report.Unknown)
	}
	logs := p.TempDir()
	n = p.probe("gpu-b", 7, nodeprobe.Undecided, "--driver-root", "/nowhere", "--timeout", "15s", "--keep-logs", logs)
	if n.Report != nil || n.Error == "" || n.Source != poolprobe.FromAPI {
		p.Errorf("a pod that cannot start gives %+v", n)
	}
}

// denied takes the right to read away from the pods' user. Only a pod that is not
// privileged heeds that: one without a driver root, which does not see the GPUs.
func (p *probing) denied() {
	n := p.probe("gpu-b", 7, nodeprobe.Undecided, "--driver-root", "")
	for _, part := range []string{nodeprobe.PartAdvertised, nodeprobe.PartHolders, nodeprobe.PartDeviceManager} {
		if unknownOf(n, part) {
			p.Fatalf("%s is unknown before anything is denied: %v", part, n.Report.Unknown)
		}
	}
	for _, c := range []struct {
		file  string
		parts []string
	}{
		{"pod-resources/kubelet.sock", []string{nodeprobe.PartAdvertised, nodeprobe.PartHolders}},
		{"device-plugins/kubelet_internal_checkpoint", []string{nodeprobe.PartDeviceManager}},
		{"pods", []string{nodeprobe.PartPodFolders}},
	} {
		file := filepath.Join(p.KubeletDir("gpu-b-1"), c.file)
		was, err := os.Stat(file)
		p.ok(err)
		const somebody = 12345
		p.ok(os.Chown(file, somebody, somebody))
		p.ok(os.Chmod(file, 0o700))
		n := p.probe("gpu-b", 7, nodeprobe.Undecided, "--driver-root", "")
		p.ok(os.Chown(file, 0, 0))
		p.ok(os.Chmod(file, was.Mode().Perm()))
		for _, part := range c.parts {
			if why := whyUnknown(n, part); !strings.Contains(why, "permission") {
				p.Errorf("%s denied: %s is unknown for %q, want a lack of permission: %v", c.file, part, why, n.Report.Unknown)
			}
		}
	}
	n = p.probe("gpu-b", 7, nodeprobe.Undecided, "--driver-root", "")
	if unknownOf(n, nodeprobe.PartHolders) || unknownOf(n, nodeprobe.PartDeviceManager) {
		p.Errorf("when all may be read again unknown is %v", n.Report.Unknown)
	}
}

// whyUnknown is the reason for which a part is unknown; empty if it is known.
func whyUnknown(n *poolprobe.Node, part string) string {
	if n.Report == nil {
		return n.Error
	}
	for _, u := range n.Report.Unknown {
		if u.Part == part {
			return u.Reason
		}
	}
	return ""
}

func unknownOf(n *poolprobe.Node, part string) bool {
	return n.Report != nil && slices.ContainsFunc(n.Report.Unknown, func(u nodeprobe.Unknown) bool { return u.Part == part })
}

// published says how the driver's devices of a node differ from want.
func (p *probing) published(node string, want int) string {
	list, err := p.Client().ResourceV1().ResourceSlices().List(p.ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()})
	p.ok(err)
	n := 0
	for _, s := range list.Items {
		n += len(s.Spec.Devices)
	}
	if n != want {
		return fmt.Sprintf("node/%s publishes %d devices, want %d", node, n, want)
	}
	return ""
}

// runs waits for a pod that has told its GPUs.
func (p *probing) runs(name string) string {
	pod, err := p.Client().CoreV1().Pods("default").Get(p.ctx, name, metav1.GetOptions{})
	p.ok(err)
	sees, err := p.Seen(p.ctx, pod)
	if pod.Status.Phase != corev1.PodRunning || err != nil || len(sees) == 0 {
		return fmt.Sprintf("pod %s is %s and sees %q (%v)", name, pod.Status.Phase, sees, err)
	}
	return ""
}

// claimFor is a pod with an explicit claim for the GPU, and the class that it takes.
func claimFor(gpu string) []kruntime.Object {
	pod := manifests.WorkloadPod("default", "explicit", map[string]string{PoolLabel: "gpu-a"})
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}
	name := "explicit"
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &name}}
	expression := func(text string) []resourcev1.DeviceSelector {
		return []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: text}}}
	}
	return []kruntime.Object{
		&resourcev1.DeviceClass{
			TypeMeta:   metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "DeviceClass"},
			ObjectMeta: metav1.ObjectMeta{Name: "explicit"},
			Spec:       resourcev1.DeviceClassSpec{Selectors: expression(`device.driver == "` + Driver + `"`)},
		},
		&resourcev1.ResourceClaim{
			TypeMeta:   metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaim"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
				Name: "gpu",
				Exactly: &resourcev1.ExactDeviceRequest{
					DeviceClassName: "explicit", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
					Selectors: expression(fmt.Sprintf("device.attributes[%q].uuid == %q", Driver, gpu)),
				},
			}}}},
		},
		pod,
	}
}
