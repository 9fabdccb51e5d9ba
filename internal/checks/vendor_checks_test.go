package checks

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDRM078(t *testing.T) {
	t.Parallel()
	const digest = "@sha256:b5b2b2c507a0944348e0303114d8d93aaaa081732b86451d9bce1f432a537bc7"
	named := func(image string, more ...func(*state)) func(*state) {
		return func(s *state) {
			s.in.HelperImage, s.in.Namespace = image, "dramigrate-system"
			s.pod("train").Images = []string{"nvcr.io/nvidia/cuda:13", "busybox"}
			for _, f := range more {
				f(s)
			}
		}
	}
	try(t, "DRM078", []given{
		{"a tag of the nodes' registry", Migrate, prepared, named("nvcr.io/team/dramigrate:v1"), nil, ""},
		{"no image yet", Migrate, prepared, named(""), nil, ""},
		{"latest", Migrate, prepared, named("nvcr.io/team/dramigrate:latest"), []string{"warning image/nvcr.io/team/dramigrate:latest"}, "its tag is latest"},
		{"no tag is latest", Rollback, migrated, named("nvcr.io:443/dramigrate", func(s *state) { s.pod("train").Images = []string{"nvcr.io:443/x"} }), []string{"warning image/nvcr.io:443/dramigrate"}, "latest"},
		{"a digest does not move", Migrate, prepared, named("nvcr.io/team/dramigrate:latest" + digest), nil, ""},
		{"a registry that is new to the nodes", Migrate, prepared, named("ghcr.io/dramigrate/dramigrate:v1"), []string{"info image/ghcr.io/dramigrate/dramigrate:v1"}, "no pod on the nodes is from its registry ghcr.io; theirs are from docker.io, nvcr.io"},
		{"Docker Hub by its short name", Migrate, prepared, named("team/dramigrate:v1"), nil, ""},
		{"nothing to compare with", Migrate, prepared, named("ghcr.io/dramigrate/dramigrate:v1", func(s *state) { s.pod("train").Images = nil }), nil, ""},
		{"a helper pod proves nothing", Migrate, prepared, named("ghcr.io/dramigrate/dramigrate:v1", func(s *state) {
			s.addPod("probe", "n2", 0)
			s.pod("probe").Labels, s.pod("probe").Images = map[string]string{"dramigrate.dev/purpose": "probe"}, []string{"ghcr.io/dramigrate/dramigrate:v1"}
		}), []string{"info image/ghcr.io/dramigrate/dramigrate:v1"}, ""},
		{"a pull secret cannot be seen", Migrate, prepared, named("nvcr.io/team/dramigrate:v1", func(s *state) { s.in.PullSecret = "pull" }), []string{"info secret/dramigrate-system/pull"}, "no right to read Secrets"},
	})
}

func TestDRM079(t *testing.T) {
	t.Parallel()
	of := func(resource, driver string) func(*state) {
		return func(s *state) { s.in.Resource, s.in.Resources, s.in.Driver = resource, []string{resource}, driver }
	}
	const noLook = "no program is known"
	try(t, "DRM079", []given{
		{"NVIDIA", Migrate, prepared, nil, nil, ""},
		{"HAMi", Migrate, prepared, of("nvidia.com/gpu", "hami-core-gpu.project-hami.io"), nil, ""},
		{"AMD: what a container sees", Migrate, prepared, of("amd.com/gpu", "gpu.amd.com"), []string{"warning driver/gpu.amd.com"}, noLook},
		{"Intel: also which GPU is which", Prepare, prepared, of("gpu.intel.com/i915", "gpu.intel.com"), []string{"warning driver/gpu.intel.com", "warning driver/gpu.intel.com"}, "the plugin names GPUs by their card"},
		{"Gaudi by serial number", Migrate, prepared, of("habana.ai/gaudi", "gaudi.intel.com"), []string{"warning driver/gaudi.intel.com"}, noLook},
		{"TPU", Migrate, prepared, of("google.com/tpu", "tpu.google.com"), []string{"warning driver/tpu.google.com", "warning driver/tpu.google.com"}, "one uuid for several"},
		{"a driver that is not known", Migrate, prepared, of("example.com/gpu", "gpu.example.com"), []string{"warning driver/gpu.example.com", "warning driver/gpu.example.com"}, "as if it held the plugin's IDs"},
		{"back", Rollback, migrated, of("amd.com/gpu", "gpu.amd.com"), nil, ""},
		{"the driver's class has another name", Migrate, prepared, func(s *state) {
			of("habana.ai/gaudi", "gaudi.intel.com")(s)
			other := "intel.com/gaudi"
			s.Classes = []resourcev1.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "gaudi.intel.com"}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: &other}}}
		}, []string{"warning driver/gaudi.intel.com", "info deviceclass/gaudi.intel.com"}, noLook},
	})
}
