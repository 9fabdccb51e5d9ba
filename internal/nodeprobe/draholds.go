package nodeprobe

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dramigrate/dramigrate/internal/gpuid"
)

// placeOf is short for the type that all of the join turns on.
type placeOf = gpuid.Place

// claimHold is one claim, by all who tell of it.
type claimHold struct {
	ref, uid string
	// pods are names, by List or the API; podUIDs the kubelet's.
	pods, podUIDs []string
	devices       []Device
	witnesses     []Witness
}

// draHolds enters what pods were given by claims. The kubelet's own state has the UIDs,
// its List the names, and the API also the claims that no node has prepared yet.
func (j *join) draHolds() {
	recorded := j.r.Files != nil && j.r.Files.Claims != nil
	if j.r.Holders == nil && !recorded {
		j.dra.holdGaps = append(j.dra.holdGaps, "which pods hold devices by claims is unknown")
	}
	claims := j.claims()
	for _, c := range claims {
		j.holdClaim(c)
	}
	// A claim that a driver has prepared and nobody else knows keeps its devices from
	// being given to others by DRA, and nothing says who may still use them.
	for _, p := range j.preparedClaims() {
		if slices.ContainsFunc(claims, func(c *claimHold) bool { return c.is(p) }) {
			continue
		}
		j.r.Leftovers = append(j.r.Leftovers, Leftover{Witness: WitnessDriverCheckpoint, Claim: cmp.Or(p.Claim, "UID "+p.UID)})
		for _, d := range p.Devices {
			if place, err := j.inventory.OfDRA(d.attributes()); err == nil && !d.Admin {
				j.doubt(place, d.Name, fmt.Sprintf("the driver has claim %s as prepared (%s), which neither the kubelet nor the API names",
					cmp.Or(p.Claim, "UID "+p.UID), cmp.Or(p.State, "state unknown")))
			}
		}
	}
}

// is says whether the driver's record is of this claim: by UID, and by name where
// either has no UID.
func (c *claimHold) is(p PreparedClaim) bool {
	if c.uid != "" && p.UID != "" {
		return c.uid == p.UID
	}
	return p.Claim != "" && p.Claim == c.ref
}

// claims are those of which the kubelet or the API tell, by name and UID.
func (j *join) claims() []*claimHold {
	var out []*claimHold
	find := func(ref, uid string) *claimHold {
		for _, c := range out {
			if c.ref == ref && (c.uid == uid || c.uid == "" || uid == "") {
				c.uid = cmp.Or(c.uid, uid)
				return c
			}
		}
		c := &claimHold{ref: ref, uid: uid}
		out = append(out, c)
		return c
	}
	if j.r.Files != nil {
		for _, r := range j.r.Files.Claims {
			c := find(r.Claim, r.UID)
			c.podUIDs = r.PodUIDs
			c.tells(WitnessClaimState, r.Devices)
		}
	}
	for _, h := range j.r.Holders {
		if h.Claim != "" {
			c := find(h.Claim, "")
			c.named(h.Pod)
			c.tells(WitnessList, h.Devices)
		}
	}
	for i := range j.api.Claims {
		a := &j.api.Claims[i]
		if a.Status.Allocation == nil {
			continue
		}
		ref := a.Namespace + "/" + a.Name
		var here []Device
		for _, r := range a.Status.Allocation.Devices.Results {
			d := Device{Driver: r.Driver, Pool: r.Pool, Name: r.Device}
			if j.isHere(d) {
				here = append(here, d)
			}
		}
		known := slices.ContainsFunc(out, func(c *claimHold) bool { return c.ref == ref })
		if len(here) == 0 && !known {
			continue
		}
		c := find(ref, string(a.UID))
		for _, by := range a.Status.ReservedFor {
			if by.Resource == "pods" && by.APIGroup == "" && !j.pods.ended[string(by.UID)] {
				c.named(a.Namespace + "/" + by.Name)
			}
		}
		c.tells(WitnessAPI, here)
	}
	return out
}

func (c *claimHold) named(pod string) {
	if !slices.Contains(c.pods, pod) {
		c.pods = append(c.pods, pod)
	}
}

func (c *claimHold) tells(w Witness, devices []Device) {
	if !slices.Contains(c.witnesses, w) {
		c.witnesses = append(c.witnesses, w)
	}
	for _, d := range devices {
		if !slices.Contains(c.devices, d) {
			c.devices = append(c.devices, d)
		}
	}
}

// isHere says whether a device is one of the node's slices.
func (j *join) isHere(d Device) bool {
	for _, p := range j.slices {
		if p.driver == d.Driver && p.name == d.Pool {
			return slices.ContainsFunc(p.devices, func(q published) bool { return q.triplet == d })
		}
	}
	return false
}

