package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/dramigrate/dramigrate/internal/nodeprobe"
	"github.com/dramigrate/dramigrate/internal/nvml"
	"github.com/dramigrate/dramigrate/internal/poolprobe"
	"github.com/dramigrate/dramigrate/test/cluster/cluster"
	"github.com/dramigrate/dramigrate/test/cluster/internal/gpu"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

// BenchmarkProbe200Nodes is one `dramigrate probe` of a pool of 200 nodes with 8 GPUs
// each. API server, scheduler and controllers are real, and so is all that the verb does
// with them: a pod for each node is made, bound, watched, read and removed. The nodes are
// simulated, and what their pods answer is made up here, so that no time is a node's but
// the simulation's 0.7 s from a pod's binding to its start.
func BenchmarkProbe200Nodes(b *testing.B) {
	const nodes, gpus = 200, 8
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	options := cluster.Options{Kubelet: cluster.KubeletQuick, Log: b.Output()}
	for i := range nodes {
		options.SimNodes = append(options.SimNodes, GPUNode(fmt.Sprintf("gpu-%03d", i), "gpu-a", gpus))
	}
	c, err := cluster.Start(ctx, options)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := c.Stop(); err != nil {
			b.Error(err)
		}
	}()
	err = c.Apply(ctx, manifests.PluginStatic().DaemonSet, &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: ToolNamespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}},
	})
	if err != nil {
		b.Fatal(err)
	}
	if why := Eventually(ctx, patience, func() string { return pluginOn(ctx, c.Client(), nodes, gpus) }); why != "" {
		b.Fatal(why)
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		b.Fatal(err)
	}
	stub := &answering{client: c.Client(), reports: map[string][]byte{}}
	for _, n := range options.SimNodes {
		if err := stub.say(n.Name, gpu.NewSet(n.Name, gpus).UUIDs()); err != nil {
			b.Fatal(err)
		}
	}
	kubeconfig, err := stub.serve(ctx, config, b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	tool := Tool{Binary: binaries.tool, Kubeconfig: kubeconfig}
	for b.Loop() {
		r := tool.Run(ctx, "probe", "gpu-a", "--helper-image", HelperImage, "-o", "json")
		var got poolprobe.Result
		if err := json.Unmarshal([]byte(r.Stdout), &got); err != nil || r.Code != 0 || len(got.Nodes) != nodes {
			b.Fatalf("%d nodes, %v\n%s", len(got.Nodes), err, r)
		}
		for _, n := range got.Nodes {
			if n.Plugin != gpus || n.Verdict != nodeprobe.Clean || n.Source != poolprobe.FromNode {
				b.Fatalf("node %s: %d GPUs of the plugin's, %s by the %s", n.Name, n.Plugin, n.Verdict, n.Source)
			}
		}
	}
	b.StopTimer()
	left, err := c.Client().CoreV1().Pods(ToolNamespace).List(ctx, metav1.ListOptions{})
	if err != nil || len(left.Items) > 0 {
		b.Errorf("%d pods are left (%v)", len(left.Items), err)
	}
}

// pluginOn says how many nodes do not offer their GPUs yet.
func pluginOn(ctx context.Context, client kubernetes.Interface, nodes, gpus int) string {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	on := 0
	for _, n := range list.Items {
		if q := n.Status.Allocatable[Resource]; q.Value() == int64(gpus) {
			on++
		}
	}
	if on != nodes {
		return fmt.Sprintf("%d of %d nodes offer %d GPUs", on, nodes, gpus)
	}
	return ""
}

// answering stands for what runs in the helper pods of simulated nodes: it ends each as
// soon as it runs, and has its log. Only logs are not the API server's.
type answering struct {
	client kubernetes.Interface

	mu      sync.Mutex
	reports map[string][]byte // by node
	nodes   sync.Map          // by pod
}

// say makes the report of a node on which the plugin offers the GPUs, and nobody has one.
func (a *answering) say(node string, uuids []string) error {
	r := nodeprobe.NodeReport{
		APIVersion: nodeprobe.APIVersion, Kind: nodeprobe.Kind, Node: node, Time: time.Now().UTC(), ListCalled: true,
		Parts:      []nodeprobe.Part{nodeprobe.AskKubelet, nodeprobe.AskNVML, nodeprobe.AskCheckpoints},
		Advertised: map[string][]string{Resource: uuids}, Holders: []nodeprobe.Holder{},
		Hardware: &nvml.Host{},
		Files: &nodeprobe.Files{
			DeviceManager: &nodeprobe.DeviceManager{}, Claims: []nodeprobe.ClaimRecord{}, DriverCheckpoints: []nodeprobe.DriverCheckpoint{},
			PodFolders: []string{}, Sockets: &nodeprobe.Sockets{},
		},
	}
	for i, id := range uuids {
		r.Hardware.Devices = append(r.Hardware.Devices, nvml.Device{
			UUID: id, PCIBusID: fmt.Sprintf("0000:%02x:00.0", i+1), MIG: []nvml.MIGDevice{}, Processes: []nvml.Process{},
		})
	}
	data, err := json.Marshal(r)
	a.reports[node] = append(data, '\n')
	return err
}

// serve gives a kubeconfig for the cluster with the logs.
func (a *answering) serve(ctx context.Context, config *rest.Config, dir string) (string, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return "", err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	pods, err := a.client.CoreV1().Pods(ToolNamespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		_ = listener.Close()
		return "", err
	}
	go a.end(ctx, pods)
	next := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport, FlushInterval: -1}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pod, isLog := strings.CutSuffix(r.URL.Path, "/log")
		node, known := a.nodes.Load(pod[strings.LastIndexByte(pod, '/')+1:])
		if !isLog || !known {
			next.ServeHTTP(w, r)
			return
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		_, _ = w.Write(a.reports[node.(string)])
	})}
	go func() { _ = server.Serve(listener) }()
	context.AfterFunc(ctx, func() { _ = server.Close() })

	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["stub"] = &clientcmdapi.Cluster{Server: "http://" + listener.Addr().String()}
	kubeconfig.Contexts["stub"] = &clientcmdapi.Context{Cluster: "stub"}
	kubeconfig.CurrentContext = "stub"
	file := filepath.Join(dir, "kubeconfig")
	return file, clientcmd.WriteToFile(*kubeconfig, file)
}

// end ends the pods that run.
func (a *answering) end(ctx context.Context, pods watch.Interface) {
	for e := range pods.ResultChan() {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok || pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			continue
		}
		a.nodes.Store(pod.Name, pod.Spec.NodeName)
		pod = pod.DeepCopy()
		now := metav1.Now()
		pod.Status.Phase = corev1.PodSucceeded
		for i := range pod.Status.ContainerStatuses {
			s := &pod.Status.ContainerStatuses[i]
			s.Ready, s.State = false, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now}}
		}
		// One that was removed, or written by somebody else, comes again or is no matter.
		_, _ = a.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	}
}
