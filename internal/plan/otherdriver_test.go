package plan

import (
	"strings"
	"testing"
	"testing/fstest"
)

// Manifests of a driver that is known to be another's name it, and the one that is wanted.
func TestOtherDriver(t *testing.T) {
	unknown := manifestFiles()
	unknown["20-daemonset.yaml"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(string(unknown["20-daemonset.yaml"].Data), "dra-driver-nvidia-gpu-component", "app"))}
	for _, tt := range []struct {
		name             string
		files            fstest.MapFS
		resource, driver string
		want             string
	}{
		{"its own", manifestFiles(), "nvidia.com/gpu", "gpu.nvidia.com", ""},
		{"one that is not known", unknown, "amd.com/gpu", "gpu.amd.com", ""},
		{"another vendor's", manifestFiles(), "amd.com/gpu", "gpu.amd.com",
			"driver manifests: are those of another driver: DaemonSet dra/driver of compute-domain.nvidia.com, gpu.nvidia.com; amd.com/gpu is to be served by gpu.amd.com: give its manifests by --driver-manifests"},
	} {
		files := tt.files
		delete(files, "30-class.yaml")
		placed, err := Place(readManifests(t, files), tt.resource)
		if err != nil {
			t.Fatal(err)
		}
		err = otherDriver(placed.Drivers, Intent{Resource: tt.resource, Driver: tt.driver})
		if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
}
