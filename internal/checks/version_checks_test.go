package checks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func servedAPI(versions ...string) func(*state) {
	return func(s *state) { s.API.ResourceVersions = versions }
}

func TestDRM031(t *testing.T) {
	t.Parallel()
	fromFiles := func(s *state) { s.Source = &cluster.Source{} }
	try(t, "DRM031", []given{
		{"v1 with others", Migrate, prepared, servedAPI("v1", "v1beta2"), nil, ""},
		{"betas alone, as in 1.33 with them switched on", Prepare, untouched, servedAPI("v1beta2", "v1beta1"), []string{"blocker server"}, "as v1beta2, v1beta1 and not as v1"},
		{"nothing", Migrate, prepared, servedAPI(), []string{"blocker server"}, "DRA is off"},
		// Slices were read as v1, so it is served.
		{"discovery was not answered", Migrate, prepared, both(servedAPI(), unread(cluster.PartResourceAPI)), nil, ""},
		{"files do not tell", Migrate, prepared, both(servedAPI(), unread(cluster.PartResourceAPI), fromFiles), []string{"unknown server"}, "the files do not tell"},
		{"files tell", Migrate, prepared, both(servedAPI("v1beta1"), fromFiles), []string{"blocker server"}, ""},
		{"the way back", Rollback, migrated, servedAPI(), nil, ""},
	})
}

func gates(on, off []string) func(*state) {
	return func(s *state) {
		s.API.Features = map[string]cluster.Feature{}
		for _, g := range on {
			s.API.Features[g] = cluster.Feature{Enabled: true, Evidence: "kubernetes_feature_enabled of the API server"}
		}
		for _, g := range off {
			s.API.Features[g] = cluster.Feature{Evidence: "kubernetes_feature_enabled of the API server"}
		}
	}
}

func TestDRM032(t *testing.T) {
	t.Parallel()
	er := []string{cluster.FeatureExtendedResource}
	try(t, "DRM032", []given{
		{"on", Migrate, prepared, both(serverVersion("v1.36.3", ""), gates(er, nil)), nil, ""},
		{"off", Migrate, prepared, both(serverVersion("v1.36.3", ""), gates(nil, er)), []string{"blocker server"}, "DRAExtendedResource of the API server is off (kubernetes_feature_enabled"},
		{"off, before prepare", Prepare, untouched, both(serverVersion("v1.36.3", ""), gates(nil, er)), []string{"blocker server"}, ""},
		{"off, on the way back", Rollback, migrated, both(serverVersion("v1.36.3", ""), gates(nil, er)), nil, ""},
		{"not seen, and why", Migrate, prepared, both(serverVersion("v1.36.3", ""), gates(nil, nil), unread(cluster.PartFeatures)), []string{"unknown server"}, "forbidden"},
		{"not seen, of files", Migrate, prepared, both(serverVersion("v1.36.3", ""), gates(nil, nil)), []string{"unknown server"}, "unless somebody switched it off"},
		{"not seen and locked, but an older release is emulated", Migrate, prepared, both(serverVersion("v1.37.2", "1.36"), gates(nil, nil)), []string{"unknown server"}, "in Kubernetes 1.36"},
	})
	// K2.1: alpha and off up to 1.35, which DRM001 refuses; beta and on in 1.36; locked on
	// since 1.37.
	for version, want := range map[string]string{"v1.34.4": "", "v1.35.4": "", "v1.36.3": "unknown", "v1.37.2": "", "v1.38.0-beta.0": ""} {
		s := prepared()
		both(serverVersion(version, ""), gates(nil, nil))(s)
		if got := strings.Join(brief(Run(s.of(Migrate)), "DRM032"), " "); got != strings.TrimSpace(want+" server") && !(want == "" && got == "") {
			t.Errorf("%s, gate not seen: %q, want %q", version, got, want)
		}
	}
}

// A server that was asked has the last word, and the finding names it as the source.
func TestDRM032AfterProbe(t *testing.T) {
	t.Parallel()
	s := prepared()
	serverVersion("v1.36.3", "")(s)
	s.API.Features = map[string]cluster.Feature{cluster.FeatureExtendedResource: {Evidence: "dry-run create of a DeviceClass: the server dropped extendedResourceName"}}
	findings := Only(s.of(Migrate), []string{"DRM032"})
	if len(findings) != 1 || findings[0].Severity != Blocker || !strings.Contains(findings[0].Message, "dry-run create") {
		t.Errorf("findings %+v, want one blocker that names the dry run", findings)
	}
}

