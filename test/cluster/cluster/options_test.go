package cluster

import (
	"strings"
	"testing"
	"time"
)

func TestDefaults(t *testing.T) {
	o := Options{Images: map[string]string{"nvcr.io/nvidia/cuda": "pause", "example.com/x": "x"}}
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	if o.Version != "v1.37.2" || o.StatusInterval != time.Second {
		t.Errorf("version %s, status every %s", o.Version, o.StatusInterval)
	}
	for image, want := range map[string]string{
		"nvcr.io/nvidia/k8s-device-plugin": "nvidia-device-plugin", "nvcr.io/nvidia/cuda": "pause", "example.com/x": "x",
	} {
		if o.Images[image] != want {
			t.Errorf("%s runs %q, want %q", image, o.Images[image], want)
		}
	}
}

func TestRefusedOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"unknown kubelet":      {Kubelet: "fast"},
		"two nodes have":       {Nodes: []NodeSpec{{Name: "a"}}, SimNodes: []NodeSpec{{Name: "a"}}},
		`node name "A"`:        {Nodes: []NodeSpec{{Name: "A"}}},
		"-1 GPUs":              {SimNodes: []NodeSpec{{Name: "a", GPUs: -1}}},
		"at most 200":          {Nodes: make([]NodeSpec, 201)},
		"interval -1s is":      {StatusInterval: -time.Second},
		`node name ""`:         {Nodes: []NodeSpec{{}}},
		`node name "a/../../"`: {Nodes: []NodeSpec{{Name: "a/../../"}}},
	} {
		if err := o.complete(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
