package checks

import (
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

const (
	ofDriver  = `device.driver == "gpu.nvidia.com"`
	ofGPUs    = ofDriver + ` && device.attributes["gpu.nvidia.com"].type == "gpu"`
	ofHAMi    = `device.driver == 'hami-core-gpu.project-hami.io' && device.attributes['hami-core-gpu.project-hami.io'].type == 'hami-gpu'`
	helmOwned = "meta.helm.sh/release-name"
)

// carries gives the cluster one class with the resource's name.
func carries(name string, expressions ...string) func(*state) {
	return func(s *state) { s.Classes = []resourcev1.DeviceClass{class(name, expressions...)} }
}

// toCreate has the run create a class.
func toCreate(name string, expressions ...string) func(*state) {
	return func(s *state) {
		s.in.NewClass = name
		s.in.NewClassObject = ptr.To(class(name, expressions...))
	}
}

// publishes has node m1 publish one device of each type.
func publishes(types ...string) func(*state) {
	return func(s *state) {
		sl := nodeSlice("m1", driver, types...)
		for i, kind := range types {
			sl.Spec.Devices[i].Attributes["type"] = resourcev1.DeviceAttribute{StringValue: ptr.To(kind)}
		}
		s.Slices = append(s.Slices, sl)
	}
}

func TestDRM014OtherTypes(t *testing.T) {
	t.Parallel()
	const either = ofDriver + ` && device.attributes["gpu.nvidia.com"].type in ["gpu", "mig"]`
	nvidia := []string{"warning deviceclass/c"}
	try(t, "DRM014", []given{
		{"whole GPUs alone", Migrate, prepared, both(carries("c", ofGPUs), publishes("gpu", "mig", "vfio")), nil, ""},
		{"a class that lets partitions in", Migrate, prepared, both(carries("c", either), publishes("gpu", "mig", "vfio")), nvidia, `1 devices of type "mig" as well`},
		{"a class for the driver, whatever the type", Migrate, prepared, both(carries("c", ofDriver), publishes("gpu", "mig", "vfio")),
			[]string{"warning deviceclass/c", "warning deviceclass/c"}, `1 devices of type "mig"`},
		{"every type that is published is meant", Migrate, prepared, both(carries("c", ofDriver), publishes("gpu")), nil, ""},
		{"some of the GPUs", Migrate, prepared, both(carries("c", `device.attributes["gpu.nvidia.com"].uuid == "GPU-m1-gpu-0"`), func(s *state) {
			s.Slices = append(s.Slices, nodeSlice("m1", driver, "gpu-0", "gpu-1"))
		}), nvidia, `selects 1 of the 2 devices of type "gpu"`},
		{"the class of another driver, nothing published", Migrate, prepared, carries("c", ofHAMi), []string{"blocker deviceclass/c"}, "devices of hami-core-gpu.project-hami.io, and can select none of gpu.nvidia.com"},
		{"the class of another driver, published", Migrate, prepared, both(carries("c", ofHAMi), publishes("gpu")), []string{"blocker deviceclass/c"}, "selects none"},
		{"a class that cannot be judged yet", Migrate, prepared, carries("c", ofGPUs), []string{"info deviceclass/c"}, "publishes no device yet"},
		{"one that asks for an attribute first", Migrate, prepared, carries("c", `device.attributes["gpu.nvidia.com"].type == "gpu"`), []string{"info deviceclass/c"}, ""},
		{"one for any driver", Migrate, prepared, carries("c"), []string{"warning deviceclass/c"}, "the devices of every driver"},
		{"one of two drivers", Migrate, prepared, carries("c", `device.driver == "x.example" || device.driver == "gpu.nvidia.com"`), []string{"info deviceclass/c"}, ""},
		{"a class to be made, nothing published", Migrate, prepared, toCreate("new", ofGPUs), nil, ""},
		{"a class to be made for another driver", Migrate, prepared, toCreate("new", ofHAMi), []string{"blocker deviceclass/new"}, ""},
		{"a class to be made that selects none", Migrate, prepared, both(toCreate("new", ofGPUs), publishes("mig")), []string{"blocker deviceclass/new"}, "selects none"},
	})
}

func TestDRM045(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 64)
	try(t, "DRM045", []given{
		{"63 characters", Migrate, prepared, carries(long[:63], ofDriver), nil, ""},
		{"64 characters", Migrate, prepared, carries(long, ofDriver), []string{"info deviceclass/" + long}, "cannot be asked for as deviceclass.resource.kubernetes.io/"},
		{"64 characters, yet to be made", Migrate, prepared, toCreate(long, ofDriver), []string{"info deviceclass/" + long}, "63"},
		{"of a class that maps nothing", Migrate, prepared, func(s *state) {
			carries(long, ofDriver)(s)
			s.Classes[0].Spec.ExtendedResourceName = nil
		}, nil, ""},
	})
}

