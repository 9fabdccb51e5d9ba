package offline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

const (
	nodeYAML = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"
	nodeJSON = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}`
)

// fromText reads a stream.
func fromText(t *testing.T, text string) (*cluster.Snapshot, map[string]int, error) {
	t.Helper()
	return Read(t.Context(), []string{Stdin}, Options{Namespace: toolNamespace, Stdin: strings.NewReader(text)})
}

// What kubectl and others write, in every form, is the same two nodes.
func TestReadForms(t *testing.T) {
	t.Parallel()
	second := strings.ReplaceAll(nodeYAML, "n1", "n2")
	secondJSON := strings.ReplaceAll(nodeJSON, "n1", "n2")
	list := `{"apiVersion":"v1","items":[` + nodeJSON + "," + secondJSON + `],"kind":"List","metadata":{"resourceVersion":""}}`
	for name, text := range map[string]string{
		"a List in YAML, as kubectl prints it": "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: n1\n" +
			"- apiVersion: v1\n  kind: Node\n  metadata:\n    name: n2\nkind: List\nmetadata:\n  resourceVersion: \"\"\n",
		"a List in JSON, its kind behind the items": list,
		"a NodeList, as the server sends it":        `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"n1"}},{"metadata":{"name":"n2"}}]}`,
		"a NodeList in YAML":                        "kind: NodeList\napiVersion: v1\nitems: [{metadata: {name: n1}}, {metadata: {name: n2}}]\n",
		"several lists in YAML":                     "---\nkind: NodeList\napiVersion: v1\nitems: [{metadata: {name: n1}}]\n--- # and\nkind: NodeList\napiVersion: v1\nitems: [{metadata: {name: n2}}]\n...\n",
		"several values in JSON":                    `{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"n2"}}]}` + "\n" + `{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"n1"}}]}`,
		"comments, a directive, and content behind the marker": "# made by hand\n%YAML 1.1\n--- {kind: NodeList, apiVersion: v1, items: [{metadata: {name: n1}}]}\n---\n# nothing\n--- \n" +
			"kind: NodeList\napiVersion: v1\nitems: [{metadata: {name: n2}}]\n",
		"lines of Windows with a byte order mark": "\xef\xbb\xbfkind: NodeList\r\napiVersion: v1\r\nitems: [{metadata: {name: n1}}, {metadata: {name: n2}}]\r\n",
		"a list and the same objects again":       list + nodeJSON + secondJSON,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, err := fromText(t, text)
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Nodes) != 2 || s.Nodes[0].Name != "n1" || s.Nodes[1].Name != "n2" {
				t.Errorf("nodes %v, want n1 and n2", s.Nodes)
			}
			if reason, unknown := s.IsUnknown(cluster.PartNodes); unknown {
				t.Errorf("the nodes are unknown: %s", reason)
			}
			if s.Source == nil || s.Source.Note == "" || s.Source.Files["Node"] < 2 {
				t.Errorf("source %+v, want a note, and the nodes counted", s.Source)
			}
		})
	}
	s, _, err := fromText(t, nodeYAML+"---\n"+second)
	if err != nil || len(s.Nodes) != 2 {
		t.Fatalf("%v, %v", s, err)
	}
	if reason, _ := s.IsUnknown(cluster.PartNodes); !strings.Contains(reason, "not a list of all") {
		t.Errorf("nodes that stand alone: unknown %q, want them unknown as a whole", reason)
	}
}

// Each part is unknown unless it is shown to be there whole.
func TestReadUnknown(t *testing.T) {
	t.Parallel()
	const nodes = "kind: NodeList\napiVersion: v1\nitems: [{metadata: {name: n1}}]\n---\n"
	for _, tt := range []struct {
		name, text, part, want string // want is a part of the reason, or "" if the part counts as read
	}{
		{"nothing of it", "", cluster.PartBudgets, "the files hold no PodDisruptionBudget list"},
		{"an empty list that says of what", "kind: PodDisruptionBudgetList\napiVersion: policy/v1\nitems: []", cluster.PartBudgets, ""},
		{"an empty list of Go", "kind: PodDisruptionBudgetList\napiVersion: policy/v1\nitems: null", cluster.PartBudgets, ""},
		{"an empty list of kubectl, from a stream", "kind: List\napiVersion: v1\nitems: []", cluster.PartBudgets, "no PodDisruptionBudget list"},
		{"a list of kubectl", "kind: List\napiVersion: v1\nitems: [{kind: PodDisruptionBudget, apiVersion: policy/v1, metadata: {name: b, namespace: a}}]", cluster.PartBudgets, ""},
		{"one object", "kind: PodDisruptionBudget\napiVersion: policy/v1\nmetadata: {name: b, namespace: a}", cluster.PartBudgets, "single objects"},
		{"one page of a list", "kind: PodList\napiVersion: v1\nmetadata: {continue: more}\nitems: []", cluster.PartPods, "metadata.continue"},
		{"another version of the API", "kind: ResourceSliceList\napiVersion: resource.k8s.io/v1beta1\nitems: [{metadata: {name: s}}]", cluster.PartSlices,
			"ResourceSlice of resource.k8s.io/v1beta1, and this version reads resource.k8s.io/v1: kubectl get resourceslices.v1.resource.k8s.io"},
		{"an empty list of another version", "kind: ResourceSliceList\napiVersion: resource.k8s.io/v1beta2\nitems: []", cluster.PartSlices, "v1beta2"},
		{"both versions", "kind: DeviceClassList\napiVersion: resource.k8s.io/v1\nitems: []\n---\nkind: DeviceClass\napiVersion: resource.k8s.io/v1beta1\nmetadata: {name: c}", cluster.PartClasses, "v1beta1"},
		{"no namespace kube-system", "kind: NamespaceList\napiVersion: v1\nitems: [{metadata: {name: default, uid: u}}]", cluster.PartIdentity, "do not hold namespace kube-system"},
		{"kube-system", "kind: Namespace\napiVersion: v1\nmetadata: {name: kube-system, uid: u}", cluster.PartIdentity, ""},
		{"no version", "", cluster.PartVersion, "version of the server"},
		{"the version", "clientVersion: {gitVersion: v1.37.0}\nserverVersion: {major: '1', minor: '37', gitVersion: v1.37.2}", cluster.PartVersion, ""},
		{"the tool's journals", "kind: ConfigMapList\napiVersion: v1\nitems: [{metadata: {name: kube-root-ca.crt, namespace: dramigrate-system}}]", cluster.PartJournals, ""},
		{"ConfigMaps of another namespace", "kind: ConfigMapList\napiVersion: v1\nitems: [{metadata: {name: kube-root-ca.crt, namespace: default}}]", cluster.PartJournals, "no ConfigMap of namespace dramigrate-system"},
		{"a journal that cannot be read", "kind: ConfigMapList\napiVersion: v1\nitems: [{metadata: {name: shared, namespace: dramigrate-system, labels: {dramigrate.dev/kind: journal}}}]", cluster.PartJournals, "has no key journal.yaml"},
		{"Leases of the nodes", "kind: LeaseList\napiVersion: coordination.k8s.io/v1\nitems: [{metadata: {name: n1, namespace: kube-node-lease}}]", cluster.PartLocks, "no Lease of namespace dramigrate-system"},
		{"DaemonSets without field managers", "kind: DaemonSetList\napiVersion: apps/v1\nitems: [{metadata: {name: d, namespace: a}}]", cluster.PartManagers, "--show-managed-fields"},
		{"DaemonSets with them", "kind: DaemonSetList\napiVersion: apps/v1\nitems: [{metadata: {name: d, namespace: a, managedFields: [{manager: m}]}}]", cluster.PartManagers, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, _, err := fromText(t, nodes+tt.text)
			if err != nil {
				t.Fatal(err)
			}
			reason, unknown := s.IsUnknown(tt.part)
			if unknown != (tt.want != "") || !strings.Contains(reason, tt.want) {
				t.Errorf("%s: unknown %t, %q, want %q", tt.part, unknown, reason, tt.want)
			}
		})
	}
}

func TestReadWithoutNamespaceAsksForNoRecords(t *testing.T) {
	t.Parallel()
	s, _, err := Read(t.Context(), []string{Stdin}, Options{Stdin: bytes.NewReader(written(t, live(t, clusterObjects(t))))})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Unknown) > 0 || len(s.Journals) > 0 || len(s.Locks) > 0 {
		t.Errorf("unknown %v, %d journals, %d locks, want none", s.Unknown, len(s.Journals), len(s.Locks))
	}
}

// header is that of a snapshot of one node, which follows.
func header(fields string) string {
	return "apiVersion: dramigrate.dev/v1alpha1\nkind: ClusterSnapshot\ncluster: {uid: u}\nread: [nodes]\n" + fields + "\n---\n" + nodeYAML
}

// Without the numbers of its header a snapshot may be a part of itself, and says so; a
// number for some of what it claims to hold whole is none for the rest.
func TestReadWithoutCounts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       string // in the note
	}{
		{"none", header(""), "does not say how many objects it holds: whether it is complete could not be checked and is unknown"},
		{"none, and other files", header("") + "---\nkind: PodList\napiVersion: v1\nitems: []\n", "whether it is complete could not be checked"},
		{"of another kind", header("objects: {Pod: 0}") + "...\n", "whether it is complete could not be checked"},
		{"all", header("objects: {Node: 1}") + "...\n", ""},
	} {
		s, _, err := fromText(t, tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		note := ""
		if s.Source != nil {
			note = s.Source.Note
		}
		if (note == "") != (tt.want == "") || !strings.Contains(note, tt.want) {
			t.Errorf("%s: note %q, want %q in it", tt.name, note, tt.want)
		}
	}
	whole, _, err := Read(t.Context(), []string{Stdin}, Options{Namespace: toolNamespace, Stdin: bytes.NewReader(written(t, live(t, clusterObjects(t))))})
	if err != nil || whole.Source != nil {
		t.Errorf("a written snapshot: source %+v, error %v", whole.Source, err)
	}
}

func TestReadIgnores(t *testing.T) {
	t.Parallel()
	text := nodeYAML
	for i := range 300 {
		text += fmt.Sprintf("---\napiVersion: example.com/v1\nkind: Kind%d\n", i)
	}
	text += "---\napiVersion: v1\nkind: SecretList\nitems: [{metadata: {name: a}}, {}]\n---\napiVersion: v1\nkind: " + strings.Repeat("x", 1000) + "\n"
	s, ignored, err := fromText(t, text)
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for kind, n := range ignored {
		total += n
		if len(kind) > 63 {
			t.Errorf("a kind of %d bytes is remembered", len(kind))
		}
	}
	if total != 303 || len(ignored) > mostKinds+1 {
		t.Errorf("%d objects of %d kinds ignored, want 303 of at most %d", total, len(ignored), mostKinds+1)
	}
	if diff := cmp.Diff(ignored, s.Source.Ignored); diff != "" {
		t.Errorf("source (-returned +snapshot):\n%s", diff)
	}
}

// Every malformed input is one error that says where and what; none is a Snapshot.
func TestReadRefuses(t *testing.T) {
	t.Parallel()
	var laughs strings.Builder // the billion laughs: nine lines, 10^9 strings
	laughs.WriteString("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&laughs, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", "standard input: is empty"},
		{"blanks", " \n\n", "standard input: holds no object"},
		{"comments", "# a\n---\n# b\n", "holds no object"},
		{"a picture", "\x89PNG\r\n\x1a\n\x00\x00", "is not text"},
		{"protobuf", "k8s\x00\x0a", "is not text"},
		{"gzip", "\x1f\x8b\x08\x00", "gunzip"},
		{"UTF-16", "\xff\xfek\x00i\x00", "is UTF-16"},
		{"Latin-1 in YAML", "kind: Node\napiVersion: v1\n# caf\xe9\nmetadata: {name: n1}\n", "document 1, line 3: is not UTF-8"},
		{"Latin-1 in JSON", `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1","labels":{"a":"caf` + "\xe9" + `"}}}`, "document 1: is not UTF-8"},
		{"Latin-1 in an item", `{"items":[{"kind":"Node","metadata":{"name":"` + "\xe9" + `"}}]}`, "document 1, item 1: is not UTF-8"},
		{"control characters in YAML", "kind: \"a\x01b\"\n", "control characters"},
		{"prose", "this is not a manifest", "line 1: is not an object"},
		{"a YAML array", "- a\n- b\n", "is not an object"},
		{"a JSON array", "[" + nodeJSON + "]", "is a JSON array"},
		{"a JSON string behind an object", nodeJSON + `"x"`, "document 2: is a string, not an object"},
		{"text behind JSON", nodeJSON + "\nkind: Pod\n", "document 2: is not JSON, at byte"},
		{"JSON that was cut off", nodeJSON[:40], "document 1: ends in the middle of it, after byte"},
		{"a list that was cut off between items", `{"apiVersion":"v1","items":[` + nodeJSON + ",", "item 2: ends in the middle"},
		{"a list that was cut off behind its items", `{"apiVersion":"v1","items":[` + nodeJSON + "]", "document 1: ends in the middle"},
		{"a YAML list that was cut off behind its items", "apiVersion: v1\nitems:\n- kind: Node\n  apiVersion: v1\n  metadata: {name: n1}\n", "has items and no kind: the file was cut off"},
		{"YAML that was cut off in a string", nodeYAML + "spec: {providerID: \"aws://", "line 4: is not YAML"},
		{"two documents without a separator", nodeYAML + nodeYAML, `line 4: has the key "apiVersion" twice, also in line 1 of the document; is a line`},
		{"a key twice in JSON", `{"kind":"Node","kind":"Pod"}`, `has the key "kind" twice`},
		{"a long key twice", `{"` + strings.Repeat("é", 100_000) + `":1,"` + strings.Repeat("é", 100_000) + `":1}`, `has the key "é`},
		{"a long name", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"` + strings.Repeat("x", 100_000) + `"}}`, `Node "xxx`},
		{"items twice", `{"kind":"List","items":[],"items":[]}`, `has the key "items" twice`},
		{"a key twice deep in JSON", `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1","name":"n2"}}`, `duplicate field "metadata.name"`},
		{"no kind", "apiVersion: v1\nmetadata: {name: n1}\n", "has no kind"},
		{"no kind of an item, nor yet of its list", `{"items":[{"metadata":{"name":"n1"}}],"kind":"NodeList","apiVersion":"v1"}`, "item 1: has no kind, and that of its list does not stand before the items"},
		{"kubectl's version alone", "clientVersion: {gitVersion: v1.37.0}\n", "that of the server is needed"},
		{"no name", "apiVersion: v1\nkind: NodeList\nitems: [{metadata: {}}]\n", `item 1, line 3: Node "": has no metadata.name`},
		{"no namespace", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", "has no metadata.namespace"},
		{"a name with an escape sequence", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"\u001b[2J"}}`, `Node "\x1b[2J": metadata.name: `},
		{"a namespace with a path", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"../x"}}`, "metadata.namespace: "},
		{"a field of another type", "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nspec: [a]\n", "Node n1: spec: must be a group of fields, is a list"},
		{"a field of another type, deeper", "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nspec: {taints: none}\n", "Node n1: spec.taints: must be a list, is a text"},
		{"a kind of another type", "apiVersion: v1\nkind: [Node]\nmetadata: {name: n1}\n", "kind: must be a text, is a list"},
		{"a field of the header of another type", header("objects: many"), "ClusterSnapshot: objects: must be a group of fields, is a text"},
		{"a quantity that is none", "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {capacity: {nvidia.com/gpu: many}}\n", "Node n1: status.capacity[nvidia.com/gpu]: must be a quantity, as 4 or 16Gi, is \"many\""},
		{"a version that is none", "apiVersion: a/b/c\nkind: Node\n", "a/b/c"},
		{"items that are no list", `{"kind":"List","items":{}}`, "its items are no array"},
		{"items that are no list in YAML", "kind: List\nitems: {a: b}\n", "its items are no list"},
		{"an item that is no object", "kind: List\napiVersion: v1\nitems: [7]\n", "item 1, line 3: "},
		{"a list in a list", `{"kind":"List","apiVersion":"v1","items":[{"kind":"PodList","apiVersion":"v1","items":[]}]}`, "inside a list"},
		{"a list without items", "kind: PodList\napiVersion: v1\n", "without items"},
		{"items of what is no list", `{"kind":"Node","apiVersion":"v1","items":[` + nodeJSON + `]}`, "is a Node, not a list"},
		{"one object in two states", nodeYAML + "---\n" + nodeYAML + "spec: {unschedulable: true}\n", "document 2, line 5: Node n1: is different in standard input, document 1, line 1: give one of the two"},
		{"one item in two states", `{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"n1"}},{"metadata":{"name":"n1","uid":"u"}}]}`, "item 2: Node n1: is different in standard input, document 1, item 1"},
		{"two clusters", nodeYAML + "---\nkind: Namespace\napiVersion: v1\nmetadata: {name: kube-system, uid: u1}\n---\n" + header(""), "is of cluster u, and standard input, document 2, line 5 of cluster u1"},
		{"two versions", "serverVersion: {gitVersion: v1.36.0}\n---\nserverVersion: {gitVersion: v1.37.0}\n", "give files of one cluster at one time"},
		{"no nodes", "kind: PodList\napiVersion: v1\nitems: []\n", "no nodes (the files hold no Node list)"},
		{"an alias", "kind: Node\napiVersion: v1\nmetadata: &m {name: n1}\nother: *m\n", "line 4: has an alias (*m)"},
		{"the billion laughs", laughs.String(), "has an alias"},
		{"a merge", "base: &b {name: n1}\nkind: Node\nmetadata: {<<: *b}\n", "line 3: has a key that is not a plain name"},
		{"a key that is a list", "? [a]\n: b\n", "not a plain name"},
		{"binary data", "kind: Node\ndata: !!binary aGk=\n", "has a value of type !!binary"},
		{"infinity", "kind: Node\ndata: .inf\n", ".inf is no number of JSON"},
		{"brackets without end", strings.Repeat("[", 100_000), "is a JSON array"},
		{"deep YAML", "a: " + strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000) + "\n", "is nested more than 500 levels deep"},
		{"deeper YAML", "a: " + strings.Repeat("{a: ", 50_000), "is not YAML"},
		{"deep JSON", `{"a":` + strings.Repeat("[", 100_000), "exceeded max depth"},
		{"an unknown field of the header", header("later: true"), `ClusterSnapshot: unknown field "later"`},
		{"a header of another version", strings.Replace(header(""), "v1alpha1", "v1", 1), "is a ClusterSnapshot of dramigrate.dev/v1"},
		{"a part that is none", strings.Replace(header(""), "[nodes]", "[secrets]", 1), `"secrets" is no part of a snapshot that this version reads: take the snapshot again`},
		{"two headers", header("") + "---\n" + header(""), "is a second snapshot, after standard input, document 1"},
		{"fewer objects than the header says", header("objects: {Node: 2}") + "...\n", "holds 1 object of kind Node where its ClusterSnapshot says 2"},
		{"no end", header("objects: {Node: 1}"), "does not end with the line `...`"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, _, err := fromText(t, tt.text)
			if err == nil || s != nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("%v, error %v, want one with %q", s != nil, err, tt.want)
			}
			if !strings.HasPrefix(err.Error(), "standard input") {
				t.Errorf("error %q does not begin with where it is", err)
			}
			if len(err.Error()) > 500 {
				t.Errorf("the error has %d bytes: %s", len(err.Error()), err)
			}
		})
	}
}

