package clusters

import (
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/plan"
)

const (
	nvidiaDriver = "dra-driver-nvidia-gpu"
	// noDriver is among the findings of every migration before prepare.
	noDriver = "blocker DRM015 driver/gpu.nvidia.com"
	ownClass = "create dramigrate-nvidia-gpu"
	// heldClass came with the manifests; prepare keeps it back.
	heldClass = "create gpu.nvidia.com"
	static    = "kube-system/nvidia-device-plugin-daemonset"
)

// sites are the clusters of testdata/clusters. Where somebody else owns the plugin's
// DaemonSet, its vendor's switch is the gate; where it has none, the right plan names
// the owner, shows what is to change there, and is refused until it has.
func sites() []site {
	return []site{
		standaloneChart(), staticManifest(), gpuOperator(), gke(), aksManaged(), aksNewPool(), bottlerocket(), eksKarpenter(),
		openShift(), migMixed(), timeSlicing(), doubleAdvertised(), amd(), intelGPU(), gaudi(), tpu(), migrated(), cpuOnly(), computeDomains(),
	}
}

func standaloneChart() site {
	const ds = "nvidia-device-plugin/nvdp-nvidia-device-plugin"
	a, h := "ip-10-0-21-10", "ip-10-0-31-20"
	const zone = ".us-west-2.compute.internal"
	unprepared := []string{"blocker DRM003 daemonset/" + ds, noDriver}
	return site{
		name: "standalone-chart",
		// GPU Feature Discovery has the plugin's image and labels, and is none. The EFA
		// plugin is in the same folder and serves something else.
		owners: map[string]string{ds: "Helm release nvidia-device-plugin/nvdp"},
		plans: []wanted{
			{
				op: plan.Prepare, manifests: nvidiaDriver, class: heldClass, refused: true,
				findings:  []string{"blocker DRM003 daemonset/" + ds},
				restarted: []string{ds + "-4zk7p", ds + "-c8xvn", ds + "-q2m5d", ds + "-x9wlt"},
			},
			{
				op: plan.Migrate, pool: "gpu-a10g", refused: true, class: ownClass, findings: unprepared,
				batches: a + "1" + zone + " | " + a + "2" + zone,
				evicted: []string{"inference/llm-gateway-6f9c7b8d5-2xk9q", "inference/llm-gateway-6f9c7b8d5-8mzvw"},
			},
			{
				op: plan.Migrate, pool: "gpu-h100", refused: true, class: ownClass,
				findings: append([]string{"warning DRM122 pool/gpu-h100"}, unprepared...),
				batches:  h + "1" + zone + " | " + h + "2" + zone,
				evicted:  []string{"training/pretrain-7b-worker-0", "training/pretrain-7b-worker-1"},
			},
		},
	}
}

func staticManifest() site {
	const ds = "daemonset/" + static
	return site{
		name:   "static-manifest",
		owners: map[string]string{static: "nobody"},
		plans: []wanted{
			{
				// It tolerates only the GPU taint: every node but the control plane's.
				op: plan.Prepare, manifests: nvidiaDriver, class: heldClass,
				findings:  []string{"warning DRM071 nodes"},
				restarted: []string{static + "-jq8zt", static + "-r5ndk", static + "-w7vxl", static + "-bm4cg", static + "-t9phf"},
			},
			{
				op: plan.Migrate, pool: "train-a100", selector: "pool=train-a100", refused: true, class: ownClass,
				findings: []string{"blocker DRM015 " + ds, noDriver,
					"blocker DRM019 pod/research/notebook-anna", "blocker DRM019 pod/research/notebook-anna", // bare, and an emptyDir
					"warning DRM122 pool/train-a100", // no other node has four GPUs left for finetune-0
					"warning DRM138 daemonset/monitoring/dcgm-exporter"},
				batches: "a100-1 | a100-2",
				evicted: []string{"research/finetune-0", "research/notebook-anna"}, // old-eval has ended
			},
			{
				op: plan.Migrate, pool: "infer-l40s", selector: "pool=infer-l40s", refused: true, class: ownClass,
				findings: []string{"blocker DRM015 " + ds, noDriver,
					"blocker DRM019 replicaset/inference/triton-5b7d9f6c4", "blocker DRM018 replicaset/inference/triton-5b7d9f6c4",
					"warning DRM138 daemonset/monitoring/dcgm-exporter"},
				batches: "l40s-1 | l40s-2",
				evicted: []string{"inference/triton-5b7d9f6c4-kx2nv", "inference/triton-5b7d9f6c4-pm8wq"}, // web has no GPU
			},
		},
	}
}

