package checks

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// supported are the releases whose rules are known, the oldest first: the columns of
// TestSeverityByVersion.
var supported = [...]string{"v1.34.4", "v1.35.4", "v1.36.3", "v1.37.2", "v1.38.0-beta.0"}

// TestSeverityByVersion puts one state after another on each release, and wants of it
// what that release's own rules make of it.
func TestSeverityByVersion(t *testing.T) {
	t.Parallel()
	if last := supported[len(supported)-1]; !strings.HasPrefix(last, "v"+newest+".") {
		t.Errorf("the newest release that the checks know is %s, the last column %s", newest, last)
	}
	const b, w, none = Blocker, Warning, Severity("")
	for _, row := range []struct {
		code, state string
		change      func(*state)
		want        [len(supported)]Severity
	}{
		// The gate DRAExtendedResource is alpha and off up to 1.35.
		{"DRM001", "the control plane", nil, [...]Severity{b, b, none, none, none}},
		// With the gate off a kubelet admits the pod without a device, or not at all.
		{"DRM002", "the kubelets", func(s *state) {
			for n := range s.Nodes {
				s.Nodes[n].Status.NodeInfo.KubeletVersion = s.Identity.ServerVersion
			}
		}, [...]Severity{b, b, none, none, none}},
		// Locked since 1.37; in 1.36 somebody may have switched it off.
		{"DRM032", "the gate is not seen", gates(nil, nil), [...]Severity{none, none, Unknown, none, none}},
		// kubernetes/kubernetes#141110: one of two classes goes, and the mapping is lost.
		{"DRM005", "two classes with the name", func(s *state) {
			s.Classes = []resourcev1.DeviceClass{class("a"), class("b")}
			s.Classes[1].CreationTimestamp = metav1.Unix(9, 0)
		}, [...]Severity{b, b, b, b, w}},
		// No upstream report, and the code is there in all releases with the mapping.
		{"DRM006", "a claim beside the resource", func(s *state) {
			s.Classes = nil
			s.pod("train").Claims = []string{"own"}
		}, [...]Severity{b, b, b, b, b}},
		// Both gates at once: fixed in 1.38.
		{"DRM036", "devices that take of their node", gates([]string{cluster.FeatureExtendedResource, cluster.FeatureNodeAllocatable}, nil),
			[...]Severity{w, w, w, w, none}},
		// kubernetes/kubernetes#134947: a right of its own for status.devices of claims.
		{"DRM097", "a driver", nil, [...]Severity{none, none, Info, Info, Info}},
		// kubernetes/kubernetes#134880: devices of init containers are used again since 1.35.
		{"DRM104", "devices in init containers", func(s *state) {
			s.pod("train").Requests = []cluster.Request{
				{Container: "ic", Resource: gpu, Count: 2, Init: true}, {Container: "c", Resource: gpu, Count: 1},
			}
		}, [...]Severity{w, none, none, none, none}},
		// DRA never preempts for devices.
		{"DRM106", "a high priority", func(s *state) {
			s.addPod("low", "m1", 1).Priority = ptr.To[int32](0)
			s.pod("train").Priority = ptr.To[int32](1000)
		}, [...]Severity{w, w, w, w, w}},
		// Claims are counted by the implicit name, and as requests.RESOURCE, since 1.35.
		{"DRM130", "a full quota of the implicit name", full("requests.deviceclass.resource.kubernetes.io/made", 2),
			[...]Severity{none, b, b, b, b}},
		{"DRM130", "a full quota of claims", full(quotaClaims, 6), [...]Severity{b, b, b, b, b}},
	} {
		t.Run(row.code+"/"+row.state, func(t *testing.T) {
			t.Parallel()
			for v, version := range supported {
				s := prepared()
				s.Identity.ServerVersion = version
				if row.change != nil {
					row.change(s)
				}
				found := brief(Only(s.of(Migrate), []string{row.code}), row.code)
				got := none
				if len(found) > 0 {
					word, _, _ := strings.Cut(found[0], " ")
					got = Severity(word)
				}
				if got != row.want[v] {
					t.Errorf("%s: %q, want %q (%s)", version, got, row.want[v], found)
				}
			}
		})
	}
}

// full is a quota that is used up, in the namespace of the pool's pods, of which more
// come: train with 1 GPU and serve with 2.
func full(key corev1.ResourceName, hard int64) func(*state) {
	return func(s *state) {
		s.in.NewClass = "made"
		s.addPod("serve", "n2", 2)
		s.quota(key, hard, hard)
	}
}
