package vendor

import "regexp"

// NVIDIA's switches of a node.
const (
	// DeployPlugin and DeployValidator belong to the GPU Operator, which makes them
	// "true" where they are absent or empty and leaves any other value as it is
	// (NVIDIA/gpu-operator, controllers/state_manager.go). The validator waits for the
	// plugin's resource and fails without it, and ClusterPolicy with it
	// (NVIDIA/gpu-operator#2550), so it goes along.
	//
	// Not gpu.deploy.operands: it takes the GPU's driver away as well. Not
	// gpu.deploy.dra-driver: the operator deletes it where there is a ClusterPolicy.
	DeployPlugin    = "nvidia.com/gpu.deploy.device-plugin"
	DeployValidator = "nvidia.com/gpu.deploy.operator-validator"
)

// GKEAccelerator is GKE's label for the model of a node's GPUs.
const GKEAccelerator = "cloud.google.com/gke-accelerator"

// Names of resources beside nvidia.com/gpu.
var (
	// nvidiaHAMi are the resources of HAMi beside its GPUs (Project-HAMi/HAMi,
	// pkg/device/nvidia).
	nvidiaHAMi = regexp.MustCompile(`^(gpumem|gpumem-percentage|gpucores|priority)$`)
	// nvidiaVirtual is how the plugin for virtual machines names devices: after the chip
	// (GA102GL_A10) or the vGPU type (GRID_T4-2Q).
	nvidiaVirtual = regexp.MustCompile(`^pgpu$|^[A-Z]{2}[0-9]{3}(GLM?)?_|^(GRID|NVIDIA)_|-[0-9]+[ABCQ]$`)
	// nvidiaModel is how forks of the plugin name GPUs by their model
	// (NVIDIA/k8s-device-plugin#424).
	nvidiaModel = regexp.MustCompile(`(?i)^(t4|l4|p4|a2|([abhlpv]|gb|gh|rtx)[0-9]{2,4}[a-z]{0,2})([-._].*)?$`)
	nvidiaOwn   = regexp.MustCompile(`^(gpu|mig-)`)
)