func TestDRM033(t *testing.T) {
	t.Parallel()
	try(t, "DRM033", []given{
		{"an upgrade is under way", Migrate, prepared, kubelet("v1.36.3", "n2"), []string{"warning pool/gpu"}, "1.36 on node n2; 1.37 on node n1"},
		{"on the way back too", Rollback, migrated, kubelet("v1.36.3", "n2"), []string{"warning pool/gpu"}, ""},
		{"patch releases", Migrate, prepared, kubelet("v1.37.0", "n2"), nil, ""},
		{"another pool", Migrate, prepared, kubelet("v1.36.3", "m1"), nil, ""},
		{"one that cannot be read is DRM002's", Migrate, prepared, kubelet("?", "n2"), nil, ""},
		{"one that cannot be read, on the way back", Rollback, migrated, kubelet("?", "n2"), []string{"info node/n2"}, "cannot be known"},
	})
	for _, c := range []struct {
		title  string
		change func(*state)
		want   []string
	}{
		{"an upgrade of one pool", kubelet("v1.36.3", "n2"), []string{"warning pool/gpu"}},
		{"a pool older than another", kubelet("v1.36.3", "m1"), nil},
		{"a CPU node is older", kubelet("v1.36.3", "cpu"), nil},
		{"nodes without a pool", func(s *state) {
			kubelet("v1.36.3", "n2")(s)
			for _, n := range []string{"m1", "n1", "n2"} {
				delete(s.node(n).Labels, "karpenter.sh/nodepool")
			}
		}, []string{"warning nodes"}},
	} {
		s := prepared()
		c.change(s)
		in := s.of(Migrate)
		in.Pool = cluster.NodePool{}
		if diff := cmp.Diff(c.want, brief(Run(in), "DRM033")); diff != "" {
			t.Errorf("the whole cluster, %s (-want +got):\n%s", c.title, diff)
		}
	}
	s := migrated()
	kubelet("unknown", "n1", "n2")(s)
	in := s.of(Rollback)
	in.Pool = cluster.NodePool{}
	if diff := cmp.Diff([]string{"info nodes"}, brief(Run(in), "DRM033")); diff != "" {
		t.Errorf("the whole cluster, kubelets without a version (-want +got):\n%s", diff)
	}
}

func TestDRM034(t *testing.T) {
	t.Parallel()
	try(t, "DRM034", []given{
		{"a minor release newer", Migrate, prepared, serverVersion("v1.36.3", ""), []string{"warning pool/gpu"}, "kubelet v1.37.2 is newer than the API server, v1.36.3"},
		{"one node", Migrate, prepared, kubelet("v1.38.0-beta.0", "n1"), []string{"warning node/n1"}, ""},
		{"a patch release newer", Migrate, prepared, kubelet("v1.37.9", "n1"), nil, ""},
		{"older", Migrate, prepared, kubelet("v1.36.3", "n1", "n2"), nil, ""},
	})
}

func TestDRM035(t *testing.T) {
	t.Parallel()
	runtime := func(version string) func(*state) {
		return func(s *state) { s.node("n1").Status.NodeInfo.ContainerRuntimeVersion = version }
	}
	n1 := func(severity string) []string { return []string{severity + " node/n1"} }
	try(t, "DRM035", []given{
		{"containerd 2", Migrate, prepared, runtime("containerd://2.0.0"), nil, ""},
		{"Bottlerocket's", Migrate, prepared, runtime("containerd://2.1.7+bottlerocket"), nil, ""},
		{"containerd 1.7", Migrate, prepared, runtime("containerd://1.7.27"), n1("warning"), "enable_cdi = true"},
		{"containerd 1.6", Migrate, prepared, runtime("containerd://1.6.36"), n1("blocker"), "gives no devices by CDI"},
		{"CRI-O of OpenShift", Migrate, prepared, runtime("cri-o://1.36.2-3.rhaos4.23"), nil, ""},
		{"the first CRI-O that can", Migrate, prepared, runtime("cri-o://1.23.0"), nil, ""},
		{"an older CRI-O", Migrate, prepared, runtime("cri-o://1.22.5"), n1("blocker"), ""},
		{"Docker by a shim", Migrate, prepared, runtime("docker://27.1.0"), n1("warning"), "cannot be known"},
		{"none is named", Migrate, prepared, runtime(""), n1("warning"), "cannot be known"},
		{"a node of another pool", Migrate, prepared, func(s *state) { s.node("m1").Status.NodeInfo.ContainerRuntimeVersion = "containerd://1.6.36" }, nil, ""},
	})
}

func TestDRM036(t *testing.T) {
	t.Parallel()
	declares := func(driverName string) func(*state) {
		return func(s *state) {
			sl := nodeSlice("m1", driverName, "gpu-0")
			sl.Spec.Devices[0].NodeAllocatableResources = map[corev1.ResourceName]resourcev1.NodeAllocatableResource{corev1.ResourceCPU: {}}
			s.Slices = append(s.Slices, sl)
		}
	}
	gate := gates([]string{cluster.FeatureExtendedResource, cluster.FeatureNodeAllocatable}, nil)
	for version, want := range map[string][2]string{
		// the gate alone, a device that declares it
		"v1.36.3":        {"warning", "blocker"},
		"v1.37.0-rc.0":   {"warning", "blocker"},
		"v1.37.2":        {"warning", "blocker"},
		"v1.38.0-beta.0": {"", ""},
	} {
		for i, change := range []func(*state){gate, both(gate, declares(driver))} {
			s := prepared()
			both(serverVersion(version, ""), change)(s)
			got := strings.TrimSuffix(strings.Join(brief(Run(s.of(Migrate)), "DRM036"), " "), " server")
			if got != want[i] {
				t.Errorf("%s, case %d: %q, want %q", version, i, got, want[i])
			}
		}
	}
	try(t, "DRM036", []given{
		{"another driver's devices", Migrate, prepared, declares("cpu.example"), nil, ""},
		{"a device tells of the gate", Migrate, prepared, declares(driver), []string{"blocker server"}, "device gpu-0 of pool m1 declares nodeAllocatableResources"},
		{"the gate is off", Migrate, prepared, gates([]string{cluster.FeatureExtendedResource}, []string{cluster.FeatureNodeAllocatable}), nil, ""},
	})
}

