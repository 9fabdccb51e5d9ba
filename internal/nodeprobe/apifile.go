package nodeprobe

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/internal/jsonerr"
)

// ReadAPIView reads what `kubectl get resourceslices,resourceclaims,pods -A -o yaml`
// prints, or several such documents, YAML or JSON. A kind of which no object is among
// them was not given, unless an empty list of that kind is (ResourceSliceList,
// ResourceClaimList, PodList). A List of mixed kinds speaks only for the kinds in it.
func ReadAPIView(r io.Reader) (*APIView, error) {
	view := &APIView{}
	docs := utilyaml.NewYAMLReader(bufio.NewReader(io.LimitReader(r, maxFile)))
	for n := 1; ; n++ {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return view, nil
		}
		if err == nil && len(bytes.TrimSpace(doc)) > 0 {
			err = view.add(doc)
		}
		if err != nil {
			return nil, fmt.Errorf("API view, document %d: %w", n, err)
		}
	}
}

// add takes one object or list.
func (v *APIView) add(doc []byte) error {
	data, err := yaml.YAMLToJSON(doc)
	if err != nil {
		return jsonerr.Plain(err)
	}
	if string(data) == "null" {
		return nil // a document of comments alone
	}
	var meta metav1.TypeMeta
	if err := yaml.Unmarshal(data, &meta); err != nil {
		return jsonerr.Plain(err)
	}
	if meta.Kind == "" {
		return errors.New("it has no kind")
	}
	resource := meta.APIVersion == resourcev1.SchemeGroupVersion.String()
	core := meta.APIVersion == corev1.SchemeGroupVersion.String()
	switch {
	case core && meta.Kind == "List":
		return v.addItems(data)
	case resource && meta.Kind == "ResourceSlice":
		return addOne(&v.Slices, data)
	case resource && meta.Kind == "ResourceClaim":
		return addOne(&v.Claims, data)
	case core && meta.Kind == "Pod":
		return addOne(&v.Pods, data)
	case resource && meta.Kind == "ResourceSliceList":
		return addAll(&v.Slices, data)
	case resource && meta.Kind == "ResourceClaimList":
		return addAll(&v.Claims, data)
	case core && meta.Kind == "PodList":
		return addAll(&v.Pods, data)
	}
	return fmt.Errorf("it is a %s of %s; ResourceSlices and ResourceClaims of %s and Pods are read",
		meta.Kind, meta.APIVersion, resourcev1.SchemeGroupVersion)
}

func (v *APIView) addItems(data []byte) error {
	var list struct {
		Items []runtime.RawExtension `json:"items"`
	}
	if err := yaml.Unmarshal(data, &list); err != nil {
		return jsonerr.Plain(err)
	}
	for _, item := range list.Items {
		if err := v.add(item.Raw); err != nil {
			return err
		}
	}
	return nil
}

// addAll takes a list of one kind, which tells of that kind also if it is empty.
func addAll[T any](list *[]T, data []byte) error {
	var from struct {
		Items []T `json:"items"`
	}
	if err := yaml.Unmarshal(data, &from); err != nil {
		return jsonerr.Plain(err)
	}
	*list = append(append([]T{}, *list...), from.Items...)
	return nil
}

func addOne[T any](list *[]T, data []byte) error {
	var object T
	if err := yaml.Unmarshal(data, &object); err != nil {
		return jsonerr.Plain(err)
	}
	*list = append(*list, object)
	return nil
}

func parsePodRef(ref string) (podRef, bool) {
	namespace, name, ok := strings.Cut(ref, "/")
	return podRef{namespace, name}, ok
}
