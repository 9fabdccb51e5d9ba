package cluster

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func classWith(expressions ...string) *resourcev1.DeviceClass {
	c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	for _, e := range expressions {
		c.Spec.Selectors = append(c.Spec.Selectors, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: e}})
	}
	return c
}

func TestMatchClass(t *testing.T) {
	t.Parallel()
	mig := slice("n1", "n1", 1, 1, "gpu-1-mig")
	mig.Spec.Devices[0].Attributes["type"] = resourcev1.DeviceAttribute{StringValue: new("mig")}
	other := slice("n1", "n1", 1, 1, "x")
	other.Spec.Driver = "other.example"
	all := []resourcev1.ResourceSlice{slice("n1", "n1", 1, 1, "gpu-0=GPU-a"), mig, other}
	gpu0 := Device{Pool: "n1", Name: "gpu-0", Key: "GPU-a", Kind: "gpu"}
	for _, tt := range []struct {
		name   string
		class  *resourcev1.DeviceClass
		want   map[string]Devices
		failed string
		err    string
	}{
		{"no selector selects all", classWith(), map[string]Devices{
			gpuDriver:       {gpu0, {Pool: "n1", Name: "gpu-1-mig", Kind: "mig"}},
			"other.example": {{Pool: "n1", Name: "x", Kind: "gpu"}},
		}, "", ""},
		{"the driver's GPUs", classWith(`device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"`),
			map[string]Devices{gpuDriver: {gpu0}}, "", ""},
		{"selectors hold together", classWith(`device.driver == "gpu.nvidia.com"`, `device.attributes["gpu.nvidia.com"].type == "mig"`),
			map[string]Devices{gpuDriver: {{Pool: "n1", Name: "gpu-1-mig", Kind: "mig"}}}, "", ""},
		{"nothing", classWith(`device.driver == "hami-core-gpu.project-hami.io"`), map[string]Devices{}, "", ""},
		{"an attribute that some devices lack", classWith(`device.attributes["gpu.nvidia.com"].uuid == "GPU-a"`),
			map[string]Devices{gpuDriver: {gpu0}}, "device gpu-1-mig of pool n1", ""},
		{"no CEL", classWith(`device.driver ==`), nil, "", "deviceclass/c: selector 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := MatchClass(context.Background(), tt.class, all)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want one with %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.Selected); diff != "" {
				t.Errorf("selected (-want +got):\n%s", diff)
			}
			if (tt.failed == "") != (got.Failed == "") || !strings.Contains(got.Failed, tt.failed) {
				t.Errorf("failed = %q, want %q", got.Failed, tt.failed)
			}
		})
	}
}

func TestMatchClassEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := MatchClass(ctx, classWith(`true`), []resourcev1.ResourceSlice{slice("n", "n", 1, 1, "gpu-0")}); err == nil {
		t.Error("no error after the context ended")
	}
}
