//go:build unix

package nodeprobe

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dramigrate/dramigrate/internal/nodeprobe/checkpoint"
)

// noClaims is the state of a kubelet v1.37.2 without claims, as it wrote it.
const noClaims = `{"Data":"{\"kind\":\"DRACheckpoint\",\"apiVersion\":\"checkpoint.dra.kubelet.k8s.io/v1\",\"ClaimInfoStateList\":[]}","Checksum":2361995144}`

// oneClaim is the data of a kubelet with a claim of two pods, in the form of
// pkg/kubelet/cm/dra/state (v1.37.2).
const oneClaim = `{"kind":"DRACheckpoint","apiVersion":"checkpoint.dra.kubelet.k8s.io/v1","ClaimInfoStateList":[` +
	`{"ClaimUID":"c1","ClaimName":"c","Namespace":"train","PodUIDs":{"u2":{},"u1":{}},` +
	`"DriverState":{"gpu.nvidia.com":{"Devices":[{"PoolName":"n1","DeviceName":"gpu-0","ShareID":null,"RequestNames":["r"],"CDIDeviceIDs":["k8s.gpu.nvidia.com/claim=c1-gpu-0"]}]}}}]}`

func claimFile(data string) string {
	text, _ := json.Marshal(data)
	return fmt.Sprintf(`{"Data":%s,"Checksum":%d}`, text, crc32.ChecksumIEEE([]byte(data)))
}

