// Package nodeprobe is the witness on a node: it asks the kubelet there what it
// advertises by the device plugin and which pods hold which devices, reads what kubelet
// and driver have on record, looks at the hardware, and joins all of it by device.
//
// The API server knows these only second hand. A node's allocatable lags behind the
// kubelet by up to one status interval, and nothing in the API says which device a
// pod got from a plugin. The package runs inside a short pod (`dramigrate
// node-probe`), so it imports no client. It builds without cgo, and then says that the
// hardware is unknown.
package nodeprobe

import (
	"time"

	"github.com/dramigrate/dramigrate/internal/nvml"
)

// APIVersion and Kind of the report.
const (
	APIVersion = "dramigrate.dev/v1alpha1"
	Kind       = "NodeReport"
)

// Parts of a report that can be unknown, named as the fields are.
const (
	PartAdvertised        = "advertised"
	PartHolders           = "holders"
	PartHardware          = "hardware"
	PartDeviceManager     = "deviceManager"
	PartClaims            = "claims"
	PartDriverCheckpoints = "driverCheckpoints"
	PartPodFolders        = "podFolders"
	PartSockets           = "sockets"
	PartCDI               = "cdi"
	// PartDevices is which devices there are that both mechanisms may offer.
	PartDevices = "devices"
)

// NodeReport is what one node said at one moment: what was read, as it was read, and
// what follows from it. With the API's view at hand, [Join] concludes anew.
type NodeReport struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Node is the name that the probe was started for; the kubelet's API does not
	// say it.
	Node string `json:"node"`
	// Time is when the kubelet was asked, in UTC.
	Time time.Time `json:"time"`
	// KubeletSocket is the PodResources socket that was asked.
	KubeletSocket string `json:"kubeletSocket"`
	// Verdict is the worst of the devices'. Empty if the probe was asked for the
	// kubelet's answers alone, which are no ground for one.
	Verdict Verdict `json:"verdict,omitempty"`
	// Advertised are the healthy devices of the kubelet's device plugins: ids by
	// resource, sorted, each once. DRA devices are never among them. Null if it
	// could not be read, and then named in Unknown.
	Advertised map[string][]string `json:"advertised"`
	// Holders are the containers that hold a device by a plugin or a claim, sorted.
	// Null if it could not be read, and then named in Unknown.
	Holders []Holder `json:"holders"`
	// ListCalled says that the kubelet answered a PodResources List, which also
	// makes it forget the devices of pods that are gone (see callList).
	ListCalled bool `json:"listCalled"`
	// Devices are the node's devices, one by one: who offers each and who has it.
	Devices []DeviceState `json:"devices,omitempty"`
	// Leftovers are records of pods, or of claims, that are gone.
	Leftovers []Leftover `json:"leftovers,omitempty"`
	// Parts are what the probe was asked for; empty for the kubelet's answers alone.
	Parts []Part `json:"parts,omitempty"`
	// Processes says that the owners of processes were to be found, which takes the
	// host's process table.
	Processes bool `json:"processes,omitempty"`
	// Hardware is what the driver's management library told. Null if it was not asked,
	// or could not be, and then named in Unknown.
	Hardware *nvml.Host `json:"hardware,omitempty"`
	// Files are what kubelet and driver have on the node's disk. Null if it was not
	// looked at.
	Files *Files `json:"files,omitempty"`
	// Unknown are the parts that could not be read. A report with one is no proof
	// of anything in that part.
	Unknown []Unknown `json:"unknown,omitempty"`
}

// Part is a part of the node that a probe can be asked for.
type Part string

// The parts. Each needs of the node what the others do not.
const (
	// AskKubelet is the PodResources API, by its socket.
	AskKubelet Part = "kubelet"
	// AskNVML is the hardware, by the driver's library and device nodes.
	AskNVML Part = "nvml"
	// AskCheckpoints is what kubelet and driver have on record, and the sockets, below
	// the kubelet's root folder.
	AskCheckpoints Part = "checkpoints"
	// AskCDI is the folders of the Container Device Interface.
	AskCDI Part = "cdi"
)

// Unknown is a part of the report that could not be read, and why.
type Unknown struct {
	Part   string `json:"part"`
	Reason string `json:"reason"`
}

// Holder is a container that holds devices: either ids of a plugin's resource, or
// the devices of a claim.
type Holder struct {
	// Pod is "namespace/name".
	Pod       string `json:"pod"`
	Container string `json:"container"`
	// Resource and IDs are set if a device plugin serves the container.
	Resource string   `json:"resource,omitempty"`
	IDs      []string `json:"ids,omitempty"`
	// Claim ("namespace/name") and Devices are set if DRA serves the container.
	//
	// Where the claim was generated for a pod's extended resources, the kubelet
	// lists all of its devices for each container that has any mapping (v1.37.2,
	// pkg/kubelet/cm/container_manager_linux.go, GetDynamicResources). Which
	// container holds which device stands in the claim's allocation and in
	// pod.status.extendedResourceClaimStatus. A container with a claim that the
	// kubelet has not prepared (any more) is listed without any claim, so that a
	// missing entry is no proof that a claim is free.
	Claim   string   `json:"claim,omitempty"`
	Devices []Device `json:"devices,omitempty"`
}

// Device is the triplet that names a DRA device in its cluster. ResourceSlices
// tell its UUID.
type Device struct {
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	Name   string `json:"name"`
}