func TestDRM046(t *testing.T) {
	t.Parallel()
	configured := func(driverName, parameters string) func(*state) {
		return func(s *state) {
			carries("c", ofDriver)(s)
			s.Classes[0].Spec.Config = []resourcev1.DeviceClassConfiguration{{DeviceConfiguration: resourcev1.DeviceConfiguration{
				Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: driverName, Parameters: runtime.RawExtension{Raw: []byte(parameters)}},
			}}}
		}
	}
	try(t, "DRM046", []given{
		{"sharing for all", Migrate, prepared, configured(driver, `{"apiVersion":"resource.nvidia.com/v1beta1","kind":"GpuConfig"}`), []string{"warning deviceclass/c"}, "configuration GpuConfig for gpu.nvidia.com"},
		{"parameters that tell nothing", Migrate, prepared, configured(driver, `[]`), []string{"warning deviceclass/c"}, "configuration for gpu.nvidia.com"},
		{"for another driver", Migrate, prepared, configured("net.example", `{"kind":"X"}`), []string{"info deviceclass/c"}, "X for net.example, which gpu.nvidia.com does not heed"},
		{"none", Migrate, prepared, carries("c", ofDriver), nil, ""},
	})
}

func TestDRM047(t *testing.T) {
	t.Parallel()
	try(t, "DRM047", []given{
		{"a chart has made it live", Prepare, untouched, carries("gpu.nvidia.com", ofGPUs), []string{"info deviceclass/gpu.nvidia.com"}, "3 nodes with the plugin and 1 pod that asks for nvidia.com/gpu"},
		{"the run will", Migrate, prepared, toCreate("dramigrate-nvidia-gpu", ofGPUs), []string{"info deviceclass/dramigrate-nvidia-gpu"}, "from then on it counts for every pool: 3 nodes"},
		{"it is in use already", Migrate, migrated, nil, nil, ""},
		{"nobody asks for the resource, and no node has it", Migrate, prepared, func(s *state) {
			toCreate("new", ofGPUs)(s)
			s.in.Resource = "amd.com/gpu"
		}, nil, ""},
		{"no class, and none to be made by prepare", Prepare, untouched, nil, nil, ""},
	})
}

func TestDRM048(t *testing.T) {
	t.Parallel()
	owned := func(s *state) {
		carries("gpu.nvidia.com", ofGPUs)(s)
		s.Classes[0].Annotations = map[string]string{helmOwned: "dra-driver-nvidia-gpu", "meta.helm.sh/release-namespace": "gpu"}
	}
	try(t, "DRM048", []given{
		{"Helm's", Migrate, prepared, owned, []string{"info deviceclass/gpu.nvidia.com"}, "belongs to Helm release gpu/dra-driver-nvidia-gpu"},
		{"the tool's own", Migrate, prepared, func(s *state) {
			carries("dramigrate-nvidia-gpu", ofGPUs)(s)
			s.Classes[0].Labels = map[string]string{"app.kubernetes.io/managed-by": "dramigrate"}
		}, nil, ""},
		{"nobody's", Migrate, prepared, carries("c", ofGPUs), nil, ""},
		{"no longer of concern", Rollback, migrated, owned, nil, ""},
	})
}

func TestDRM049(t *testing.T) {
	t.Parallel()
	const example = `device.driver == "gpu.example.com"`
	of := func(expression string) func(*state) {
		return func(s *state) {
			s.in.Driver = "gpu.example.com"
			toCreate("new", expression)(s)
		}
	}
	try(t, "DRM049", []given{
		{"a driver of which nothing is known", Migrate, prepared, of(example), []string{"warning deviceclass/new"}, "selects every device of gpu.example.com"},
		{"with a class that a person wrote", Migrate, prepared, of(example + ` && device.attributes["gpu.example.com"].kind == "whole"`), nil, ""},
		{"a driver that is known", Migrate, prepared, toCreate("new", ofDriver), nil, ""},
		{"a class that is there", Migrate, prepared, func(s *state) { s.in.Driver = "gpu.example.com"; carries("c", example)(s) }, nil, ""},
	})
}
