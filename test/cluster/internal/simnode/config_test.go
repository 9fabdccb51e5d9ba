package simnode

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLoadConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sim.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"kubeconfig": "/k", "kubeletVersion": "v1.37.2", "wipeDelay": "3s",
		"nodes": [{"name": "sim-0", "gpus": {"node": "sim-0", "gpus": [{"index": 0, "uuid": "GPU-1"}]}, "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}]}`)
	c, err := LoadConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	if c.Kubeconfig != "/k" || len(c.Nodes) != 1 || len(c.Nodes[0].GPUs.GPUs) != 1 || c.Nodes[0].Taints[0].Key != "nvidia.com/gpu" {
		t.Errorf("config %+v", c)
	}
	if got := c.timings(); got.wipe != 3*time.Second || got.endpointGrace != 5*time.Minute {
		t.Errorf("wipe after %v and grace %v, want 3s and the kubelet's 5m", got.wipe, got.endpointGrace)
	}
	for name, text := range map[string]string{
		"unknown field":     `{"kubeletVersion": "v1.37.2", "gpus": 1}`,
		"nameless node":     `{"kubeletVersion": "v1.37.2", "nodes": [{}]}`,
		"not even a object": `[]`,
	} {
		write(text)
		if _, err := LoadConfig(path); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := LoadConfig(path + ".absent"); err == nil {
		t.Error("an absent file was accepted")
	}
}
