package vendor

// tpu is Google's: GKE runs the plugin, and the driver is a preview. By what its
// installation is recognised is not known, so only its slices tell where it runs.
func tpu() Vendor {
	const driver = "tpu.google.com"
	return Vendor{
		Name:      "Google TPU",
		Domain:    "google.com",
		Resources: []string{"google.com/tpu"},
		Plugins:   []Program{{Labels: []Label{{"k8s-app", "tpu-device-plugin"}}, Resources: []string{"google.com/tpu"}}},
		Devices: []Device{{
			Driver: driver,
			// What is published as uuid is one for several devices of a node.
			Join:   Join{Unknown: "what the plugin names TPUs by is not known, and the driver publishes one uuid for several"},
			Source: "GKE docs, \"Set up dynamic resource allocation\"",
		}},
		NodeLabels: []NodeLabel{{Key: "cloud.google.com/gke-tpu-accelerator"}},
		// The plugin's documentation, "Testing" (GKE 1.32 and later).
		OptOut: OptOut{Gate: "gke-tpu", Label: "gke-no-default-tpu-device-plugin"},
	}
}

// ascend has a DRA driver of which not even the name is known here.
func ascend() Vendor {
	return Vendor{
		Name:      "Huawei Ascend",
		Domain:    "huawei.com",
		Resources: []string{"huawei.com/"},
		Plugins: []Program{{
			Labels: []Label{{"name", "ascend-device-plugin-ds"}}, Resources: []string{"huawei.com/"},
		}},
	}
}