func gpuOperator() site {
	const ds, mps = "gpu-operator/nvidia-device-plugin-daemonset", "gpu-operator/nvidia-device-plugin-mps-control-daemon"
	return site{
		name:   "gpu-operator",
		owners: map[string]string{ds: "operator ClusterPolicy/cluster-policy", mps: "operator ClusterPolicy/cluster-policy"},
		plans: []wanted{
			{
				// The operator's labels move its plugin: no edit, no restart.
				op: plan.Prepare, manifests: nvidiaDriver, class: heldClass, gate: gate.GPUOperatorName,
			},
			{
				op: plan.Migrate, pool: "dgx", selector: "node-pool=dgx", refused: true, class: ownClass, gate: gate.GPUOperatorName,
				findings: []string{noDriver, "warning DRM138 daemonset/gpu-operator/nvidia-dcgm-exporter"},
				batches:  "dgx-01 | dgx-02",
				evicted:  []string{"nlp/embed-0", "nlp/embed-1"}, // the validator's pod has ended
			},
			{
				// The operator is at work on edge-02, and brings the plugin back there.
				op: plan.Migrate, pool: "edge", selector: "node-pool=edge", refused: true, class: ownClass, gate: gate.GPUOperatorName,
				findings: []string{"blocker DRM060 node/edge-02", "blocker DRM081 node/edge-02", noDriver,
					"warning DRM138 daemonset/gpu-operator/nvidia-dcgm-exporter"},
				batches: "edge-01", skipped: []string{"edge-02 has no nvidia.com/gpu"},
				evicted: []string{"vision/detector-8494bd5f7d-vq7rn"},
			},
		},
	}
}

func migMixed() site {
	const ds = "nvidia-device-plugin/nvdp-nvidia-device-plugin"
	both := []string{"nvidia.com/gpu", "nvidia.com/mig-1g.10gb"}
	return site{
		name: "mig-mixed",
		// The labels of a chart prove nothing about an object that kubectl applied.
		owners: map[string]string{ds: "nobody"},
		plans: []wanted{
			{
				op: plan.Prepare, manifests: nvidiaDriver, class: heldClass, resources: both,
				restarted: []string{ds + "-2vqzk", ds + "-8wmtd", ds + "-j5xbn", ds + "-r7pcl"},
			},
			{
				op: plan.Migrate, pool: "a100-mig", selector: "pool=a100-mig", refused: true, class: ownClass, resources: both,
				findings: []string{"blocker DRM009 node/a100-mig-1", "blocker DRM009 node/a100-mig-2", "blocker DRM015 daemonset/" + ds, noDriver,
					"blocker DRM100 resource/nvidia.com/mig-1g.10gb"}, // it needs a class of its own
				batches: "a100-mig-2", skipped: []string{"a100-mig-1 has no nvidia.com/gpu"},
				evicted: []string{"teach/lab-5c7d8f9b6-x9tnd", "train/sft-0"}, // slices of one plugin leave together
			},
			{
				// The key of a resource that once was stays as 0, and is no partition. On
				// a100-full-2 mig-manager is about to change that.
				op: plan.Migrate, pool: "a100-full", selector: "pool=a100-full", refused: true, class: ownClass, resources: both,
				findings: []string{"blocker DRM009 node/a100-full-2", "blocker DRM015 daemonset/" + ds, noDriver},
				batches:  "a100-full-1 | a100-full-2", evicted: []string{"train/sft-1"},
			},
		},
	}
}

