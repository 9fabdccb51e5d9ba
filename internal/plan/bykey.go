package plan

import "github.com/dramigrate/dramigrate/internal/vendor"

// What the steps promise to compare is what is known of the driver's vendor.

func byKey(p *Plan) string {
	if key := vendor.JoinOf(p.Driver.Name).Key; key != vendor.NoKey {
		return ", by " + string(key)
	}
	return ", by the plugin's IDs"
}

func recorded(p *Plan) string {
	if vendor.JoinOf(p.Driver.Name).Key == vendor.NoKey {
		return "as many devices as were recorded; which is which is not known"
	}
	return "exactly the recorded devices"
}

func looks(p *Plan) bool {
	v, _ := vendor.OfDriver(p.Driver.Name)
	return len(v.Look) > 0
}

func canaryLooks(p *Plan) string {
	if looks(p) {
		return "compare the devices in it with its claim"
	}
	return "see that its claim is allocated, reserved and mapped and that it starts; what it sees of its devices is not looked at"
}

func canaryWait(p *Plan) string {
	if looks(p) {
		return "the canary to be scheduled by DRA, to run, and to see the devices of its claim"
	}
	return "the canary to be scheduled by DRA and to run"
}

func canaryDone(p *Plan) string {
	if looks(p) {
		return "the canary saw its devices"
	}
	return "the canary ran with its claim"
}
