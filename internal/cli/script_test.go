package cli

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"sigs.k8s.io/yaml"
)

func TestMain(m *testing.M) {
	run := func() {
		os.Exit(Main(os.Args, OSStreams(), Build{Version: "v0.0.0-test", GoVersion: "go0", Platform: "test/test"}))
	}
	testscript.Main(m, map[string]func(){"dramigrate": run, "kubectl-dramigrate": run, "kubectl_complete-dramigrate": run})
}

// TestScripts runs the program as people do. Each script has an API server of its
// own that only answers reads: with the files of the script's folder "api", by the
// request's path, and otherwise with empty lists.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": wantCode},
		Setup: func(env *testscript.Env) error {
			server := httptest.NewServer(stubAPI(filepath.Join(env.WorkDir, "api")))
			env.Defer(server.Close)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "kubeconfig"))
			env.Setenv("SERVER", server.URL)
			return os.WriteFile(filepath.Join(env.WorkDir, "kubeconfig"), []byte(fmt.Sprintf(`{
				"apiVersion": "v1", "kind": "Config", "current-context": "stub",
				"clusters": [{"name": "stub", "cluster": {"server": %q}}],
				"users": [{"name": "stub", "user": {}}],
				"contexts": [{"name": "stub", "context": {"cluster": "stub", "user": "stub"}}]}`, server.URL)), 0o600)
		},
	})
}

// wantCode runs a program and wants the exit code: code 64 dramigrate …
func wantCode(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: code N PROGRAM ARGS…")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if fmt.Sprint(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

func stubAPI(folder string) http.Handler {
	lists := map[string]string{
		"api_v1_nodes": "NodeList v1", "api_v1_pods": "PodList v1", "apis_apps_v1_daemonsets": "DaemonSetList apps/v1",
		"apis_policy_v1_poddisruptionbudgets":                             "PodDisruptionBudgetList policy/v1",
		"apis_resource.k8s.io_v1_resourceslices":                          "ResourceSliceList resource.k8s.io/v1",
		"apis_resource.k8s.io_v1_resourceclaims":                          "ResourceClaimList resource.k8s.io/v1",
		"apis_resource.k8s.io_v1_deviceclasses":                           "DeviceClassList resource.k8s.io/v1",
		"api_v1_namespaces_dramigrate-system_configmaps":                  "ConfigMapList v1",
		"apis_coordination.k8s.io_v1_namespaces_dramigrate-system_leases": "LeaseList coordination.k8s.io/v1",
		"api_v1_namespaces_kube-system":                                   "Namespace v1",
		"version":                                                         "",
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		refuse := func(code int, reason string) {
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":%q,"code":%d,"message":"stub: %s %s"}`, reason, code, reason, r.URL.Path)
		}
		// The caller may do everything; the client sends protobuf.
		if strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
			fmt.Fprint(w, `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","status":{"allowed":true}}`)
			return
		}
		if r.Method != http.MethodGet {
			refuse(http.StatusMethodNotAllowed, "MethodNotAllowed")
			return
		}
		name := strings.ReplaceAll(strings.Trim(r.URL.Path, "/"), "/", "_")
		if _, err := os.Stat(filepath.Join(folder, name+".forbidden")); err == nil {
			refuse(http.StatusForbidden, "Forbidden")
			return
		}
		data, err := os.ReadFile(filepath.Join(folder, name+".yaml"))
		if err == nil {
			if data, err = yaml.YAMLToJSON(data); err != nil {
				refuse(http.StatusInternalServerError, err.Error())
				return
			}
			_, _ = w.Write(data)
			return
		}
		kind, known := lists[name]
		switch {
		case !known:
			refuse(http.StatusNotFound, "NotFound")
		case name == "version":
			fmt.Fprint(w, `{"major":"1","minor":"37","gitVersion":"v1.37.2"}`)
		default:
			kind, version, _ := strings.Cut(kind, " ")
			fmt.Fprintf(w, `{"apiVersion":%q,"kind":%q,"metadata":{"name":"kube-system","uid":"cluster-uid"}}`, version, kind)
		}
	})
}
