package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
)

// buildTimeout covers a first build of Kubernetes; readyBound is what a start
// may take once everything is built, on a machine that does other things too.
const (
	buildTimeout = 30 * time.Minute
	readyBound   = 90 * time.Second
	podBound     = time.Minute
)

// needNodes skips where real kubelets cannot run, except in CI, where that is a
// fault of the machine.
func needNodes(t *testing.T) {
	t.Helper()
	missing := cluster.Missing()
	if len(missing) == 0 {
		return
	}
	text := "real kubelets cannot run here: " + strings.Join(missing, "; ")
	if os.Getenv("CI") == "true" {
		t.Fatal(text)
	}
	t.Skip(text)
}

// TestRealNodes starts two clusters at once, looks at one in depth and leaves
// nothing behind.
func TestRealNodes(t *testing.T) {
	needNodes(t)
	ctx, cancel := context.WithTimeout(t.Context(), buildTimeout)
	defer cancel()
	taint := corev1.Taint{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}
	begin := time.Now()
	c := mustStart(t, ctx, cluster.Options{
		Nodes: []cluster.NodeSpec{
			{Name: "gpu-1", GPUs: 2, Labels: map[string]string{"node-role.kubernetes.io/gpu": ""}, Taints: []corev1.Taint{taint}},
			{Name: "cpu-1"},
		},
	})
	other := mustStart(t, ctx, cluster.Options{Nodes: []cluster.NodeSpec{{Name: "gpu-1", GPUs: 1}}})
	if c.RESTConfig().Host == other.RESTConfig().Host {
		t.Errorf("both clusters are at %s", c.RESTConfig().Host)
	}
	t.Logf("two clusters after %s", time.Since(begin).Round(time.Millisecond))

	t.Run("nodes", func(t *testing.T) { checkNodes(t, ctx, c, taint) })
	t.Run("pod", func(t *testing.T) { checkPod(t, ctx, c) })
	t.Run("kubelet", func(t *testing.T) { checkKubeletRestart(t, ctx, c) })
	t.Run("version", func(t *testing.T) {
		v, err := c.Client().Discovery().ServerVersion()
		if err != nil || v.GitVersion != cluster.DefaultVersion || v.Major != "1" || v.Minor != "37" {
			t.Errorf("version %v, %v, want %s", v, err, cluster.DefaultVersion)
		}
	})

	dirs := []string{c.Dir(), other.Dir()}
	family := append(descendants(t, c.Dir()), descendants(t, other.Dir())...)
	if len(family) < 2*7 {
		t.Errorf("found only %d processes of two clusters: %v", len(family), family)
	}
	if mounts := lines(t, "/proc/self/mountinfo", dirs); len(mounts) > 0 {
		t.Errorf("mounts of the nodes are seen on the host:\n%s", strings.Join(mounts, "\n"))
	}
	for _, running := range []*cluster.Cluster{c, other} {
		if err := running.Stop(); err != nil {
			t.Error(err)
		}
	}
	// What stood in a process's own namespace is killed with it by the kernel, which on
	// a busy machine takes its time to bury it.
	for _, p := range family {
		if err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
			return statOf(p.pid) != p, nil
		}); err != nil {
			t.Errorf("process %d (%s) is left", p.pid, p.name)
		}
	}
	if left := processesOf(t, dirs); len(left) > 0 {
		t.Errorf("processes are left:\n%s", strings.Join(left, "\n"))
	}
	if mounts := lines(t, "/proc/self/mountinfo", dirs); len(mounts) > 0 {
		t.Errorf("mounts are left:\n%s", strings.Join(mounts, "\n"))
	}
	for _, dir := range dirs {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", dir, err)
		}
	}
}

func mustStart(t *testing.T, ctx context.Context, o cluster.Options) *cluster.Cluster {
	t.Helper()
	o.Log = t.Output()
	c, err := cluster.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func checkNodes(t *testing.T, ctx context.Context, c *cluster.Cluster, taint corev1.Taint) {
	n, err := c.Client().CoreV1().Nodes().Get(ctx, "gpu-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := n.Labels["node-role.kubernetes.io/gpu"]; !ok {
		t.Errorf("labels %v lack the spec's", n.Labels)
	}
	if len(n.Spec.Taints) != 1 || !n.Spec.Taints[0].MatchTaint(&taint) || n.Spec.Taints[0].Value != "present" {
		t.Errorf("taints %v, want only the spec's", n.Spec.Taints)
	}
	if n.Status.NodeInfo.KubeletVersion != cluster.DefaultVersion {
		t.Errorf("kubelet %s", n.Status.NodeInfo.KubeletVersion)
	}
	var internal string
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			internal = a.Address
		}
	}
	if !strings.HasPrefix(internal, "127.") || !strings.HasSuffix(internal, ".11") {
		t.Errorf("address %q, want the eleventh of a loopback block", internal)
	}
	if got := c.GPUs("gpu-1").UUIDs(); len(got) != 2 || got[0] == got[1] {
		t.Errorf("GPUs %v, want two", got)
	}
	// The kubelet must not have set the machine's kernel up for itself.
	host, err := os.ReadFile("/proc/sys/vm/overcommit_memory")
	if err != nil {
		t.Fatal(err)
	}
	shadow, err := os.ReadFile(filepath.Join(c.Dir(), "nodes", "gpu-1", "sysctl", "overcommit_memory"))
	if err != nil || strings.TrimSpace(string(shadow)) != "1" {
		t.Errorf("the node's own vm.overcommit_memory is %q, %v, want the kubelet's 1 (the host's is %q)", shadow, err, host)
	}
}