func timeSlicing() site {
	const ds = "gpu/gpu-stack-nvidia-device-plugin"
	both := []string{"nvidia.com/gpu", "nvidia.com/gpu.shared"}
	unprepared := []string{"blocker DRM003 daemonset/" + ds, noDriver}
	return site{
		name:   "time-slicing",
		owners: map[string]string{ds: "Argo CD application gpu-stack"},
		plans: []wanted{
			{
				op: plan.Prepare, manifests: nvidiaDriver, class: heldClass, refused: true, resources: both,
				findings:  []string{"blocker DRM003 daemonset/" + ds},
				restarted: []string{ds + "-5mzkq", ds + "-c9xwd", ds + "-h3vtn", ds + "-w6pbl"},
			},
			{
				op: plan.Migrate, pool: "dev", selector: "pool=dev", refused: true, class: ownClass, resources: both,
				findings: append([]string{"blocker DRM008 pool/dev"}, unprepared...),
				batches:  "t4-dev-1 | t4-dev-2", evicted: []string{"dev/sandbox-0", "dev/sandbox-1"},
			},
			{
				op: plan.Migrate, pool: "ci", selector: "pool=ci", refused: true, class: ownClass, resources: both,
				findings: append([]string{"blocker DRM008 node/t4-ci-1", "blocker DRM101 job/ci/unit-tests", "warning DRM057 pool/ci", "warning DRM110 job/ci/unit-tests"}, unprepared...),
				skipped:  []string{"t4-ci-1 has no nvidia.com/gpu"},
			},
			{
				op: plan.Migrate, pool: "prod", selector: "pool=prod", refused: true, class: ownClass, resources: both,
				findings: unprepared,
				batches:  "t4-prod-1", evicted: []string{"prod/ocr-79c5f8d6b-zq4km"},
			},
		},
	}
}

func doubleAdvertised() site {
	const driver = "dra-driver-nvidia-gpu/dra-driver-nvidia-gpu-kubelet-plugin"
	n := func(last string) string { return "ip-10-4-1-" + last + ".ec2.internal" }
	return site{
		name:   "double-advertised",
		owners: map[string]string{static: "nobody", driver: "nobody"},
		plans: []wanted{
			{
				// The run goes on: the closed node first. The node with two mechanisms stops
				// everything, and has to settle again: its kubelet has met the plugin since.
				op: plan.Migrate, pool: "gpu-a", refused: true, class: "adopt gpu.nvidia.com",
				findings: []string{"blocker DRM010 node/" + n("12"), "blocker DRM095 node/" + n("12"), "warning DRM122 pool/gpu-a"},
				batches:  n("13") + " | " + n("12") + " | " + n("14"),
				skipped:  []string{n("11") + " is on DRA already, by run r-20260914-0841-7k2q"},
				// The record of a failed attempt by DRA makes no pod DRA-backed.
				evicted: []string{"apps/index-0", "apps/chat-7b5f8d9c6-v4ncz"},
			},
			{
				op: plan.Rollback, pool: "gpu-a", refused: true,
				findings: []string{"blocker DRM010 node/" + n("12"), "warning DRM095 node/" + n("12"), "warning DRM122 pool/gpu-a"},
				batches:  n("13") + " | " + n("11") + " | " + n("12"),
				skipped:  []string{n("14") + " is on the device plugin"},
				// Of the pods of node 12 the one without a claim stays: it has a GPU of the
				// plugin's, which it keeps.
				evicted: []string{"apps/chat-7b5f8d9c6-2mkx7", "apps/chat-7b5f8d9c6-w8zqn"},
			},
			{
				op: plan.Unprepare, refused: true,
				findings:  []string{"blocker DRM010 node/" + n("12"), "blocker DRM024 nodes", "blocker DRM024 node/" + n("13")},
				restarted: []string{driver + "-4kzpx", driver + "-9wmtd"},
			},
		},
	}
}

