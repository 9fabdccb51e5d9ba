package plan

// The steps of a migration, done on each node in this order.
const (
	StepMark             StepID = "mark"
	StepDrain            StepID = "drain"
	StepProbeBefore      StepID = "probe-before"
	StepPluginOff        StepID = "plugin-off"
	StepPodResourcesList StepID = "podresources-list"
	StepDriverOn         StepID = "driver-on"
	StepDeviceClass      StepID = "device-class"
	StepCanary           StepID = "canary"
	StepOpen             StepID = "open"
	StepSettle           StepID = "settle"
)

// The steps of a move into another pool beside those of a migration: a look at a new
// node, and the end on a node that workloads have left.
const (
	StepDriverReady StepID = "driver-ready"
	StepRetire      StepID = "retire"
)

// The steps of a rollback; it starts with StepMark.
const (
	StepDrainClaims StepID = "drain-claims"
	StepDriverOff   StepID = "driver-off"
	StepPluginOn    StepID = "plugin-on"
	StepRestore     StepID = "restore"
)

// The steps of prepare, on shared objects.
const (
	StepNamespace     StepID = "namespace"
	StepPluginExclude StepID = "plugin-exclude"
	StepPluginByOwner StepID = "plugin-by-owner"
	StepDriverInstall StepID = "driver-install"
	StepDriverPlace   StepID = "driver-place"
	StepDriverByOwner StepID = "driver-by-owner"
	StepRecord        StepID = "record"
)

// The steps of unprepare; it ends with StepRecord.
const (
	StepDeviceClassDelete StepID = "device-class-delete"
	StepDriverRemove      StepID = "driver-remove"
	StepPluginInclude     StepID = "plugin-include"
)
