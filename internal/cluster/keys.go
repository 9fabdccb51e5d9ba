package cluster

// What the tool writes on a Node.
const (
	// AllocationLabel says which mechanism a node's devices are handed out by:
	// absent means the device plugin, "switching" neither, "dra" the DRA driver.
	AllocationLabel = "dramigrate.dev/allocation"
	// StateAnnotation holds the NodeState: the one truth about a node that is, or
	// was, under migration.
	StateAnnotation = "dramigrate.dev/state"
	// HelperLabel is on the tool's own short pods; its value is what they are for.
	HelperLabel = "dramigrate.dev/purpose"
	// HelperForReport is its value on the pods of a probe beside runs.
	HelperForReport = "report"
	// HelperNodeAnnotation is the whole name of the node that a helper pod is for; it
	// does not fit into a label.
	HelperNodeAnnotation = "dramigrate.dev/node"
)

// ImplicitResourcePrefix begins the extended resource name that every DeviceClass
// has without saying so (KEP-5004; k8s.io/api/resource/v1, ResourceDeviceClassPrefix).
// No device plugin ever serves such a name.
const ImplicitResourcePrefix = "deviceclass.resource.kubernetes.io/"
