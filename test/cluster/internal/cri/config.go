package cri

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Config is what a node tells its CRI server, as a JSON file.
// All paths are as seen in the node's mount namespace and absolute.
type Config struct {
	// Socket is the unix socket on which the kubelet reaches the server.
	Socket string `json:"socket"`
	// StateDir is a folder of the server's own. Nothing in it outlives the server.
	StateDir string `json:"stateDir"`
	// CommandDir holds the shipped commands, one file or symbolic link each. They are all that a
	// container can run by name.
	CommandDir string `json:"commandDir"`
	// Images maps an image repository (without tag and digest) to the name of the shipped command
	// that stands for the image's entrypoint. A repository that is not here cannot be pulled.
	Images map[string]string `json:"images"`
	// APIHost and APIPort replace KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT in every
	// container, because no service address is routed in this cluster.
	APIHost string `json:"apiHost"`
	APIPort int    `json:"apiPort"`
	// PodIP is reported as the address of pods that do not ask for the host's network. All pods
	// share it. Empty means 127.0.0.1.
	PodIP string `json:"podIP,omitempty"`
	// CDIDirs are the folders of Container Device Interface specs, lowest priority first.
	CDIDirs []string `json:"cdiDirs"`
	// LogDir, if set, is created at start: the kubelet's podLogsDir. The path of each log file
	// comes from the kubelet.
	LogDir string `json:"logDir,omitempty"`
}

// LoadConfig reads and validates a config file.
func LoadConfig(path string) (Config, error) {
	var c Config
	raw, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("CRI config: %w", err)
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, fmt.Errorf("CRI config %s: %w", path, err)
	}
	if c.PodIP == "" {
		c.PodIP = "127.0.0.1"
	}
	if err := c.validate(); err != nil {
		return c, fmt.Errorf("CRI config %s: %w", path, err)
	}
	return c, nil
}

func (c Config) validate() error {
	for _, p := range []struct{ key, path string }{
		{"socket", c.Socket}, {"stateDir", c.StateDir}, {"commandDir", c.CommandDir},
	} {
		if !filepath.IsAbs(p.path) {
			return fmt.Errorf("%s %q is not an absolute path", p.key, p.path)
		}
	}
	return nil
}
