//go:build no_podresources_list

package nodeprobe

import (
	"testing"
)

func TestBuildWithoutList(t *testing.T) {
	k := &fakeKubelet{}
	report, err := Collect(t.Context(), Options{Node: "gpu-7", Socket: k.serve(t)})
	if err != nil {
		t.Fatal(err)
	}
	if report.ListCalled || report.Holders != nil || len(report.Unknown) != 0 || k.listCalls.Load() != 0 {
		t.Errorf("report %+v after %d List calls; want no call, no holders, nothing unknown", report, k.listCalls.Load())
	}
	if report.Advertised == nil {
		t.Error("advertised is missing; only List is left out")
	}
}
