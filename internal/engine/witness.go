package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/nodeprobe"
	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/poolprobe"
	"github.com/dramigrate/dramigrate/internal/words"
)

// probe asks the node for its own word. A device that is in two hands there is an error
// that names both: whatever the API says, the node stays closed then. What the node
// could not see of its hardware is told once and stops nothing, for it is not what the
// run's own waits rest on.
func (n *nodeRun) probe(ctx context.Context, step plan.StepID) (*nodeprobe.NodeReport, error) {
	known, err := n.live.View(n.ref.Name)
	if err != nil {
		return nil, err
	}
	report, err := n.helper.Probe(ctx, known.Node, step)
	if err != nil {
		return nil, err
	}
	// The node was asked first: what the API names now and did not then is no pod that
	// the node could have had in its answer.
	v, err := n.live.Fresh(ctx, n.ref.Name)
	if err != nil {
		return nil, fmt.Errorf("hold the node's word against the API: %w", err)
	}
	judged := nodeprobe.Join(*report, poolprobe.APIView(v, func(string) bool { return false }))
	n.tellBlind(&judged)
	if why := doubly(&judged, nodeprobe.DoubleHeld); why != "" {
		return nil, fmt.Errorf("a device is in two hands, by the node's own word: %s; next: end one of the two pods, then the same command goes on", why)
	}
	if why := doubly(&judged, nodeprobe.DoubleAdvertised); why != "" {
		if step != plan.StepProbeBefore {
			return nil, fmt.Errorf("a device is offered by both mechanisms, by the node's own word: %s; next: %s shows who offers it", why,
				words.Command("probe", n.plan.Pool.Name, "--node", n.ref.Name, "-o", "wide"))
		}
		// The node is closed, and turning the plugin off is what ends it.
		n.emit(event.Warned{Stamp: n.stamp(), Node: n.ref.Name, Message: "offered by both mechanisms until the plugin is off: " + why})
	}
	return &judged, nil
}

// tellBlind tells once of each part that was not looked at: the hardware, and what
// kubelet and driver have on record.
func (n *nodeRun) tellBlind(r *nodeprobe.NodeReport) {
	for _, u := range r.Unknown {
		var message string
		switch u.Part {
		case nodeprobe.PartHardware:
			message = "the node's hardware was not looked at (" + u.Reason + "): what it says rests on its kubelet"
		case nodeprobe.PartDeviceManager, nodeprobe.PartClaims, nodeprobe.PartDriverCheckpoints, nodeprobe.PartPodFolders:
			message = "what the node has on record was not read in full (" + u.Part + ": " + u.Reason + "): a pod that only its record names may be unseen"
		default:
			continue
		}
		n.mu.Lock()
		told := n.blind[u.Part]
		if n.blind == nil {
			n.blind = map[string]bool{}
		}
		n.blind[u.Part] = true
		n.mu.Unlock()
		if !told {
			n.emit(event.Warned{Stamp: n.stamp(), Node: n.ref.Name, Message: message})
		}
	}
}

// doubly says why devices have the verdict; "" if none has it.
func doubly(r *nodeprobe.NodeReport, verdict nodeprobe.Verdict) string {
	var why []string
	for i := range r.Devices {
		if d := &r.Devices[i]; d.Verdict == verdict {
			why = append(why, strings.Join(d.Reasons, "; "))
		}
	}
	return few(why)
}
