package checks

import (
	"slices"
	"strings"
)

// Group is a part of the catalogue.
type Group string

// Section is a group with its checks.
type Section struct {
	Group  Group
	Checks []Check
}

// Sections are the catalogue in the order in which it is shown. A new group is one line
// here and one file with its checks.
func Sections() []Section {
	return []Section{
		{"Versions and API", versions()},
		{"Permissions", permissions()},
		{"Advertisement", advertisement()},
		{"Placement of plugin and driver", placement()},
		{"DeviceClass", deviceClass()},
		{"Workloads", workloads()},
		{"Budgets and drain", draining()},
		{"From one pool into another", otherPool()},
		{"Accounting", accounting()},
		{"Autoscaling and other actors", actors()},
		{"When not to", whenNot()},
		{"Records of runs", records()},
	}
}

// All are the checks of the catalogue, in its order.
func All() []Check {
	var out []Check
	for _, s := range Sections() {
		for _, c := range s.Checks {
			c.Group = s.Group
			out = append(out, c)
		}
	}
	return out
}

// Find finds a check by its code, in capital letters or small ones.
func Find(code string) (Check, bool) {
	all := All()
	i := slices.IndexFunc(all, func(c Check) bool { return strings.EqualFold(c.Code, code) })
	if i < 0 {
		return Check{}, false
	}
	return all[i], true
}
