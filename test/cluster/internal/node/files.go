package node

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// initConfig is what a node's first process needs to know.
type initConfig struct {
	Name       string `json:"name"`
	Dir        Dir    `json:"dir"`
	ClusterDir string `json:"clusterDir"`
	// CRI and Kubelet are the commands with their arguments.
	CRI     []string `json:"cri"`
	Kubelet []string `json:"kubelet"`
}

func (n *Node) initConfig(spec Spec) initConfig {
	return initConfig{
		Name:       spec.Name,
		Dir:        n.dir,
		ClusterDir: spec.ClusterDir,
		CRI:        []string{spec.Program, "cri", "--config", n.dir.criConfig()},
		Kubelet: []string{
			spec.Kubelet,
			"--config=" + n.dir.kubeletConfig(),
			"--kubeconfig=" + n.dir.kubeconfig(),
			"--hostname-override=" + spec.Name,
			// The kubelet refuses a loopback address as its node's; with an external
			// cloud provider it leaves addresses to others, here to the cluster package.
			"--cloud-provider=external",
			"--v=2",
		},
	}
}

// kubeletConfig is a KubeletConfiguration. It is written field by field, not by
// the Go type, because an older kubelet refuses fields that it does not know.
func (n *Node) kubeletConfig(spec Spec, ca, serving, key string) map[string]any {
	return map[string]any{
		"apiVersion":               "kubelet.config.k8s.io/v1beta1",
		"kind":                     "KubeletConfiguration",
		"address":                  spec.Addr.String(),
		"port":                     spec.Port,
		"readOnlyPort":             0,
		"healthzPort":              0,
		"tlsCertFile":              serving,
		"tlsPrivateKeyFile":        key,
		"containerRuntimeEndpoint": "unix://" + n.dir.criSocket(),
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": ca},
		},
		"authorization":             map[string]any{"mode": "Webhook"},
		"registerWithTaints":        spec.Taints,
		"nodeStatusUpdateFrequency": spec.StatusInterval.String(),
		"podLogsDir":                n.dir.podLogs(),
		"resolvConf":                n.dir.resolvConf(),
		"volumePluginDir":           n.dir.join("volume-plugins"),

		// The CRI server runs processes without cgroups, and the kubelet must make
		// none on the host.
		"cgroupDriver":                  "cgroupfs",
		"cgroupsPerQOS":                 false,
		"enforceNodeAllocatable":        []string{},
		"failCgroupV1":                  false,
		"failSwapOn":                    false,
		"localStorageCapacityIsolation": false,
		// No rules in the host's packet filter.
		"makeIPTablesUtilChains": false,

		// How full the disk of a developer's machine is says nothing about the node.
		"imageGCHighThresholdPercent": 100,
		"evictionHard": map[string]string{
			"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%",
			"imagefs.available": "0%", "imagefs.inodesFree": "0%",
		},
	}
}

func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

func writeYAML(path string, value any) error {
	data, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return os.WriteFile(path, data, 0o644)
}
