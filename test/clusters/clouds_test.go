package clusters

import (
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// The clusters of clouds and platforms that bring the plugin or the pools.

func gke() site {
	const small, large = "kube-system/nvidia-gpu-device-plugin-small-cos", "kube-system/nvidia-gpu-device-plugin-large-cos"
	const l4, a100, shared = "gke-ml-l4-7d31a0f2-", "gke-ml-a100-5be2c914-q1mj", "gke-ml-l4-shared-91c3d7e5-h6rw"
	return site{
		name:   "gke",
		owners: map[string]string{small: "addon manager in mode Reconcile", large: "addon manager in mode Reconcile"},
		plans: []wanted{
			{
				// The label of GKE moves its plugin: no edit, no restart.
				op: plan.Prepare, manifests: nvidiaDriver, class: heldClass, gate: gate.GKEName,
				findings: []string{"warning DRM071 nodes"},
			},
			{
				op: plan.Migrate, pool: "l4", refused: true, class: ownClass, gate: gate.GKEName,
				findings: []string{noDriver},
				batches:  l4 + "2k9x | " + l4 + "v8tz",
				evicted:  []string{"serving/gemma-6c8d9f7b5-d4kzp", "serving/gemma-6c8d9f7b5-zw8qn"},
			},
			{
				op: plan.Migrate, pool: "a100", refused: true, class: ownClass, gate: gate.GKEName,
				findings: []string{noDriver, "warning DRM110 job/batch/sim-4", "warning DRM122 pool/a100"},
				batches:  a100, evicted: []string{"batch/sim-4-x8kqp"},
			},
			{
				// GKE's own label tells of time-sharing; there is no GPU Feature Discovery.
				op: plan.Migrate, pool: "l4-shared", refused: true, class: ownClass, gate: gate.GKEName,
				findings: []string{noDriver, "blocker DRM008 node/" + shared},
				batches:  shared,
			},
		},
	}
}

func aksManaged() site {
	const node = "aks-gpunp-20488217-vmss00000"
	return site{
		name: "aks-managed", // no DaemonSet serves GPUs, and the CSI driver is no DRA driver
		plans: []wanted{
			// The driver comes to labelled nodes alone, which these are not.
			{op: plan.Prepare, manifests: nvidiaDriver, class: heldClass, findings: []string{"warning DRM004 nodes", "warning DRM071 nodes"}},
			{
				op: plan.Migrate, pool: "gpunp", refused: true, class: ownClass,
				findings: []string{"blocker DRM004 pool/gpunp", noDriver, "warning DRM090 pool/gpunp", "warning DRM122 pool/gpunp"},
				batches:  node + "0 | " + node + "1",
				evicted:  []string{"speech/whisper-58f7c6d9b-7kq2m", "speech/whisper-58f7c6d9b-vz4xn"},
			},
		},
	}
}

// aksNewPool has what the managed pool cannot be: nodes without the plugin, with the
// driver. One is cordoned, so that two devices are free for two pods.
func aksNewPool() site {
	const old, fresh = "aks-gpunp-20488217-vmss00000", "aks-gpudra-71840263-vmss00000"
	return site{
		name:   "aks-new-pool",
		owners: map[string]string{"dra-driver-nvidia-gpu/dra-driver-nvidia-gpu-kubelet-plugin": "nobody"},
		plans: []wanted{
			{
				op: plan.Migrate, pool: "gpunp", into: "gpudra", class: ownClass,
				findings: []string{"warning DRM052 pool/gpudra"},
				batches:  fresh + "0 | " + fresh + "1 | " + old + "0 | " + old + "1",
				skipped:  []string{fresh + "2 is cordoned by somebody else, and is not uncordoned by this run"},
				evicted:  []string{"speech/whisper-58f7c6d9b-7kq2m", "speech/whisper-58f7c6d9b-vz4xn"},
			},
		},
	}
}

func bottlerocket() site {
	const zone = ".eu-central-1.compute.internal"
	return site{
		name:   "bottlerocket",
		owners: map[string]string{static: "nobody"},
		plans: []wanted{
			{
				op: plan.Prepare, manifests: nvidiaDriver, class: heldClass,
				findings:  []string{"warning DRM004 nodes"},
				restarted: []string{static + "-kz9wt"},
			},
			{
				// The DaemonSet is for the other pool, and its edit would not help this one.
				op: plan.Migrate, pool: "gpu-bottlerocket", refused: true, class: ownClass,
				findings: []string{"blocker DRM004 pool/gpu-bottlerocket", noDriver, "warning DRM122 pool/gpu-bottlerocket"},
				batches:  "ip-10-1-4-21" + zone + " | ip-10-1-4-22" + zone,
				evicted:  []string{"render/frames-0", "render/frames-1"},
			},
			{
				op: plan.Migrate, pool: "gpu-al2023", refused: true, class: ownClass,
				findings: []string{"blocker DRM015 daemonset/" + static, noDriver, "warning DRM122 pool/gpu-al2023"},
				batches:  "ip-10-1-5-31" + zone, evicted: []string{"render/frames-2"},
			},
		},
	}
}

func eksKarpenter() site {
	unprepared := []string{"blocker DRM003 daemonset/" + static, noDriver}
	const old, down = "ip-10-2-1-58.ec2.internal", "ip-10-2-2-90.ec2.internal"
	return site{
		name:   "eks-karpenter",
		owners: map[string]string{static: "eksctl"},
		plans: []wanted{
			{
				op: plan.Prepare, manifests: nvidiaDriver, class: heldClass, refused: true,
				findings: []string{
					"blocker DRM003 daemonset/" + static, "warning DRM071 nodes",
					"warning DRM064 daemonset/" + static, "warning DRM064 daemonset/" + static, // one crashes, one's node is down
				},
				restarted: []string{static + "-q6bzx", static + "-hd4wk", static + "-v9tns", static + "-n7xcp"},
			},
			{
				op: plan.Migrate, pool: "gpu-l4", refused: true, class: ownClass,
				findings: append([]string{
					"blocker DRM002 node/" + old,
					"blocker DRM023 statefulset/apps/rank", // two budgets: no such pod can be evicted
					"warning DRM018 replicaset/apps/chat-7b5f8d9c6", "warning DRM033 pool/gpu-l4", "warning DRM087 pool/gpu-l4",
				}, unprepared...),
				batches: "ip-10-2-1-41.ec2.internal | " + old,
				evicted: []string{"apps/chat-7b5f8d9c6-2mkx7", "apps/chat-7b5f8d9c6-w8zqn", "apps/rank-0"}, // the third has no node yet
			},
			{
				op: plan.Migrate, pool: "gpu-reserved", refused: true, class: ownClass,
				findings: append([]string{"blocker DRM021 node/" + down}, unprepared...),
				batches:  down,
			},
		},
	}
}

func openShift() site {
	const ds, mps = "nvidia-gpu-operator/nvidia-device-plugin-daemonset", "nvidia-gpu-operator/nvidia-device-plugin-mps-control-daemon"
	return site{
		name:   "openshift",
		owners: map[string]string{ds: "operator ClusterPolicy/gpu-cluster-policy", mps: "operator ClusterPolicy/gpu-cluster-policy"},
		plans: []wanted{
			{
				op: plan.Prepare, manifests: nvidiaDriver, class: heldClass, gate: gate.GPUOperatorName,
			},
			{
				op: plan.Migrate, pool: "gpu-a100", refused: true, class: ownClass, gate: gate.GPUOperatorName,
				findings: []string{"blocker DRM019 statefulset/rhoai-notebooks/bench", noDriver},
				batches:  "gpu-a100-0", evicted: []string{"rhoai-notebooks/bench-0"},
			},
			{
				// The operator deploys nothing where its labels are empty: gpu-l40s-1 has GPUs
				// that nobody advertises, and it would make "true" of an empty label one day.
				op: plan.Migrate, pool: "gpu-l40s", refused: true, class: ownClass, gate: gate.GPUOperatorName,
				findings: []string{"unknown DRM029 node/gpu-l40s-1", "warning DRM084 node/gpu-l40s-1", noDriver},
				batches:  "gpu-l40s-0", skipped: []string{"gpu-l40s-1 has no nvidia.com/gpu"},
				evicted: []string{"rhoai-serving/granite-predictor-6d7c8b9f5-jw4xz"},
			},
		},
	}
}