func TestParseClaimState(t *testing.T) {
	t.Parallel()
	if got, err := parseClaimState([]byte(noClaims)); err != nil || got == nil || len(got) != 0 {
		t.Errorf("without claims: %v, %v; want an empty list", got, err)
	}
	got, err := parseClaimState([]byte(claimFile(oneClaim)))
	want := []ClaimRecord{{Claim: "train/c", UID: "c1", PodUIDs: []string{"u1", "u2"}, Devices: []Device{{nvidiaDriver, "n1", "gpu-0"}}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for name, file := range map[string]struct{ text, reason string }{
		"another sum":     {strings.Replace(noClaims, "2361995144", "2361995145", 1), "checksum is 2361995145, and that of its data 2361995144"},
		"cut short":       {noClaims[:40], "unexpected end of JSON"},
		"another version": {claimFile(strings.Replace(oneClaim, "k8s.io/v1", "k8s.io/v2", 1)), "k8s.io/v2"},
		"empty":           {"", "unexpected end of JSON"},
	} {
		if _, err := parseClaimState([]byte(file.text)); err == nil || !strings.Contains(err.Error(), file.reason) {
			t.Errorf("%s: %v, want %q", name, err, file.reason)
		}
	}
}

// driverFile is a checkpoint in the form of NVIDIA's driver (dra-driver-nvidia-gpu,
// cmd/gpu-kubelet-plugin/checkpoint.go of 2026-08): the first version's checksum is over
// itself with a 0 in the checksum's place, the second one's over its own object likewise.
func driverFile(v1, v2 string) string {
	sum := func(text string) uint64 { return checkpoint.Checksum([]byte(text)) }
	v2 = strings.Replace(v2, `"checksum":0`, fmt.Sprintf(`"checksum":%d`, sum(v2)), 1)
	return fmt.Sprintf(`{"version":"v2","checksum":%d,"v1":%s,"v2":%s}`, sum(`{"checksum":0,"v1":`+v1+`}`), v1, v2)
}

const (
	driverV1 = `{"preparedClaims":{"c1":{"status":{},"preparedDevices":[]}}}`
	driverV2 = `{"checksum":0,"preparedClaims":{"c1":{"checkpointState":"PrepareCompleted",` +
		`"status":{"allocation":{"devices":{"results":[` +
		`{"request":"a","driver":"gpu.nvidia.com","pool":"n1","device":"gpu-0"},{"request":"b","driver":"gpu.nvidia.com","pool":"n1","device":"gpu-1","adminAccess":true}]}}},` +
		`"preparedDevices":[{"devices":[` +
		`{"gpu":{"info":{"uuid":"GPU-a"},"device":{"Requests":["a"],"PoolName":"n1","DeviceName":"gpu-0","CDIDeviceIDs":["x"]}},"mig":null},` +
		`{"gpu":{"info":{"uuid":"GPU-b"},"device":{"Requests":["b"],"PoolName":"n1","DeviceName":"gpu-1","CDIDeviceIDs":["x"]}},"mig":null},` +
		`{"gpu":null,"mig":{"concrete":{"parentMinor":2,"giId":7,"ciId":0,"migUUID":"MIG-c","parentUUID":"GPU-c","parentPCIBusID":"00000000:1B:00.0"},"device":{"Requests":["c"],"PoolName":"n1","DeviceName":"gpu-2-mig-1g10gb-19-0","CDIDeviceIDs":[]}}},` +
		`{"gpu":null,"mig":null,"vfio":{"info":{"uuid":"GPU-d","pciBusID":"0000:1c:00.0"},"device":{"Requests":["d"],"PoolName":"n1","DeviceName":"gpu-vfio-0","CDIDeviceIDs":[]}}}` +
		`],"configState":{}}],"name":"c","namespace":"train"},"c2":{"checkpointState":"PrepareStarted","status":{}}},"nodeBootID":"b"}`
)

func TestParseDriverCheckpoint(t *testing.T) {
	t.Parallel()
	got, known, err := parseDriverCheckpoint([]byte(driverFile(driverV1, driverV2)))
	want := []PreparedClaim{
		{UID: "c1", Claim: "train/c", State: "PrepareCompleted", Devices: []PreparedDevice{
			{Pool: "n1", Name: "gpu-0", UUID: "GPU-a", Type: "gpu"},
			{Pool: "n1", Name: "gpu-1", UUID: "GPU-b", Type: "gpu", Admin: true},
			{Pool: "n1", Name: "gpu-2-mig-1g10gb-19-0", UUID: "MIG-c", ParentUUID: "GPU-c", PCIBusID: "0000:1b:00.0", Type: "mig"},
			{Pool: "n1", Name: "gpu-vfio-0", UUID: "GPU-d", PCIBusID: "0000:1c:00.0", Type: "vfio"},
		}},
		{UID: "c2", State: "PrepareStarted", Devices: []PreparedDevice{}},
	}
	if diff := cmp.Diff(want, got); err != nil || !known || diff != "" {
		t.Errorf("%v, %v (-want +got):\n%s", known, err, diff)
	}
	if got, known, err = parseDriverCheckpoint([]byte(`{"claims":{}}`)); got != nil || known || err != nil {
		t.Errorf("another driver's: %v, %v, %v; want not known, and no error", got, known, err)
	}
	whole := driverFile(driverV1, driverV2)
	for name, file := range map[string]struct{ text, reason string }{
		"cut short":         {whole[:300], "unexpected end of JSON"},
		"another claim":     {strings.ReplaceAll(whole, `"c1"`, `"c9"`), "checksum is"},
		"another device":    {strings.Replace(whole, "GPU-a", "GPU-z", 1), "checksum is"},
		"first version off": {strings.Replace(whole, `"status":{},"preparedDevices":[]`, `"status":{}`, 1), "checksum is"},
	} {
		if _, known, err := parseDriverCheckpoint([]byte(file.text)); err == nil || !strings.Contains(err.Error(), file.reason) {
			t.Errorf("%s: %v, %v; want %q", name, known, err, file.reason)
		}
	}
}

// nodeFolder is the root folder of a kubelet that has started, without a plugin.
func nodeFolder(t testing.TB) string {
	t.Helper()
	root := socketDir(t)
	for _, dir := range []string{devicePluginsDir, podsDir, registryDir, pluginsDir} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(root, claimStateFile), noClaims)
	return root
}

func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func listen(t testing.TB, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestReadSockets(t *testing.T) {
	t.Parallel()
	root := nodeFolder(t)
	s, err := readSockets(root)
	if err != nil || !s.noDRADriver() {
		t.Errorf("an empty node: %+v, %v; want no DRA driver", s, err)
	}
	listen(t, filepath.Join(root, devicePluginsDir, "kubelet.sock"))
	listen(t, filepath.Join(root, devicePluginsDir, "nvidia-gpu.sock"))
	listen(t, filepath.Join(root, registryDir, "csi.x.io-reg.sock"))
	listen(t, filepath.Join(root, pluginsDir, "csi.x.io", "csi.sock"))
	if s, err = readSockets(root); err != nil || !s.noDRADriver() {
		t.Errorf("with storage: %+v, %v; want no DRA driver", s, err)
	}
	listen(t, filepath.Join(root, registryDir, "gpu.nvidia.com-reg.sock"))
	if s, err = readSockets(root); err != nil || s.noDRADriver() {
		t.Errorf("with a registration of an unknown kind: %+v, %v; want a DRA driver for possible", s, err)
	}
	listen(t, filepath.Join(root, pluginsDir, "gpu.nvidia.com", "dra-0c1d.sock"))
	s, err = readSockets(root)
	want := &Sockets{
		DevicePlugins: []string{"nvidia-gpu.sock"}, Registrations: []string{"csi.x.io-reg.sock", "gpu.nvidia.com-reg.sock"},
		Drivers: []string{"gpu.nvidia.com"}, Others: []string{"csi.x.io"},
	}
	if diff := cmp.Diff(want, s); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestReadFiles(t *testing.T) {
	t.Parallel()
	all := Options{Parts: []Part{AskCheckpoints, AskCDI}}
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, root string)
		part   string // that is unknown; empty if none is
		reason string
	}{
		{"a node without a plugin", func(*testing.T, string) {}, "", ""},
		{"not a kubelet's folder", func(t *testing.T, root string) { remove(t, filepath.Join(root, devicePluginsDir)) }, PartDeviceManager, "not found: "},
		{"no claim state", func(t *testing.T, root string) { remove(t, filepath.Join(root, claimStateFile)) }, PartClaims, "not found: "},
		{"no folder of pods", func(t *testing.T, root string) { remove(t, filepath.Join(root, podsDir)) }, PartPodFolders, "not found: "},
		{"no registry", func(t *testing.T, root string) { remove(t, filepath.Join(root, registryDir)) }, PartSockets, "not found: "},
		{"a claim state cut short", func(t *testing.T, root string) { put(t, filepath.Join(root, claimStateFile), noClaims[:50]) }, PartClaims, "damaged, or of an unknown version"},
		{"a device manager of another sum", func(t *testing.T, root string) {
			put(t, filepath.Join(root, devicePluginsDir, deviceManagerFile), `{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":1}`)
		}, PartDeviceManager, "its checksum is 1"},
		{"a driver's checkpoint cut short", func(t *testing.T, root string) {
			put(t, filepath.Join(root, pluginsDir, nvidiaDriver, driverCheckpointFile), driverFile(driverV1, driverV2)[:99])
		}, PartDriverCheckpoints, "damaged"},
		{"a file that has gone wild", func(t *testing.T, root string) {
			path := filepath.Join(root, claimStateFile)
			if err := os.Truncate(path, maxFile+1); err != nil {
				t.Fatal(err)
			}
		}, PartClaims, "more than the 33554432 that are read"},
		{"a pipe in the place of a file", func(t *testing.T, root string) {
			path := filepath.Join(root, claimStateFile)
			remove(t, path)
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
		}, PartClaims, "not a regular file"},
		{"a CDI file without a kind", func(t *testing.T, root string) { put(t, filepath.Join(root, "cdi", "x.yaml"), "devices: []\n") }, PartCDI, "it names no kind"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := all
			o.KubeletRoot = nodeFolder(t)
			o.CDIDirs = []string{filepath.Join(o.KubeletRoot, "cdi")}
			tt.change(t, o.KubeletRoot)
			f, unknown := readFiles(o)
			if tt.part == "" {
				if len(unknown) > 0 || f.DeviceManager == nil || f.Claims == nil || f.DriverCheckpoints == nil || f.PodFolders == nil || f.Sockets == nil || f.CDI == nil {
					t.Errorf("%+v, unknown %v; want all read", f, unknown)
				}
				return
			}
			found := false
			for _, u := range unknown {
				found = found || u.Part == tt.part && strings.Contains(u.Reason, tt.reason)
			}
			if !found {
				t.Errorf("unknown %v, want %s with %q", unknown, tt.part, tt.reason)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func TestReadAPIView(t *testing.T) {
	t.Parallel()
	const mixed = "apiVersion: v1\nkind: List\nitems:\n" +
		"- {apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s}, spec: {driver: d}}\n" +
		"- {apiVersion: v1, kind: Pod, metadata: {name: p}}\n"
	view, err := ReadAPIView(strings.NewReader(mixed))
	if err != nil || len(view.Slices) != 1 || view.Slices[0].Spec.Driver != "d" || len(view.Pods) != 1 || view.Claims != nil {
		t.Errorf("%+v, %v; want one slice, one pod, and nothing known of claims", view, err)
	}
	view, err = ReadAPIView(strings.NewReader(mixed + "---\n" + `{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimList","items":[]}` + "\n"))
	if err != nil || len(view.Slices) != 1 || view.Claims == nil || len(view.Claims) != 0 {
		t.Errorf("%+v, %v; want one slice and an empty list of claims", view, err)
	}
	for text, reason := range map[string]string{
		"kind: Pod":                    "it is a Pod of ;",
		"a: b":                         "it has no kind",
		"x: [":                         "document 1",
		"apiVersion: v1\nkind: Node\n": "it is a Node of v1",
		"apiVersion: resource.k8s.io/v1beta1\nkind: ResourceSlice\n": "v1beta1",
	} {
		if _, err := ReadAPIView(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q: %v, want %q", text, err, reason)
		}
	}
}
