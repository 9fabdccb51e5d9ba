package nodeprobe

// Files are what kubelet and driver have on the node's disk. A field is null if it was
// not asked for or could not be read; the latter is named in the report's Unknown.
type Files struct {
	// KubeletRoot is the folder that was looked at.
	KubeletRoot string `json:"kubeletRoot"`
	// DeviceManager is the checkpoint of the kubelet's device manager.
	DeviceManager *DeviceManager `json:"deviceManager,omitempty"`
	// Claims are those that the kubelet has prepared, or begun to (dra_manager_state).
	Claims []ClaimRecord `json:"claims"`
	// DriverCheckpoints are those of DRA drivers whose format is known.
	DriverCheckpoints []DriverCheckpoint `json:"driverCheckpoints"`
	// PodFolders are the UIDs of the pods that the kubelet still has a folder of. It
	// removes the folder once the pod's containers have ended and its volumes are gone.
	PodFolders []string `json:"podFolders"`
	// Sockets are the plugins' and drivers'.
	Sockets *Sockets `json:"sockets,omitempty"`
	// CDI are the specifications of the Container Device Interface.
	CDI []CDISpec `json:"cdi"`
}

// DeviceManager is the checkpoint of the kubelet's device manager.
type DeviceManager struct {
	// Absent says that the folder has no such file: no plugin has registered since the
	// node was set up, or somebody has removed it.
	Absent bool `json:"absent,omitempty"`
	// Entries are given to pods. The kubelet does not remove those of a pod when it goes.
	Entries []DeviceEntry `json:"entries"`
	// Registered are the ids of each registered resource, sorted.
	Registered map[string][]string `json:"registered"`
}

// DeviceEntry is what a container was given by a plugin.
type DeviceEntry struct {
	PodUID    string   `json:"podUID"`
	Container string   `json:"container"`
	Resource  string   `json:"resource"`
	IDs       []string `json:"ids"`
}

// ClaimRecord is a claim that the kubelet has prepared for pods.
type ClaimRecord struct {
	// Claim is "namespace/name".
	Claim   string   `json:"claim"`
	UID     string   `json:"uid"`
	PodUIDs []string `json:"podUIDs"`
	Devices []Device `json:"devices"`
}

// DriverCheckpoint is what a DRA driver has on record of the claims it has prepared.
type DriverCheckpoint struct {
	Driver string `json:"driver"`
	Path   string `json:"path"`
	// Claims are null if the format is not known; Reason says so.
	Claims []PreparedClaim `json:"claims"`
	Reason string          `json:"reason,omitempty"`
}

// PreparedClaim is a claim in a driver's checkpoint.
type PreparedClaim struct {
	UID string `json:"uid"`
	// Claim is "namespace/name"; empty if the driver does not record it.
	Claim string `json:"claim,omitempty"`
	// State is the driver's word, such as "PrepareCompleted".
	State   string           `json:"state,omitempty"`
	Devices []PreparedDevice `json:"devices"`
}

// PreparedDevice is a device of a prepared claim.
type PreparedDevice struct {
	Pool string `json:"pool,omitempty"`
	Name string `json:"name"`
	// UUID and ParentUUID are empty if the driver does not record them.
	UUID       string `json:"uuid,omitempty"`
	ParentUUID string `json:"parentUUID,omitempty"`
	PCIBusID   string `json:"pciBusID,omitempty"`
	// Type is "gpu", "mig" or "vfio".
	Type string `json:"type,omitempty"`
	// Admin says that the claim only looks at the device (adminAccess).
	Admin bool `json:"admin,omitempty"`
}

// Sockets are the files by which plugins and drivers are reached. That one is there
// does not say that somebody answers.
type Sockets struct {
	// DevicePlugins are the names in device-plugins/, without the kubelet's own.
	DevicePlugins []string `json:"devicePlugins"`
	// Registrations are the names in plugins_registry/, of DRA drivers and of others.
	Registrations []string `json:"registrations"`
	// Drivers are the folders of plugins/ with a DRA driver's socket.
	Drivers []string `json:"drivers"`
	// Others are the folders of plugins/ with sockets of another kind, such as those of
	// storage drivers.
	Others []string `json:"others"`
}

// CDISpec is one file of the Container Device Interface.
type CDISpec struct {
	Path string `json:"path"`
	// CDIKind is such as "nvidia.com/gpu".
	CDIKind string   `json:"cdiKind"`
	Devices []string `json:"devices"`
}
