package cri

import (
	"fmt"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestCDIDevices(t *testing.T) {
	n := newNode(t)
	gpu := n.write("gpu-a.json", "GPU-a")
	n.write("cdi/gpus.json", fmt.Sprintf(`{
  "cdiVersion": "0.6.0", "kind": "gpu.example/gpu",
  "containerEdits": {"env": ["DRIVER=sim"]},
  "devices": [{"name": "a", "containerEdits": {
    "env": ["GPU=a"],
    "mounts": [{"hostPath": %q, "containerPath": "/run/nvidia-sim/visible/GPU-a.json", "options": ["ro", "bind"]}],
    "deviceNodes": [{"path": "/dev/gpu0", "hostPath": "/dev/null"}]}}]}`, gpu))
	config := n.config("env=DRIVER", "env=GPU", "ls=/run/nvidia-sim/visible",
		"cat=/run/nvidia-sim/visible/GPU-a.json", "write=/run/nvidia-sim/visible/GPU-a.json", "cat=/dev/gpu0")
	// The kubelet names a device once for each request that it was given for.
	config.CDIDevices = []*runtimeapi.CDIDevice{{Name: "gpu.example/gpu=a"}, {Name: "gpu.example/gpu=a"}}
	expect(t, n.run(config), "DRIVER=sim", "GPU=a", "/run/nvidia-sim/visible: [GPU-a.json]",
		"/run/nvidia-sim/visible/GPU-a.json: GPU-a",
		"error: open /run/nvidia-sim/visible/GPU-a.json: read-only file system",
		"/dev/gpu0: ")
	// Nothing is visible without an injection.
	expect(t, n.run(n.config("ls=/run/nvidia-sim/visible", "env=GPU")), "/run/nvidia-sim/visible: []", "GPU=")
}

func TestCDIDeviceErrors(t *testing.T) {
	n := newNode(t)
	hook := `{"cdiVersion": "0.6.0", "kind": "gpu.example/gpu", "devices": [{"name": "hooked", "containerEdits": {
    "hooks": [{"hookName": "createContainer", "path": "/bin/true"}]}}]}`
	n.write("cdi/hook.json", hook)
	for device, want := range map[string]string{
		"gpu.example/gpu=b":      "unresolvable CDI devices gpu.example/gpu=b",
		"gpu.example/gpu=hooked": "hooks",
	} {
		config := n.config()
		config.CDIDevices = []*runtimeapi.CDIDevice{{Name: device}}
		if _, err := n.create(n.sandbox("pod"), config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("CreateContainer with %s: %v; want %q", device, err, want)
		}
	}
	// A spec that is written between two containers is seen.
	n.write("cdi/late.json", strings.NewReplacer("gpu.example/gpu", "gpu.example/late",
		`"hooks": [{"hookName": "createContainer", "path": "/bin/true"}]`, `"env": ["LATE=yes"]`).Replace(hook))
	config := n.config("env=LATE")
	config.CDIDevices = []*runtimeapi.CDIDevice{{Name: "gpu.example/late=hooked"}}
	expect(t, n.run(config), "LATE=yes")
}

func TestDevicePluginDevices(t *testing.T) {
	n := newNode(t)
	config := n.config("cat=/dev/gpu7")
	config.Devices = []*runtimeapi.Device{{HostPath: "/dev/null", ContainerPath: "/dev/gpu7", Permissions: "rw"}}
	expect(t, n.run(config), "/dev/gpu7: ")
	config.Devices[0].HostPath = "/dev/no-such-device"
	if _, err := n.create(n.sandbox("pod"), config); err == nil || !strings.Contains(err.Error(), "/dev/no-such-device") {
		t.Errorf("CreateContainer with a missing device: %v", err)
	}
}
