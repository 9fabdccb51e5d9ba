//go:build !no_podresources_list

package nodeprobe

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// socketEnv tells a child of the test which socket to probe.
const socketEnv = "NODEPROBE_TEST_SOCKET"

// nobody is the user that owns nothing (the kernel's overflow uid).
const nobody = 65534

// The real folder is root's with mode 0750. Root itself is never refused, so under
// root a child of this test asks as nobody.
func TestRunWithoutPermission(t *testing.T) {
	if socket := os.Getenv(socketEnv); socket != "" {
		exit, err := Run(context.Background(), Options{Node: "gpu-7", Socket: socket}, os.Stdout)
		if err != nil {
			t.Fatal(err)
		}
		os.Exit(exit)
	}
	socket := (&fakeKubelet{}).serve(t)
	if err := os.Chmod(filepath.Dir(socket), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // so that the folder can be removed
		if err := os.Chmod(filepath.Dir(socket), 0o700); err != nil {
			t.Error(err)
		}
	})
	// By this name because nobody may not enter the folder of a test binary.
	child := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), socketEnv+"="+socket)
	child.Dir = "/"
	if os.Geteuid() == 0 {
		child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	out, err := child.CombinedOutput()
	if code := child.ProcessState.ExitCode(); code != ExitUnknown {
		t.Errorf("exit code %d (%v), want 7: %s", code, err, out)
	}
	if want := "permission denied: the socket is root's"; strings.Count(string(out), want) != 2 {
		t.Errorf("%s\nmust say %q for both parts", out, want)
	}
}

// rootEnv tells a child of the test which kubelet's folder to read.
const rootEnv = "NODEPROBE_TEST_ROOT"

// What nobody may read is unknown in each part, and never an empty list.
func TestReadFilesWithoutPermission(t *testing.T) {
	if root := os.Getenv(rootEnv); root != "" {
		f, unknown := readFiles(Options{Parts: []Part{AskCheckpoints, AskCDI}, KubeletRoot: root, CDIDirs: []string{root + "/cdi"}})
		text, err := json.Marshal(NodeReport{Files: f, Unknown: unknown})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(string(text))
		os.Exit(ExitUnknown)
	}
	root := nodeFolder(t)
	if err := os.Chmod(root, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // so that the folder can be removed
		if err := os.Chmod(root, 0o700); err != nil {
			t.Error(err)
		}
	})
	child := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), rootEnv+"="+root)
	child.Dir = "/"
	if os.Geteuid() == 0 {
		child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	out, err := child.Output()
	if code := child.ProcessState.ExitCode(); code != ExitUnknown {
		t.Fatalf("exit code %d (%v): %s", code, err, out)
	}
	var r NodeReport
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f := r.Files
	if f.DeviceManager != nil || f.Claims != nil || f.DriverCheckpoints != nil || f.PodFolders != nil || f.Sockets != nil || f.CDI != nil {
		t.Errorf("something was read: %+v", f)
	}
	if len(r.Unknown) != 6 || strings.Count(string(out), "no permission: ") != 6 {
		t.Errorf("unknown %v, want six parts without permission", r.Unknown)
	}
}
