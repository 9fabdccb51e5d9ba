package nodeprobe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// folder says whether the kubelet still has a pod's folder.
type folder int

const (
	folderUnknown folder = iota
	folderThere
	folderGone
)

func (j *join) folderOf(podUID string) folder {
	if j.r.Files == nil || j.r.Files.PodFolders == nil {
		return folderUnknown
	}
	if _, found := slices.BinarySearch(j.r.Files.PodFolders, podUID); found {
		return folderThere
	}
	return folderGone
}

// pluginHold is what one container was given by a plugin, by all who tell of it.
type pluginHold struct {
	Hold
	ids []string
}

func (h *pluginHold) key() string {
	return h.Container + "\x00" + h.Resource + "\x00" + strings.Join(h.ids, "\x00")
}

// pluginHolds enters what pods were given by plugins. The kubelet's List names the pods
// that are active; the device manager's checkpoint has their UIDs, and with them the
// records of pods that are gone.
func (j *join) pluginHolds() {
	var holds []*pluginHold
	for _, h := range j.r.Holders {
		if h.Resource != "" {
			holds = append(holds, &pluginHold{Hold{
				By: ByPlugin, Pod: h.Pod, Container: h.Container, Resource: h.Resource, Witnesses: []Witness{WitnessList},
			}, h.IDs})
		}
	}
	if j.r.Holders == nil {
		j.plugin.holdGaps = append(j.plugin.holdGaps, "which pods hold devices of plugins is unknown")
	}
	if j.r.Files != nil && j.r.Files.DeviceManager != nil {
		holds = j.withRecords(holds, j.r.Files.DeviceManager.Entries)
	}
	for _, h := range holds {
		for _, id := range h.ids {
			p, err := j.inventory.OfPlugin(id)
			if err != nil {
				if j.drivers(h.Resource) {
					j.plugin.holdGaps = append(j.plugin.holdGaps, fmt.Sprintf("resource %s: %v", h.Resource, err))
				}
				continue
			}
			e := j.at(p, id)
			e.state.Holds = append(e.state.Holds, h.Hold)
			j.plugin.touches = append(j.plugin.touches, touch{place: p, held: true, what: h.String() + " holds " + id})
		}
	}
}

// withRecords joins the checkpoint's records to what List told. A record has the pod's
// UID and List its name, so that without the API they are joined by what was given.
func (j *join) withRecords(holds []*pluginHold, records []DeviceEntry) []*pluginHold {
	nameless := map[string][]DeviceEntry{}
	for _, r := range records {
		h := pluginHold{Hold{
			By: ByPlugin, PodUID: r.PodUID, Container: r.Container, Resource: r.Resource, Witnesses: []Witness{WitnessDeviceManager},
		}, r.IDs}
		name, known := j.pods.name[r.PodUID]
		listed := slices.IndexFunc(holds, func(l *pluginHold) bool { return known && l.Pod == name && l.key() == h.key() })
		switch {
		case listed >= 0:
			holds[listed].PodUID = r.PodUID
			holds[listed].Witnesses = append(holds[listed].Witnesses, WitnessDeviceManager)
		case j.folderOf(r.PodUID) == folderGone, known && j.pods.ended[r.PodUID]:
			j.r.Leftovers = append(j.r.Leftovers, Leftover{
				Witness: WitnessDeviceManager, PodUID: r.PodUID, Resource: r.Resource, IDs: r.IDs,
			})
		case known:
			// The API has the pod as running, and List leaves it out: the kubelet may not
			// yet know its pods again after a restart.
			h.Pod, h.Witnesses = name, append(h.Witnesses, WitnessAPI)
			holds = append(holds, &h)
		default:
			nameless[h.key()] = append(nameless[h.key()], r)
		}
	}
	for _, key := range sortedKeys(nameless) {
		j.explain(nameless[key], holds, key)
	}
	return holds
}

// explain finds for records without a name the listed pods that were given the same. Of
// records in excess it is not known whether their pods have ended.
func (j *join) explain(records []DeviceEntry, holds []*pluginHold, key string) {
	var listed []*pluginHold
	for _, h := range holds {
		if h.key() == key && h.PodUID == "" {
			listed = append(listed, h)
		}
	}
	if len(records) == 1 && len(listed) == 1 {
		listed[0].PodUID = records[0].PodUID
	}
	if len(records) <= len(listed) {
		for _, h := range listed[:len(records)] {
			h.Witnesses = append(h.Witnesses, WitnessDeviceManager)
		}
		return
	}
	for _, r := range records {
		for _, id := range r.IDs {
			if p, err := j.inventory.OfPlugin(id); err == nil {
				j.doubt(p, id, fmt.Sprintf("the device manager has a record that pod UID %s was given it as %s; "+
					"no List names the pod, and whether it has ended is unknown", r.PodUID, r.Resource))
			}
		}
	}
}

// doubt keeps a place from being called clean, and makes sure that it is in the report.
func (j *join) doubt(p placeOf, name, what string) {
	j.at(p, name)
	j.doubts = append(j.doubts, doubt{p, what})
}

// String names the holder.
func (h Hold) String() string {
	var b strings.Builder
	switch {
	case h.Pod != "":
		b.WriteString("pod " + h.Pod)
	case h.PodUID != "":
		b.WriteString("pod UID " + h.PodUID)
	case h.Claim != "":
		return "claim " + h.Claim
	}
	if h.PID != 0 {
		process := fmt.Sprintf("process %d (%s)", h.PID, cmp.Or(h.Command, "name unknown"))
		if b.Len() == 0 {
			return process
		}
		return process + " of " + b.String()
	}
	if h.Container != "" {
		fmt.Fprintf(&b, ", container %s,", h.Container)
	}
	switch {
	case h.Resource != "":
		b.WriteString(" by plugin resource " + h.Resource)
	case h.Claim != "":
		b.WriteString(" by claim " + h.Claim)
	}
	return b.String()
}