func amd() site {
	const ds, driver = "kube-system/amdgpu-device-plugin-daemonset", "kube-amd-gpu/k8s-gpu-dra-driver-kubeletplugin"
	return site{
		name: "amd", resource: "amd.com/gpu", driver: "gpu.amd.com",
		// The labeller has the plugin's image, and is none.
		owners: map[string]string{ds: "nobody", driver: "Helm release kube-amd-gpu/amd-dra"},
		plans: []wanted{
			{
				op: plan.Prepare, refused: true,
				findings:  []string{"blocker DRM003 daemonset/" + driver, "warning DRM079 driver/gpu.amd.com", "warning DRM013 daemonset/" + driver},
				restarted: []string{ds + "-8zkwq", ds + "-v4nxd", driver + "-x7plb"},
			},
			{
				op: plan.Migrate, pool: "mi300x", selector: "pool=mi300x", refused: true, class: "create dramigrate-amd-gpu",
				findings: []string{
					"blocker DRM003 daemonset/" + driver, "blocker DRM015 daemonset/" + ds,
					"warning DRM079 driver/gpu.amd.com", // nothing lists what a container sees
					"blocker DRM022 pool/mi300x",        // the driver wants gpu-mode=dra
				},
				batches: "mi300x-1 | mi300x-2", evicted: []string{"llm/serve-0", "llm/serve-1"},
			},
			{
				// Moved by hand: the plugin keeps off it by another label.
				op: plan.Migrate, pool: "mi210", selector: "pool=mi210", refused: true, class: "create dramigrate-amd-gpu",
				findings: []string{"blocker DRM003 daemonset/" + driver, "warning DRM079 driver/gpu.amd.com"},
				batches:  "mi210-1",
			},
		},
	}
}

func intelGPU() site {
	const ds, driver = "kube-system/intel-gpu-plugin", "intel-gpu-resource-driver/intel-gpu-resource-driver-kubelet-plugin"
	return site{
		name: "intel-gpu", resource: "gpu.intel.com/i915", driver: "gpu.intel.com",
		owners: map[string]string{ds: "nobody", driver: "nobody"},
		plans: []wanted{{
			op: plan.Migrate, pool: "flex", selector: "pool=flex", class: "create dramigrate-gpu.intel-i915",
			// Neither which GPU is which nor what a container sees can be known.
			findings:  []string{"warning DRM079 driver/gpu.intel.com", "warning DRM079 driver/gpu.intel.com"},
			resources: []string{"gpu.intel.com/i915", "gpu.intel.com/i915_monitoring"},
			batches:   "flex-1 | flex-2", evicted: []string{"llm/serve-0"},
		}},
	}
}

func gaudi() site {
	const ds, driver = "habana-system/habanalabs-device-plugin-daemonset", "intel-gaudi-resource-driver/intel-gaudi-resource-driver-kubelet-plugin"
	return site{
		name: "gaudi", resource: "habana.ai/gaudi", driver: "gaudi.intel.com",
		owners: map[string]string{ds: "nobody", driver: "nobody"},
		plans: []wanted{{
			op: plan.Migrate, pool: "gaudi", selector: "pool=gaudi", class: "create dramigrate-habana.ai-gaudi",
			findings:  []string{"warning DRM079 driver/gaudi.intel.com"},
			resources: []string{"habana.ai/gaudi"},
			batches:   "gaudi-1 | gaudi-2", evicted: []string{"llm/serve-0"},
		}},
	}
}

// The add-on manager's label is the gate; by what an installation of the driver is
// recognised is not known, so there is none.
func tpu() site {
	return site{
		name: "tpu", resource: "google.com/tpu", driver: "tpu.google.com",
		owners: map[string]string{"kube-system/tpu-device-plugin": "addon manager in mode Reconcile"},
		plans: []wanted{{
			op: plan.Migrate, pool: "v5e", gate: "gke-tpu", refused: true, class: "create dramigrate-google-tpu",
			findings: []string{
				"blocker DRM015 driver/tpu.google.com", "warning DRM049 deviceclass/dramigrate-google-tpu",
				"warning DRM079 driver/tpu.google.com", "warning DRM079 driver/tpu.google.com",
			},
			resources: []string{"google.com/tpu"},
			batches:   "v5e-1 | v5e-2", evicted: []string{"llm/serve-0"},
		}},
	}
}

