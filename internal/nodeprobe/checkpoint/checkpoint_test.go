package checkpoint

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// onePod was written by the kubelet v1.37.2 of a node with one simulated GPU.
//
//go:embed testdata/one-pod.json
var onePod string

// noPod was too, before the first pod.
const noPod = `{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{"nvidia.com/gpu":["GPU-cfe03674-4364-5c0f-b39f-b197eebe4ddc","GPU-96666e9b-105e-58e5-ba06-7253250601b6","GPU-4b24d761-31be-517f-b104-5718425f7f72","GPU-1af9ad7a-1ffb-588e-a7fb-94eb71fb3e1f"]}},"Checksum":1109547088}`

func TestParse(t *testing.T) {
	t.Parallel()
	entries, registered, err := Parse([]byte(onePod))
	if err != nil {
		t.Fatal(err)
	}
	const gpu = "GPU-4b24d761-31be-517f-b104-5718425f7f72"
	if len(entries) != 1 || len(entries[0].AllocResp) == 0 {
		t.Fatalf("entries %+v, want one with the plugin's answer", entries)
	}
	entries[0].AllocResp = nil
	want := PodDevicesEntry{
		PodUID: "64e07b34-4897-40b1-84b0-3e553a8f82fc", ContainerName: "cuda", ResourceName: "nvidia.com/gpu",
		DeviceIDs: DevicesPerNUMA{-1: {gpu}},
	}
	if diff := cmp.Diff(want, entries[0]); diff != "" {
		t.Errorf("entry (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]string{"nvidia.com/gpu": {gpu}}, registered); diff != "" {
		t.Errorf("registered (-want +got):\n%s", diff)
	}
	if entries, registered, err = Parse([]byte(noPod)); err != nil || len(entries) != 0 || len(registered["nvidia.com/gpu"]) != 4 {
		t.Errorf("without a pod: %v, %v, %v; want 4 registered devices", entries, registered, err)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]struct{ text, reason string }{
		"another id":    {strings.Replace(onePod, "GPU-4b24", "GPU-4b25", 1), "checksum is 4140469374, and that of its data"},
		"another sum":   {strings.Replace(onePod, "4140469374", "4140469375", 1), "checksum is 4140469375"},
		"cut short":     {onePod[:200], "unexpected end of JSON"},
		"empty":         {"", "unexpected end of JSON"},
		"another file":  {`{"claims":{}}`, "no data or no checksum"},
		"no checksum":   {`{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}}}`, "no data or no checksum"},
		"not an object": {`[]`, "cannot unmarshal"},
	} {
		if _, _, err := Parse([]byte(file.text)); err == nil || !strings.Contains(err.Error(), file.reason) {
			t.Errorf("%s: %v, want %q", name, err, file.reason)
		}
	}
}
