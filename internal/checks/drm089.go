package checks

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm089() Check {
	return Check{
		Code:       "DRM089",
		Title:      "kured may reboot a node during the move",
		Why:        "kured drains and reboots a node that has a reboot pending, one at a time, when it gets its lock. A node that is rebooted half-way loses the kubelet's memory of the plugin's devices and comes back with whatever its labels say; kured uncordons it if it had cordoned it.",
		Fix:        "Hold kured's lock by hand for the window, and let it go afterwards.",
		Sources:    []string{"kubereboot/kured, cmd/kured/main.go; docs, \"Operation\""},
		Operations: []string{Migrate, Rollback, MigrateFrom, MigrateInto, RollbackFrom, RollbackInto},
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
		Run: func(in Input) []Finding {
			daemons := in.daemonSets(func(ds *appsv1.DaemonSet) bool {
				return hasImage(imagesOf(ds), "kubereboot/kured") || hasImage(imagesOf(ds), "weaveworks/kured") || templateLabel(ds, "app.kubernetes.io/name") == "kured"
			})
			if len(daemons) == 0 {
				return nil
			}
			rebooting, pending := nodeGroups{}, nodeGroups{}
			target := map[string]bool{}
			for _, v := range in.targets() {
				target[v.Node.Name] = true
				if at := v.Node.Annotations[kuredRebooting]; at != "" {
					rebooting.add("annotation "+kuredRebooting+"="+at+": kured is rebooting it", v.Node.Name)
				} else if at := v.Node.Annotations[kuredNeeded]; at != "" {
					pending.add("annotation "+kuredNeeded+"="+at+": kured means to reboot it when it may", v.Node.Name)
				}
			}
			var out []Finding
			for _, ds := range daemons {
				hold := fmt.Sprintf("`kubectl -n %s annotate daemonset %s %s='"+`{"nodeID":"manual"}`+"'`; afterwards the same with %s-", ds.Namespace, ds.Name, kuredLock, kuredLock)
				out = append(out, rebooting.findings(in, Finding{Code: "DRM089", Severity: in.stops(), Remedy: "wait until it is back, and hold kured for the window: " + hold})...)
				holders := kuredHolders(ds)
				for _, node := range holders {
					if target[node] && len(rebooting) == 0 {
						out = append(out, Finding{
							Code: "DRM089", Severity: in.stops(), Object: "node/" + node,
							Message: fmt.Sprintf("kured's lock is held for it (%s, annotation %s): it is drained and rebooted", daemonSetObject(ds), kuredLock),
							Remedy:  "wait until the lock is free: `kubectl -n " + ds.Namespace + " get daemonset " + ds.Name + " -o yaml`",
						})
					}
				}
				switch {
				case len(holders) > 0 || len(target) == 0 || len(rebooting) > 0: // held elsewhere, or by hand
				case len(pending) > 0:
					out = append(out, pending.findings(in, Finding{Code: "DRM089", Severity: Warning, Remedy: "hold kured for the window: " + hold})...)
				default:
					out = append(out, Finding{
						Code: "DRM089", Severity: Info, Object: daemonSetObject(ds),
						Message: "reboots nodes that need it, at any time that it is set to; which ones do is seen only where it runs with --annotate-nodes",
						Remedy:  "hold it for the window: " + hold,
					})
				}
			}
			return out
		},
	}
}

// Annotations of kured: the lock on its DaemonSet, the others on nodes with
// --annotate-nodes.
const (
	kuredLock      = "weave.works/kured-node-lock"
	kuredRebooting = "weave.works/kured-reboot-in-progress"
	kuredNeeded    = "weave.works/kured-most-recent-reboot-needed"
)

// kuredHolders are the nodes that the lock is held for, or what a person wrote there; none
// if it is free. With --concurrency above one it is a list of locks
// (kubereboot/kured, pkg/daemonsetlock/daemonsetlock.go).
func kuredHolders(ds *appsv1.DaemonSet) []string {
	raw := ds.Annotations[kuredLock]
	if raw == "" {
		return nil
	}
	var lock struct {
		NodeID string `json:"nodeID"`
		Locks  []struct {
			NodeID string `json:"nodeID"`
		} `json:"locks"`
	}
	if json.Unmarshal([]byte(raw), &lock) != nil {
		return []string{raw}
	}
	var out []string
	if lock.NodeID != "" {
		out = append(out, lock.NodeID)
	}
	for _, l := range lock.Locks {
		out = append(out, l.NodeID)
	}
	return out
}
