package manifests

import (
	"path"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Driver is everything of the DRA driver gpu.nvidia.com but a DeviceClass, in
// the order in which it has to be created.
func Driver() []runtime.Object {
	entries, err := files.ReadDir("driver")
	if err != nil {
		panic(err) // the folder is embedded
	}
	var objects []runtime.Object
	for _, e := range entries {
		objects = append(objects, embedded(path.Join("driver", e.Name()))...)
	}
	return objects
}

// DriverDaemonSet is the DaemonSet among [Driver].
func DriverDaemonSet() *appsv1.DaemonSet {
	return only[*appsv1.DaemonSet](Driver())
}

// WriteDriverFiles puts [Driver] into dir as a user keeps it: as YAML files, with names
// that sort in the order of their creation. dir must not have them yet.
func WriteDriverFiles(dir string) error { return NVIDIA().WriteDriverFiles(dir) }

// DeviceClass is gpu.nvidia.com with the extended resource name nvidia.com/gpu:
// the moment it exists, every pod with that name may be served by the driver.
func DeviceClass() *resourceapi.DeviceClass {
	return only[*resourceapi.DeviceClass](embedded("deviceclass.yaml"))
}

// DriverWithClass is [Driver] and [DeviceClass], as the vendor's chart installs
// them together.
func DriverWithClass() []runtime.Object {
	return slices.Concat(Driver(), []runtime.Object{DeviceClass()})
}