// checkPod runs a shipped command to its end and reads its log through the API
// server and the kubelet.
func checkPod(t *testing.T, ctx context.Context, c *cluster.Cluster) {
	pods := c.Client().CoreV1().Pods("default")
	created := time.Now()
	_, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "smi"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "smi", Image: "nvcr.io/nvidia/cuda:13.0.1-base", Command: []string{"nvidia-smi"}, Args: []string{"-L"}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := awaitPod(t, ctx, c, "smi", func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	t.Logf("ended %s after it was created", time.Since(created).Round(time.Millisecond))
	if p.Spec.NodeName != "cpu-1" {
		t.Errorf("ran on %s, though the other node has a taint", p.Spec.NodeName)
	}
	// Without a GPU nvidia-smi ends with code 6 (its manual, RETURN VALUE).
	state := p.Status.ContainerStatuses[0].State.Terminated
	if state == nil || state.ExitCode != 6 {
		t.Errorf("state %+v, want exit code 6", p.Status.ContainerStatuses[0].State)
	}
	log, err := pods.GetLogs("smi", &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil || !bytes.Contains(log, []byte("No devices were found")) {
		t.Errorf("log %q, %v", log, err)
	}
}

// checkKubeletRestart shows that containers live on while the kubelet does not.
func checkKubeletRestart(t *testing.T, ctx context.Context, c *cluster.Cluster) {
	pods := c.Client().CoreV1().Pods("default")
	_, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pause"},
		Spec: corev1.PodSpec{
			NodeName:                      "cpu-1",
			TerminationGracePeriodSeconds: new(int64(5)),
			Containers:                    []corev1.Container{{Name: "pause", Image: "registry.k8s.io/pause:3.10"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	before := awaitPod(t, ctx, c, "pause", isReady)
	if err := c.RestartKubelet(ctx, "cpu-1"); err != nil {
		t.Fatal(err)
	}
	// A new kubelet has to be there to end the pod, and must have found the same
	// container.
	started := before.Status.ContainerStatuses[0].ContainerID
	_, err = pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "after"},
		Spec:       corev1.PodSpec{NodeName: "cpu-1", Containers: []corev1.Container{{Name: "pause", Image: "registry.k8s.io/pause:3.10"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	awaitPod(t, ctx, c, "after", isReady)
	now, err := pods.Get(ctx, "pause", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s := now.Status.ContainerStatuses[0]; s.ContainerID != started || s.RestartCount != 0 {
		t.Errorf("container %s with %d restarts, want %s to have lived on", s.ContainerID, s.RestartCount, started)
	}
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func awaitPod(t *testing.T, ctx context.Context, c *cluster.Cluster, name string, ok func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, podBound)
	defer cancel()
	list := cache.NewListWatchFromClient(c.Client().CoreV1().RESTClient(), "pods", "default", fields.OneTermEqualSelector("metadata.name", name))
	var last *corev1.Pod
	_, err := toolswatch.UntilWithSync(ctx, list, &corev1.Pod{}, nil, func(e watch.Event) (bool, error) {
		p, is := e.Object.(*corev1.Pod)
		if is {
			last = p
		}
		return is && ok(p), nil
	})
	if err != nil {
		t.Fatalf("pod/%s: %v; status: %+v", name, err, last)
	}
	return last
}

// proc is a process as /proc/<pid>/stat tells it (proc(5)).
type proc struct {
	pid, parent   int
	name, started string
}

// statOf is the zero value for a process that is not there or has ended.
func statOf(pid int) proc {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return proc{}
	}
	stat := string(text)
	open, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[end+1:])
	if fields[0] == "Z" {
		return proc{}
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return proc{}
	}
	return proc{pid: pid, parent: parent, name: stat[open+1 : end], started: fields[19]}
}

// descendants lists the programs that a cluster has started and all that these
// have: containers, too.
func descendants(t *testing.T, dir string) []proc {
	t.Helper()
	state, err := cluster.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	family := map[int]bool{}
	for _, p := range state.Processes {
		family[p.PID] = true
	}
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var all []proc
	for _, e := range entries {
		if pid, err := strconv.Atoi(filepath.Base(e)); err == nil {
			all = append(all, statOf(pid))
		}
	}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if family[p.parent] && !family[p.pid] {
				family[p.pid], grown = true, true
			}
		}
	}
	return slices.DeleteFunc(all, func(p proc) bool { return !family[p.pid] })
}

// processesOf lists processes whose command line, program or working folder
// names one of the folders.
func processesOf(t *testing.T, dirs []string) []string {
	t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		// A process that ends meanwhile leaves nothing to read.
		cmdline, _ := os.ReadFile(filepath.Join(e, "cmdline"))
		exe, _ := os.Readlink(filepath.Join(e, "exe"))
		cwd, _ := os.Readlink(filepath.Join(e, "cwd"))
		for _, dir := range dirs {
			if strings.Contains(string(cmdline), dir) || strings.HasPrefix(exe, dir) || strings.HasPrefix(cwd, dir) {
				out = append(out, filepath.Base(e)+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
			}
		}
	}
	return out
}

func lines(t *testing.T, file string, contain []string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		if slices.ContainsFunc(contain, func(s string) bool { return strings.Contains(line, s) }) {
			out = append(out, line)
		}
	}
	return out
}

// A control plane needs neither Linux nor root.
func TestControlPlaneAlone(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), buildTimeout)
	defer cancel()
	mustStart(t, ctx, cluster.Options{}) // builds, if need be
	begin := time.Now()
	c := mustStart(t, ctx, cluster.Options{})
	if took := time.Since(begin); took > readyBound {
		t.Errorf("ready after %s, want at most %s", took, readyBound)
	}
	if _, err := c.Client().CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