// Counts that no server would have taken are told by their object and field.
func TestReadRefusesCounts(t *testing.T) {
	t.Parallel()
	node := func(field, count string) string {
		return "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {" + field + ": {nvidia.com/gpu: " + count + "}}\n"
	}
	pod := func(field, name, count string) string {
		return nodeYAML + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: team}\nspec: {initContainers: [{name: i}], containers: [{name: c}, {name: d, resources: {" + field + ": {" + name + ": " + count + "}}}]}\n"
	}
	workload := func(kind, version, spec string) string {
		return nodeYAML + "---\napiVersion: " + version + "\nkind: " + kind + "\nmetadata: {name: w, namespace: team}\nspec: " + spec + "\n"
	}
	template := "{template: {spec: {initContainers: [{name: i, resources: {limits: {nvidia.com/gpu: -2}}}]}}}"
	quota := func(field, name, count string) string {
		return nodeYAML + "---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: team}\n" + field + ": {hard: {" + name + ": " + count + "}}\n"
	}
	for _, tt := range []struct{ name, text, want string }{
		{"negative", node("capacity", "-1"), "Node n1: status.capacity[nvidia.com/gpu]: must be a whole number of devices, not negative, is -1, which no API server takes: correct it, or collect the file again"},
		{"a part", node("allocatable", "1500m"), "Node n1: status.allocatable[nvidia.com/gpu]: must be a whole number of devices, not negative, is 1500m"},
		{"more than there can be", node("capacity", "1e30"), "Node n1: status.capacity[nvidia.com/gpu]: is 1e30, more than this version counts (9007199254740992): correct it, or leave the object out"},
		{"more than can be added up", node("capacity", "9007199254740993"), "is 9007199254740993"},
		{"as many as can be", node("capacity", "9007199254740992"), ""},
		{"none", node("capacity", "0"), ""},
		{"a thousand thousandths", node("capacity", "2000m"), ""},
		{"in bytes", node("capacity", "96Mi"), ""},
		{"a pod's request", pod("requests", "nvidia.com/gpu", "-1"), "Pod team/p: spec.containers[1].resources.requests[nvidia.com/gpu]: must be"},
		{"a pod's limit", pod("limits", "amd.com/gpu", "0.5"), "Pod team/p: spec.containers[1].resources.limits[amd.com/gpu]: must be"},
		{"of a class", pod("limits", "deviceclass.resource.kubernetes.io/gpu", "1500m"), "Pod team/p: spec.containers[1].resources.limits[deviceclass.resource.kubernetes.io/gpu]: must be"},
		{"what is no count", pod("limits", "cpu", "1500m"), ""},
		{"a DaemonSet", workload("DaemonSet", "apps/v1", template), "DaemonSet team/w: spec.template.spec.initContainers[0].resources.limits[nvidia.com/gpu]: must be"},
		{"a Deployment", workload("Deployment", "apps/v1", template), "Deployment team/w: spec.template.spec.initContainers[0].resources.limits[nvidia.com/gpu]: must be"},
		{"a StatefulSet", workload("StatefulSet", "apps/v1", template), "StatefulSet team/w: spec.template.spec.initContainers[0]"},
		{"a Job", workload("Job", "batch/v1", template), "Job team/w: spec.template.spec.initContainers[0]"},
		{"a CronJob", workload("CronJob", "batch/v1", "{jobTemplate: {spec: "+template+"}}"), "CronJob team/w: spec.jobTemplate.spec.template.spec.initContainers[0]"},
		{"a quota", quota("spec", "requests.nvidia.com/gpu", "-1"), "ResourceQuota team/q: spec.hard[requests.nvidia.com/gpu]: must be not negative, is -1"},
		{"a quota's status", quota("status", "pods", "-1"), "ResourceQuota team/q: status.hard[pods]: must be not negative, is -1"},
		{"a quota of a part, which a server takes", quota("spec", "requests.nvidia.com/gpu", "1500m"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := Read(t.Context(), []string{Stdin}, Options{Advice: true, Stdin: strings.NewReader(tt.text)})
			if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "standard input, document")) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestReadFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	read := func(sources ...string) (*cluster.Snapshot, error) {
		s, _, err := Read(t.Context(), sources, Options{Namespace: toolNamespace})
		return s, err
	}
	const empty = "apiVersion: v1\nitems: []\nkind: List\n"
	put("nodes.json", `{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"n1"}}]}`)
	put("pods.yaml", empty)
	put("daemonsets.yml", empty)
	put("leases.yaml", empty)
	put("budgets.yaml", empty) // not the name of a part
	put("notes.txt", "{")
	put("more/bad.yaml", "{")
	put(".hidden.yaml", "{")
	s, err := read(folder)
	if err != nil {
		t.Fatal(err)
	}
	var unknown []string
	for _, u := range s.Unknown {
		unknown = append(unknown, u.Part)
	}
	want := []string{"configmaps", "deviceclasses", "namespaces", "poddisruptionbudgets", "resourceclaims", "resourceslices", "version"}
	if diff := cmp.Diff(want, unknown); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
	put("zz.yaml", "kind: [")
	if _, err := read(folder); err == nil || !strings.HasPrefix(err.Error(), filepath.Join(folder, "zz.yaml")+", document 1, line 1: ") {
		t.Errorf("error %v, want one that names the file", err)
	}
	if _, err := read(filepath.Join(folder, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want %v", err, os.ErrNotExist)
	}
	if _, err := read(filepath.Join(folder, "pods.yaml"), filepath.Join(folder, "nodes.json"), filepath.Join(folder, "nodes.json")); err != nil {
		t.Errorf("a file that is named twice: %v", err)
	}
}

// A snapshot's unknown part may be added as kubectl prints it; the plan says so then.
func TestReadSnapshotAndFiles(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "poddisruptionbudgets.yaml")
	if err := os.WriteFile(name, []byte("apiVersion: v1\nitems: []\nkind: List\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	snapshot := written(t, live(t, clusterObjects(t), "poddisruptionbudgets"))
	read := func(namespace string, sources ...string) *cluster.Snapshot {
		s, _, err := Read(t.Context(), sources, Options{Namespace: namespace, Stdin: bytes.NewReader(snapshot)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := read(toolNamespace, Stdin); s.Source != nil || len(s.Unknown) != 1 {
		t.Errorf("the snapshot alone: source %v, unknown %v, want no source and the budgets", s.Source, s.Unknown)
	}
	if s := read(toolNamespace, Stdin, name); s.Source == nil || len(s.Unknown) != 0 {
		t.Errorf("with the budgets: source %v, unknown %v, want a source and nothing", s.Source, s.Unknown)
	}
	s := read("other", Stdin, name)
	if reason, _ := s.IsUnknown(cluster.PartJournals); !strings.Contains(reason, `namespace "dramigrate-system", not of other`) || len(s.Journals) > 0 {
		t.Errorf("another tool namespace: %d journals, unknown %q", len(s.Journals), reason)
	}
}

func TestReadStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	cancel(stop)
	for _, text := range []string{nodeYAML, nodeJSON} {
		if _, _, err := Read(ctx, []string{Stdin}, Options{Stdin: strings.NewReader(text)}); !errors.Is(err, stop) {
			t.Errorf("error %v, want %v", err, stop)
		}
	}
}

// The time of a snapshot is that of its locks, unless they are from elsewhere.
func TestReadTaken(t *testing.T) {
	t.Parallel()
	const header = "apiVersion: dramigrate.dev/v1alpha1\nkind: ClusterSnapshot\ntaken: '2026-01-02T03:04:05Z'\ncluster: {}\nnamespace: " + toolNamespace + "\nread: [nodes, leases]\n---\n"
	const lease = "kind: Lease\napiVersion: coordination.k8s.io/v1\nmetadata: {name: pool-a, namespace: " + toolNamespace + "}\nspec: {holderIdentity: me}\n"
	taken := time.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		name, snapshot, beside string
		want                   time.Time
	}{
		{"a snapshot", header + nodeYAML + "---\n" + lease, "", taken},
		{"a snapshot, and what kubectl has written of something else", header + nodeYAML, "kind: Pod\napiVersion: v1\nmetadata: {name: p, namespace: n}\n", taken},
		{"a snapshot, and a lock that kubectl has written", header + nodeYAML, lease, time.Time{}},
		{"what kubectl has written", nodeYAML + "---\n" + lease, "", time.Time{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			from := []string{Stdin}
			if tt.beside != "" {
				from = append(from, filepath.Join(t.TempDir(), "beside.yaml"))
				if err := os.WriteFile(from[1], []byte(tt.beside), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s, _, err := Read(t.Context(), from, Options{Namespace: toolNamespace, Stdin: strings.NewReader(tt.snapshot)})
			if err != nil || !s.Taken.Equal(tt.want) {
				t.Fatalf("%v; of %+v, want it taken at %v", err, s, tt.want)
			}
		})
	}
}
