package checks

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// fleet is a cluster at the limits of Kubernetes: 5,000 nodes and 150,000 pods. 4,000
// nodes have eight GPUs, half of them on DRA already, and each 8 pods with one GPU.
func fleet() *state {
	const nodes, gpuNodes, pods = 5000, 4000, 150000
	s := prepared()
	s.Nodes, s.Pods = nil, nil
	s.Classes = []resourcev1.DeviceClass{class("gpu.nvidia.com", ofGPUs)}
	for i := range nodes {
		name := fmt.Sprintf("node-%04d", i)
		if i >= gpuNodes {
			s.Nodes = append(s.Nodes, cpuNode(name))
			continue
		}
		n := gpuNode(name, fmt.Sprintf("pool-%d", i%4), 8)
		n.Labels[gfdCount] = "8"
		s.Nodes = append(s.Nodes, n)
		for _, d := range []string{"dcgm", "network", "storage"} {
			s.runDaemon(d, name)
		}
		if i%2 == 0 {
			s.runDaemon("plugin", name)
			for g := range 8 {
				p := s.addPod(fmt.Sprintf("train-%04d-%d", i, g), name, 1)
				p.Labels["app"] = fmt.Sprintf("train-%d", i%500)
			}
			continue
		}
		s.Nodes[i].Status.Allocatable[gpu] = resource.MustParse("0")
		s.Nodes[i].Labels["dramigrate.dev/allocation"] = "dra"
		st := cluster.NodeState{Pool: fmt.Sprintf("pool-%d", i%4), Selector: "x", Operation: Migrate, Run: "r", Epoch: 1, Resources: []string{gpu}, OpenedAt: &metav1.Time{}}
		raw, err := st.Encode()
		if err != nil {
			panic(err)
		}
		s.Nodes[i].Annotations["dramigrate.dev/state"] = raw
		s.runDaemon("driver", name)
		var devices []string
		for g := range 8 {
			devices = append(devices, fmt.Sprintf("gpu-%d", g))
		}
		s.Slices = append(s.Slices, nodeSlice(name, driver, devices...))
		for g := range 8 {
			p := s.addPod(fmt.Sprintf("infer-%04d-%d", i, g), name, 1)
			claim := p.Name + "-extended-resources-1"
			p.Bridge = &cluster.Bridge{Claim: claim, Mappings: []cluster.Mapping{{Container: "main", Resource: gpu, Request: "container-0-request-0"}}}
			c := resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: claim}}
			c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
				Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: driver, Pool: name, Device: devices[g]}},
			}}
			c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: p.Name, UID: p.UID}}
			s.Claims = append(s.Claims, c)
		}
	}
	// Jobs that hold a claim of their own beside the resource: what DRM006 looks for.
	for i := range 200 {
		p := s.addPod(fmt.Sprintf("both-%03d", i), "", 1)
		p.Claims = []string{"channel"}
		p.Bridge = &cluster.Bridge{Claim: "gone"}
	}
	for i := range 500 {
		s.Budgets = append(s.Budgets, policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprintf("train-%03d", i)},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("train-%d", i)}}},
			Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1},
		})
	}
	for i := len(s.Pods); i < pods; i++ {
		s.Pods = append(s.Pods, cluster.Pod{
			Namespace: fmt.Sprintf("ns-%d", i%1000), Name: fmt.Sprintf("web-%d", i), UID: types.UID(fmt.Sprintf("web-%d", i)),
			Node: s.Nodes[i%nodes].Name, Phase: corev1.PodRunning, Ready: true, Labels: map[string]string{"app": "web"},
			Owner: cluster.Owner{Kind: "ReplicaSet", Name: "web"},
		})
	}
	return s
}

// BenchmarkFleet runs the catalogue for all nodes at once, each operation as `check`
// does. The goal is two seconds for prepare and migrate together.
func BenchmarkFleet(b *testing.B) {
	s := fleet()
	for _, op := range []string{Prepare, Migrate, Rollback} {
		in := s.of(op)
		in.Pool = cluster.NodePool{}
		b.Run(op, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Run(in)
			}
		})
	}
}

// BenchmarkChecks tells what each check costs there.
func BenchmarkChecks(b *testing.B) {
	s := fleet()
	for _, op := range []string{Prepare, Migrate, Rollback} {
		in := s.of(op)
		in.Pool = cluster.NodePool{}
		in = in.indexed()
		for _, c := range All() {
			if !c.applies(in) || len(c.missing(in.Snapshot)) > 0 {
				continue
			}
			b.Run(op+"/"+c.Code, func(b *testing.B) {
				for b.Loop() {
					c.Run(in)
				}
			})
		}
	}
}