func migrated() site {
	const driver = "dra-driver-nvidia-gpu/dra-driver-nvidia-gpu-kubelet-plugin"
	const a1, a2, b = "ip-10-3-1-11.ec2.internal", "ip-10-3-1-12.ec2.internal", "ip-10-3-2-21.ec2.internal"
	done := " is on DRA already, by run r-20260914-0841-7k2q"
	return site{
		name:   "migrated",
		owners: map[string]string{static: "nobody", driver: "nobody"},
		plans: []wanted{
			{op: plan.Prepare, manifests: nvidiaDriver, class: "adopt gpu.nvidia.com"}, // done
			{op: plan.Migrate, pool: "gpu-a", class: "adopt gpu.nvidia.com", skipped: []string{a1 + done, a2 + done}},
			{
				op: plan.Migrate, pool: "gpu-b", class: "adopt gpu.nvidia.com",
				batches: b, evicted: []string{"apps/chat-7b5f8d9c6-pq5rd"},
			},
			{
				op: plan.Rollback, pool: "gpu-a",
				batches: a1 + " | " + a2,
				evicted: []string{"apps/chat-7b5f8d9c6-2mkx7", "apps/chat-7b5f8d9c6-w8zqn", "apps/index-0"},
			},
			{op: plan.Rollback, pool: "gpu-b", skipped: []string{b + " is on the device plugin"}},
			{
				op: plan.Unprepare, refused: true,
				findings:  []string{"blocker DRM024 nodes"},
				restarted: []string{driver + "-4kzpx", driver + "-9wmtd"},
			},
		},
	}
}

func cpuOnly() site {
	return site{
		name: "cpu-only",
		plans: []wanted{
			{op: plan.Prepare, manifests: nvidiaDriver, class: heldClass, findings: []string{"warning DRM057 nodes"}},
			{
				op: plan.Migrate, pool: "default", refused: true, class: ownClass, findings: []string{noDriver, "warning DRM057 pool/default"},
				skipped: []string{"kind-worker has no nvidia.com/gpu", "kind-worker2 has no nvidia.com/gpu"},
			},
		},
	}
}

func computeDomains() site {
	const driver = "dra-driver-nvidia-gpu/dra-driver-nvidia-gpu-kubelet-plugin"
	return site{
		name:   "compute-domains",
		owners: map[string]string{static: "nobody", driver: "Helm release dra-driver-nvidia-gpu/dra-driver-nvidia-gpu"},
		plans: []wanted{
			{
				// The driver's DaemonSet would leave nodes where it serves, and its part for
				// GPUs is off.
				op: plan.Prepare, refused: true,
				findings: []string{
					"blocker DRM003 daemonset/" + driver, "blocker DRM013 daemonset/" + driver, "blocker DRM027 daemonset/" + driver,
					"warning DRM006 mpijob/hpc/nccl",
				},
				restarted: []string{static + "-kq8zt", static + "-w4nxv", driver + "-5jzpd", driver + "-m8qtc"},
			},
			{
				// ComputeDomain slices beside the plugin are no double advertisement.
				op: plan.Migrate, pool: "gb200", selector: "pool=gb200", refused: true, class: ownClass,
				findings: []string{
					"blocker DRM003 daemonset/" + driver, "blocker DRM015 daemonset/" + static, "blocker DRM027 daemonset/" + driver,
					"blocker DRM006 mpijob/hpc/nccl", "warning DRM122 pool/gb200",
				},
				batches: "gb200-1 | gb200-2", evicted: []string{"hpc/nccl-worker-0", "hpc/nccl-worker-1"},
			},
		},
	}
}
