package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/rogpeppe/go-internal/testscript"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

func TestMain(m *testing.M) {
	run := func() {
		os.Exit(Main(os.Args, OSStreams(), Build{Version: "v0.0.0-test", GoVersion: "go0", Platform: "test/test"}))
	}
	testscript.Main(m, map[string]func(){"dramigrate": run, "kubectl-dramigrate": run, "kubectl_complete-dramigrate": run})
}

// TestScripts runs the program as people do. Each script has an API server of its
// own that answers reads with the files of the script's folder "api", by the request's
// path, and otherwise with empty lists. It takes no changes but those of the tool's own
// records, and these only where there is a file "api/records.writable".
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": wantCode, "widest": wantWidest},
		Setup: func(env *testscript.Env) error {
			server := httptest.NewServer(stubAPI(filepath.Join(env.WorkDir, "api")))
			env.Defer(server.Close)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "kubeconfig"))
			env.Setenv("SERVER", server.URL)
			clusters, err := filepath.Abs(filepath.Join("..", "..", "testdata", "clusters"))
			if err != nil {
				return err
			}
			env.Setenv("CLUSTERS", clusters)
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

// wantWidest wants no line of a file to have more columns, and one to come near that:
// widest 60 FILE
func wantWidest(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: widest COLUMNS FILE")
	}
	columns, err := strconv.Atoi(args[0])
	ts.Check(err)
	widest := ""
	for line := range strings.Lines(ts.ReadFile(args[1])) {
		line = strings.TrimRight(line, "\n")
		if strings.Contains(line, `'addOrUpdateLabels={`) {
			continue // a quoted word of a command stays whole, because it is copied
		}
		if lipgloss.Width(line) > lipgloss.Width(widest) {
			widest = line
		}
	}
	if n := lipgloss.Width(widest); n > columns || n < columns-columns/4 {
		ts.Fatalf("%d columns, want at most %d, and not far less: %s", n, columns, widest)
	}
}

func stubAPI(folder string) http.Handler {
	lists := map[string]string{
		"api_v1_nodes": "NodeList v1", "api_v1_pods": "PodList v1", "apis_apps_v1_daemonsets": "DaemonSetList apps/v1",
		"apis_policy_v1_poddisruptionbudgets":                                  "PodDisruptionBudgetList policy/v1",
		"apis_resource.k8s.io_v1_resourceslices":                               "ResourceSliceList resource.k8s.io/v1",
		"apis_resource.k8s.io_v1_resourceclaims":                               "ResourceClaimList resource.k8s.io/v1",
		"apis_resource.k8s.io_v1_deviceclasses":                                "DeviceClassList resource.k8s.io/v1",
		"api_v1_namespaces_dramigrate-system_configmaps":                       "ConfigMapList v1",
		"apis_coordination.k8s.io_v1_namespaces_dramigrate-system_leases":      "LeaseList coordination.k8s.io/v1",
		"api_v1_namespaces_kube-system":                                        "Namespace v1",
		"version":                                                              "",
		"apis_apps_v1_deployments":                                             "DeploymentList apps/v1",
		"apis_apps_v1_statefulsets":                                            "StatefulSetList apps/v1",
		"apis_batch_v1_jobs":                                                   "JobList batch/v1",
		"apis_batch_v1_cronjobs":                                               "CronJobList batch/v1",
		"api_v1_resourcequotas":                                                "ResourceQuotaList v1",
		"api_v1_limitranges":                                                   "LimitRangeList v1",
		"api_v1_namespaces":                                                    "NamespaceList v1",
		"api_v1_configmaps":                                                    "ConfigMapList v1",
		"apis_scheduling.k8s.io_v1_priorityclasses":                            "PriorityClassList scheduling.k8s.io/v1",
		"apis_autoscaling_v2_horizontalpodautoscalers":                         "HorizontalPodAutoscalerList autoscaling/v2",
		"apis_rbac.authorization.k8s.io_v1_clusterroles_system:kube-scheduler": "ClusterRole rbac.authorization.k8s.io/v1",
		"api":                     "APIVersions v1",
		"apis":                    "",
		"apis_resource.k8s.io_v1": "",
	}
	kept := &records{objects: map[string]metav1.Object{}}
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
		name := strings.ReplaceAll(strings.Trim(r.URL.Path, "/"), "/", "_")
		there := func(file string) bool {
			_, err := os.Stat(filepath.Join(folder, file))
			return err == nil
		}
		if object := kept.answer(r, there("records.writable")); object != nil {
			_ = json.NewEncoder(w).Encode(object)
			return
		}
		if r.Method != http.MethodGet {
			refuse(http.StatusMethodNotAllowed, "MethodNotAllowed")
			return
		}
		switch query := r.URL.Query(); {
		case there(name + ".forbidden"):
			refuse(http.StatusForbidden, "Forbidden")
			return
		case query.Has("sendInitialEvents"): // as a server without the feature: a list is asked for then
			refuse(http.StatusUnprocessableEntity, "Invalid")
			return
		case query.Has("watch"): // nothing ever changes
			w.(http.Flusher).Flush()
			<-r.Context().Done()
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
		case name == "apis":
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"APIGroupList","groups":[{"name":"resource.k8s.io","versions":[{"groupVersion":"resource.k8s.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"resource.k8s.io/v1","version":"v1"}}]}`)
		case name == "apis_resource.k8s.io_v1":
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"APIResourceList","groupVersion":"resource.k8s.io/v1","resources":[{"name":"deviceclasses","kind":"DeviceClass","verbs":["list"]}]}`)
		default:
			kind, version, _ := strings.Cut(kind, " ")
			fmt.Fprintf(w, `{"apiVersion":%q,"kind":%q,"metadata":{"name":"kube-system","uid":"cluster-uid"}}`, version, kind)
		}
	})
}

// records are the tool's ConfigMaps and Leases that a script's runs have written.
type records struct {
	mu      sync.Mutex
	objects map[string]metav1.Object // by path
	writes  int
}

// answer is the object that a request writes, or reads after one that has written it;
// nil if the request is for something else.
func (k *records) answer(r *http.Request, writable bool) metav1.Object {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, path, found := strings.Cut(r.URL.Path, "/namespaces/dramigrate-system/")
	if !found || !writable {
		return nil
	}
	switch r.Method {
	case http.MethodGet:
		return k.objects[path]
	case http.MethodPost, http.MethodPut:
		if resource, _, _ := strings.Cut(path, "/"); resource != "configmaps" && resource != "leases" {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil
		}
		decoded, kind, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			return nil
		}
		decoded.GetObjectKind().SetGroupVersionKind(*kind)
		object := decoded.(metav1.Object)
		if r.Method == http.MethodPost {
			path += "/" + object.GetName()
		}
		k.writes++
		object.SetResourceVersion(strconv.Itoa(k.writes))
		k.objects[path] = object
		return object
	}
	return nil
}