func TestDRM037(t *testing.T) {
	t.Parallel()
	kernel := func(version string) func(*state) {
		return func(s *state) { s.node("n1").Status.NodeInfo.KernelVersion = version }
	}
	try(t, "DRM037", []given{
		{"WSL2", Migrate, prepared, kernel("5.15.167.4-microsoft-standard-WSL2"), []string{"blocker node/n1"}, "that of WSL2"},
		{"AKS", Migrate, prepared, kernel("5.15.0-1064-azure"), nil, ""},
		{"another driver", Migrate, prepared, func(s *state) {
			kernel("5.15.167.4-microsoft-standard-WSL2")(s)
			s.in.Driver = "gpu.example.com"
		}, []string{"warning node/n1"}, ""},
	})
}

// K1.4: which of several classes is in force, and that the scheduler loses the mapping
// over the other up to 1.37.
func TestDRM005ByVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]Severity{"v1.35.4": Blocker, "v1.36.3": Blocker, "v1.37.2": Blocker, "v1.38.0-beta.0": Warning, "v1.38.1": Warning} {
		s := prepared()
		serverVersion(version, "")(s)
		s.Classes = []resourcev1.DeviceClass{class("a"), class("b"), class("c")}
		s.Classes[0].CreationTimestamp, s.Classes[1].CreationTimestamp, s.Classes[2].CreationTimestamp = metav1.Unix(5, 0), metav1.Unix(9, 0), metav1.Unix(9, 0)
		s.Classes[0].Annotations = map[string]string{"meta.helm.sh/release-name": "dra", "meta.helm.sh/release-namespace": "gpu"}
		findings := Only(s.of(Migrate), []string{"DRM005"})
		if got, want := fmt.Sprint(brief(findings, "DRM005")), fmt.Sprintf("[%[1]s deviceclass/a %[1]s deviceclass/c]", want); got != want {
			t.Errorf("%s: %s, want %s", version, got, want)
			continue
		}
		for i, parts := range [][]string{
			{"deviceclass/b does, which is the one in force: it was made later", "made 1970-01-01T00:00:05Z, owned by Helm release gpu/dra by its annotation meta.helm.sh/release-name"},
			{"deviceclass/b does", "both were made in the same second, and its name sorts first"},
		} {
			for _, p := range parts {
				if !strings.Contains(findings[i].Message, p) {
					t.Errorf("%s: message %q, want one with %q", version, findings[i].Message, p)
				}
			}
		}
	}
}

// Nobody is shown what a driver may do: the note says how to ask.
func TestDRM097(t *testing.T) {
	t.Parallel()
	account := func(name string) func(*state) {
		return func(s *state) { s.daemonSet("driver").Spec.Template.Spec.ServiceAccountName = name }
	}
	drv := []string{"info daemonset/kube-system/driver"}
	try(t, "DRM097", []given{
		{"a driver", Migrate, prepared, account("gpu-driver"), drv, "runs as serviceaccount gpu-driver: whether that may write status.devices of claims cannot be known from here"},
		{"without an account of its own", Migrate, prepared, nil, drv, "runs as serviceaccount default"},
		{"no driver", Migrate, untouched, nil, nil, ""},
		{"of another driver", Migrate, prepared, func(s *state) { s.in.Driver = "gpu.example.com" }, nil, ""},
		{"1.35 asks for no such right", Migrate, prepared, serverVersion("v1.35.4", ""), nil, ""},
		{"1.36 does", Migrate, prepared, serverVersion("v1.36.0", ""), drv, ""},
		{"nor does one that acts as 1.35", Migrate, prepared, serverVersion("v1.37.2", "1.35"), nil, ""},
		{"a version that cannot be read is DRM001's", Migrate, prepared, serverVersion("?", ""), nil, ""},
		{"every node has moved", Migrate, migrated, nil, nil, ""},
		{"the way back needs no claim", Rollback, migrated, nil, nil, ""},
	})
	s := prepared()
	account("gpu-driver")(s)
	// Two verbs with two prefixes will do: the list shows whichever there is, with the resource
	// as `kubectl auth can-i --list` writes it (k8s.io/kubectl/pkg/describe, CombineResourceGroup).
	want := "look for resourceclaims.resource.k8s.io/driver and gpu.nvidia.com in `kubectl auth can-i --list --as system:serviceaccount:kube-system:gpu-driver`"
	if got := remedies(Run(s.of(Migrate)), "DRM097"); !strings.Contains(got, want) {
		t.Errorf("remedy %q, want one with %s", got, want)
	}
}
