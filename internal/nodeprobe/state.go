package nodeprobe

// Verdict is what follows for a device, or for the node.
type Verdict string

// The verdicts, from the best to the worst.
const (
	// Clean: at most one mechanism offers the device, and at most one has given it.
	Clean Verdict = "clean"
	// Undecided: something that would be needed to call it clean could not be read.
	Undecided Verdict = "unknown"
	// DoubleAdvertised: device plugin and DRA driver both offer the device, or
	// something that shares silicon with it, so that it may be given twice.
	DoubleAdvertised Verdict = "double-advertised"
	// DoubleHeld: a pod has the device by the plugin and another has it by a claim.
	DoubleHeld Verdict = "double-held"
)

// Verdicts are all verdicts, from the best to the worst.
func Verdicts() []Verdict { return []Verdict{Clean, Undecided, DoubleAdvertised, DoubleHeld} }

// By is the mechanism, or the mechanisms, by which a device is offered or held.
type By string

// The values. ByProcess is of holders alone: a process that nothing was given to.
// ByUnknown is never to be read as ByNone.
const (
	ByNone    By = "none"
	ByPlugin  By = "plugin"
	ByDRA     By = "dra"
	ByBoth    By = "both"
	ByProcess By = "process"
	ByUnknown By = "unknown"
)

// DeviceState is one device of the node, a GPU or a partition of one, by all witnesses
// together.
type DeviceState struct {
	// UUID is the GPU's or the partition's. Empty for a device that has none, such as a
	// partition that the driver would make on demand; it then is of ParentUUID, or at
	// PCIBusID.
	UUID string `json:"uuid,omitempty"`
	// ParentUUID is the GPU's of a partition.
	ParentUUID string `json:"parentUUID,omitempty"`
	PCIBusID   string `json:"pciBusID,omitempty"`
	// Type is "gpu" or "mig", and empty if neither the hardware nor a driver says it.
	Type    string `json:"type,omitempty"`
	Product string `json:"product,omitempty"`
	// Profile is a partition's, such as "1g.10gb".
	Profile string `json:"profile,omitempty"`
	// Seen says that the hardware was looked at and shows the device.
	Seen bool `json:"seen"`

	Verdict Verdict `json:"verdict"`
	// AdvertisedBy is who offers this device itself.
	AdvertisedBy By `json:"advertisedBy"`
	// HeldBy is who was given this device itself.
	HeldBy By `json:"heldBy"`
	// Resources are the plugin's extended resources that the device is offered as, and
	// DRADevices the names that the driver offers it by.
	Resources  []string `json:"resources,omitempty"`
	DRADevices []Device `json:"draDevices,omitempty"`
	// Holds are the pods that were given the device and the processes that use it and
	// were not given it, sorted.
	Holds []Hold `json:"holds,omitempty"`
	// Reasons say why the verdict is not clean, each with the objects by name; those of
	// the verdict come first.
	Reasons []string `json:"reasons,omitempty"`
	// Unknown says what could not be told about the device and why. It may be of no
	// weight for the verdict.
	Unknown []string `json:"unknown,omitempty"`
}

// Hold is one container's, or one process', hand on a device.
type Hold struct {
	By By `json:"by"`
	// Pod is "namespace/name"; empty if only the UID is known.
	Pod       string `json:"pod,omitempty"`
	PodUID    string `json:"podUID,omitempty"`
	Container string `json:"container,omitempty"`
	// Resource is the plugin's, Claim ("namespace/name") is DRA's.
	Resource string `json:"resource,omitempty"`
	Claim    string `json:"claim,omitempty"`
	// PID and Command are of a process that was given nothing.
	PID     int    `json:"pid,omitempty"`
	Command string `json:"command,omitempty"`
	// Witnesses say where it stands.
	Witnesses []Witness `json:"witnesses"`
}

// Witness is a source that tells of a hold.
type Witness string

// The witnesses. A record on disk outlives its pod; it is a hold only if the pod's
// folder is still there, or another witness tells of it.
const (
	WitnessList             Witness = "podresources-list"
	WitnessDeviceManager    Witness = "device-manager-checkpoint"
	WitnessClaimState       Witness = "dra-manager-state"
	WitnessDriverCheckpoint Witness = "driver-checkpoint"
	WitnessProcess          Witness = "process"
	WitnessAPI              Witness = "api"
)

// Leftover is a record of a pod whose folder is gone from the node. It holds nothing.
type Leftover struct {
	Witness Witness `json:"witness"`
	PodUID  string  `json:"podUID,omitempty"`
	// Claim is "namespace/name".
	Claim string `json:"claim,omitempty"`
	// Resource and IDs are of a plugin's record.
	Resource string   `json:"resource,omitempty"`
	IDs      []string `json:"ids,omitempty"`
}