// holdClaim enters one claim at the places of its devices.
func (j *join) holdClaim(c *claimHold) {
	holds, doubtful := j.holdersOf(c)
	for _, d := range c.devices {
		if j.admin(c, d) {
			continue
		}
		p, err := j.placeOfClaim(c, d)
		if err != nil {
			if j.plugins(d.Driver) {
				j.dra.holdGaps = append(j.dra.holdGaps, fmt.Sprintf("claim %s holds %s: %v", c.ref, d, err))
			}
			continue
		}
		if doubtful != "" {
			j.doubt(p, d.String(), doubtful)
		}
		e := j.at(p, d.String())
		for _, h := range holds {
			e.state.Holds = append(e.state.Holds, h)
			j.dra.touches = append(j.dra.touches, touch{place: p, held: true, what: h.String() + " holds " + d.String()})
		}
	}
}

// holdersOf are the pods of a claim. It is in doubt if the kubelet has the claim for
// pods alone whose folders are gone, as after a forced deletion: it goes on trying to
// unprepare it, and until then the driver has it as given.
func (j *join) holdersOf(c *claimHold) (holds []Hold, doubtful string) {
	hold := Hold{By: ByDRA, Claim: c.ref, Witnesses: c.witnesses}
	unnamed := []string{}
	uidOf := map[string]string{}
	for _, uid := range c.podUIDs {
		name, known := j.pods.name[uid]
		switch {
		case known:
			uidOf[name] = uid
			c.named(name)
		case j.folderOf(uid) == folderGone:
			j.r.Leftovers = append(j.r.Leftovers, Leftover{Witness: WitnessClaimState, PodUID: uid, Claim: c.ref})
			doubtful = fmt.Sprintf("the kubelet still has claim %s as prepared for pod UID %s, whose folder is gone", c.ref, uid)
		default:
			unnamed = append(unnamed, uid)
		}
	}
	nameless := slices.DeleteFunc(slices.Clone(c.pods), func(pod string) bool { return uidOf[pod] != "" })
	if len(unnamed) == 1 && len(nameless) == 1 {
		uidOf[nameless[0]] = unnamed[0]
	}
	for _, pod := range c.pods {
		h := hold
		h.Pod, h.PodUID = pod, uidOf[pod]
		holds = append(holds, h)
	}
	if len(unnamed) > len(nameless) {
		for _, uid := range unnamed[len(nameless):] {
			h := hold
			h.PodUID = uid
			holds = append(holds, h)
		}
	}
	if len(holds) == 0 && doubtful == "" {
		holds = append(holds, hold) // allocated, and for no pod yet
	}
	return holds, doubtful
}

// placeOfClaim finds a claim's device: by the driver's record of this claim, which also
// has the UUID of a partition that was made for it, or by the slices.
func (j *join) placeOfClaim(c *claimHold, d Device) (placeOf, error) {
	for _, p := range j.preparedClaims() {
		if d.Driver != nvidiaDriver || !c.is(p) {
			continue
		}
		for _, prepared := range p.Devices {
			if prepared.Name == d.Name && (prepared.Pool == "" || prepared.Pool == d.Pool) {
				if place, err := j.inventory.OfDRA(prepared.attributes()); err == nil {
					return place, nil
				}
			}
		}
	}
	for _, pool := range j.slices {
		for _, q := range pool.devices {
			if q.triplet == d {
				return j.inventory.OfDRA(q.attributes)
			}
		}
	}
	return placeOf{}, fmt.Errorf("its UUID is known neither by a ResourceSlice nor by the driver's checkpoint")
}

// admin says whether the claim only looks at the device.
func (j *join) admin(c *claimHold, d Device) bool {
	for i := range j.api.Claims {
		a := &j.api.Claims[i]
		if a.Namespace+"/"+a.Name != c.ref || c.uid != "" && string(a.UID) != c.uid || a.Status.Allocation == nil {
			continue
		}
		for _, r := range a.Status.Allocation.Devices.Results {
			if r.Driver == d.Driver && r.Pool == d.Pool && r.Device == d.Name && r.AdminAccess != nil {
				return *r.AdminAccess
			}
		}
	}
	for _, p := range j.preparedClaims() {
		if c.is(p) {
			return slices.ContainsFunc(p.Devices, func(q PreparedDevice) bool { return q.Name == d.Name && q.Admin })
		}
	}
	return false
}

func compareDevices(a, b Device) int {
	return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Name, b.Name))
}