func nvidia() Vendor {
	resources := []string{"nvidia.com/gpu", "nvidia.com/mig-"}
	return Vendor{
		Name:      "NVIDIA",
		Domain:    "nvidia.com",
		Resources: resources,
		Names: []Name{
			{nvidiaHAMi, "HAMi hands out parts of a device by it, and a request by DRA is for whole devices"},
			{nvidiaVirtual, "it stands for a device of virtual machines (vGPU or passthrough), which the driver does not publish as a GPU"},
			{Pattern: nvidiaModel}, {Pattern: nvidiaOwn},
		},
		Plugins: []Program{{
			Images: []string{
				"nvidia/k8s-device-plugin",               // NVIDIA/k8s-device-plugin
				"nvidia/kubevirt-gpu-device-plugin",      // GPU Operator, sandbox workloads
				"gke.gcr.io/nvidia-gpu-device-plugin",    // GKE
				"run-ai/fake-gpu-operator/device-plugin", // run-ai/fake-gpu-operator
				"projecthami/hami",                       // HAMi
			},
			Labels: []Label{
				{"name", "nvidia-device-plugin-ds"},
				{"app", "nvidia-device-plugin-daemonset"}, {"app", "nvidia-sandbox-device-plugin-daemonset"},
				{"app.kubernetes.io/name", "nvidia-device-plugin"},
				{"k8s-app", "nvidia-gpu-device-plugin"},
				{"app.kubernetes.io/component", "hami-device-plugin"},
			},
			Resources: resources,
		}},
		Drivers: []Program{{
			Images: []string{"dra-driver-nvidia/dra-driver-nvidia-gpu", "nvidia/k8s-dra-driver-gpu"},
			Labels: []Label{
				{"dra-driver-nvidia-gpu-component", "kubelet-plugin"},
				{"nvidia-dra-driver-gpu-component", "kubelet-plugin"},
				{"app", "nvidia-dra-driver-kubelet-plugin"},
			},
			Drivers: []string{"gpu.nvidia.com", "compute-domain.nvidia.com"},
			// kubernetes-sigs/dra-driver-nvidia-gpu, chart, templates/kubeletplugin.yaml
			Containers: map[string]string{"gpu.nvidia.com": "gpus", "compute-domain.nvidia.com": "compute-domains"},
		}},
		Devices: []Device{{
			Driver: "gpu.nvidia.com", Class: "gpu.nvidia.com", Attribute: "type", Value: "gpu", Join: byUUID(),
			Source: "kubernetes-sigs/dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin/deviceinfo.go",
		}},
		// "<uuid>::<replica>" (NVIDIA/k8s-device-plugin, internal/rm/devices.go,
		// AnnotatedID).
		IDs:  IDs{What: string(UUID), Replica: "::"},
		Look: []string{"nvidia-smi", "-L"},
		NodeLabels: []NodeLabel{
			{Key: GKEAccelerator, Prefix: "nvidia-"},
			{Key: "nvidia.com/gpu.present", Value: "true"},
		},
		CountLabel: "nvidia.com/gpu.count", // NVIDIA/k8s-device-plugin, docs/gpu-feature-discovery
		// GKE docs, "Set up dynamic resource allocation".
		OptOut: OptOut{Gate: "gke", Label: "gke-no-default-nvidia-gpu-device-plugin"},
		// The plugin (cmd/nvidia-device-plugin/main.go, v0.20.0), its config manager, MPS
		// daemon and health checks, and the driver (cmd/gpu-kubelet-plugin/main.go).
		Environment: []string{
			"MIG_STRATEGY", "DEVICE_LIST_STRATEGY", "DEVICE_ID_STRATEGY", "PASS_DEVICE_SPECS",
			"FAIL_ON_INIT_ERROR", "DP_DISABLE_HEALTHCHECKS", "DP_ENABLE_HEALTHCHECKS",
			"CONFIG_FILE", "DEFAULT_CONFIG", "FALLBACK_STRATEGIES", "NODE_LABEL",
			"MPS_ROOT", "CONSUMABLE_SHARES",
			"NVIDIA_DRIVER_ROOT", "HOST_DRIVER_ROOT", "CONTAINER_DRIVER_ROOT", "DRIVER_ROOT_CTR_PATH", "DRIVER_ROOT",
			"NVIDIA_VISIBLE_DEVICES", "NVIDIA_MIG_MONITOR_DEVICES",
			"FEATURE_GATES", "DEVICE_CLASSES", "CDI_ROOT",
			"KUBELET_REGISTRAR_DIRECTORY_PATH", "KUBELET_PLUGINS_DIRECTORY_PATH",
			"HEALTHCHECK_PORT",
		},
		// NVIDIA/k8s-device-plugin, deployments/helm/nvidia-device-plugin;
		// kubernetes-sigs/dra-driver-nvidia-gpu, deployments/helm/dra-driver-nvidia-gpu.
		Charts: []Chart{
			{Prefix: "nvidia-device-plugin-"},
			{Prefix: "dra-driver-nvidia-gpu-", Values: []string{"kubeletPlugin"}},
			{Prefix: "nvidia-dra-driver-gpu-", Values: []string{"kubeletPlugin"}},
		},
	}
}

// hami shares NVIDIA's GPUs. Its plugin has a name of NVIDIA's resources and is
// recognised with NVIDIA's.
func hami() Vendor {
	const driver = "hami-core-gpu.project-hami.io"
	return Vendor{
		Name: "HAMi",
		Devices: []Device{{
			Driver: driver, Class: driver, Attribute: "type", Value: "hami-gpu", Join: byUUID(),
			Source: "Project-HAMi/k8s-dra-driver, DeviceClass of the chart",
		}},
		IDs:  IDs{What: string(UUID), Replica: "::"},
		Look: []string{"nvidia-smi", "-L"},
	}
}
