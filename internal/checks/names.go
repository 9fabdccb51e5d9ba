package checks

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/vendor"
	"github.com/dramigrate/dramigrate/internal/words"
)

const (
	nvidiaDriver = "gpu.nvidia.com"
	nvidiaDomain = "nvidia.com"
)

// concerns says whether a resource is one that the pool's plugin serves, or that plugins
// for its vendor's GPUs serve elsewhere. The vendor's domain alone does not tell:
// nvidia.com/ also holds what network plugins serve.
func (in Input) concerns(resource string) bool {
	if slices.Contains(in.Resources, resource) || resource == in.Resource {
		return true
	}
	domain, _, _ := strings.Cut(in.Resource, "/")
	name, same := strings.CutPrefix(resource, domain+"/")
	if !same {
		return false
	}
	v, _ := vendor.OfDomain(domain)
	_, known := v.Named(name)
	return known
}

// fate is what becomes of a request once the plugin is gone.
type fate int

const (
	served fate = iota
	// classless: no DeviceClass maps the name, but one could.
	classless
	// hopeless: nothing that DRA has answers it.
	hopeless
)

// fateOf says what becomes of requests for a resource, and why if they are not served.
// The resource that the run maps is served.
func (in Input) fateOf(resource string) (fate, string) {
	if resource == in.Resource || !in.concerns(resource) {
		return served, ""
	}
	if class, _ := in.Snapshot.ClassFor(resource); class != nil {
		return served, ""
	}
	domain, name, _ := strings.Cut(resource, "/")
	if strings.HasSuffix(name, ".shared") {
		return hopeless, "its devices are replicas of shared ones, and DRA hands out whole devices by such a name"
	}
	v, _ := vendor.OfDomain(domain)
	if known, _ := v.Named(name); known.Cannot != "" {
		return hopeless, known.Cannot
	}
	return classless, ""
}

// profileName is the resource of a MIG profile. The plugin writes the + of an attribute
// as a dot, because a resource's name may not have it (NVIDIA/k8s-device-plugin,
// internal/rm).
var profileName = regexp.MustCompile(`^mig-([0-9]+g\.[0-9]+gb)(?:\.(.+))?$`)

// migProfile is the profile that a resource stands for, as the driver publishes it.
func migProfile(resource string) (string, bool) {
	name, ok := strings.CutPrefix(resource, "nvidia.com/")
	m := profileName.FindStringSubmatch(name)
	if !ok || m == nil {
		return "", false
	}
	if m[2] == "" {
		return m[1], true
	}
	return m[1] + "+" + m[2], true
}

// classRemedy is what to type to map a resource that needs a class of its own.
func (in Input) classRemedy(resource string) string {
	if in.Driver != nvidiaDriver {
		return fmt.Sprintf("make a DeviceClass with extendedResourceName %s whose selector tells these devices apart; `kubectl get resourceslices -o yaml` shows their attributes", resource)
	}
	after := ""
	expression := fmt.Sprintf(`device.driver == %q && device.attributes[%q].type == "mig" && device.attributes[%q].profile == `, in.Driver, in.Driver, in.Driver)
	if profile, ok := migProfile(resource); ok {
		expression += fmt.Sprintf("%q", profile)
	} else {
		expression = fmt.Sprintf(`device.driver == %q && device.attributes[%q].type == "gpu" && device.attributes[%q].productName == "PRODUCT"`, in.Driver, in.Driver, in.Driver)
		after = "; PRODUCT is the productName that `kubectl get resourceslices -o yaml` shows for these GPUs"
	}
	return "`echo " + words.Quoted(classJSON(resource, expression)) + " | kubectl create -f -`" + after
}

func classJSON(resource, expression string) string {
	c := resourcev1.DeviceClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "DeviceClass"},
		ObjectMeta: metav1.ObjectMeta{Name: className(resource)},
		Spec: resourcev1.DeviceClassSpec{
			ExtendedResourceName: &resource,
			Selectors:            []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}},
		},
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false) // && is for a person to read
	if err := e.Encode(c); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(out.String())
}

// className is a name for the class of a resource. It has at most 63 characters, so that
// the class's implicit resource name is a valid one: a name that is longer ends in its
// hash.
func className(resource string) string {
	vendor, name, _ := strings.Cut(strings.ToLower(resource), "/")
	vendor, _, _ = strings.Cut(vendor, ".")
	out := vendor + "-" + strings.ReplaceAll(name, "_", "-")
	if len(out) > validation.DNS1123LabelMaxLength {
		sum := sha256.Sum256([]byte(resource))
		tail := "-" + hex.EncodeToString(sum[:5])
		out = strings.TrimRight(out[:validation.DNS1123LabelMaxLength-len(tail)], "-.") + tail
	}
	return out
}

// unserved are the resources that a pod asks for and that nothing would serve, with why;
// classless ones without.
func (in Input) unserved(p *cluster.Pod) (classes []string, why map[string]string) {
	why = map[string]string{}
	for _, r := range p.Requests {
		switch f, reason := in.fateOf(string(r.Resource)); {
		case r.Count <= 0 || f == served:
		case f == classless && !slices.Contains(classes, string(r.Resource)):
			classes = append(classes, string(r.Resource))
		case f == hopeless:
			why[string(r.Resource)] = reason
		}
	}
	return classes, why
}
