package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/internal/status"
)

// However its nodes are chosen, a pool's status is the same: their own records know it by
// another name than a selector does.
func TestStatusOfNodesByASelector(t *testing.T) {
	clusters, err := filepath.Abs(filepath.Join("..", "..", "testdata", "clusters"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		file, pool, args string
		code             int
		nodes            int
		strays           string // kinds
	}{
		{"double-advertised.yaml", "gpu-a", "-l topology.kubernetes.io/zone=us-east-1a", ExitBlocked, 4, "two-states part-way"},
		{"double-advertised.yaml", "gpu-a", "-l topology.kubernetes.io/zone=us-east-1a --pool mine", ExitBlocked, 4, "two-states part-way"},
		{"migrated.yaml", "gpu-a", "-l eks.amazonaws.com/nodegroup=gpu-a --pool mine", ExitOK, 2, ""},
	} {
		gather := func(args ...string) (*status.Status, int) {
			o := invoke(t, nil, nil, done, append([]string{"status", "-o", "json", "--from", filepath.Join(clusters, tt.file)}, args...)...)
			out := &status.Status{}
			if err := yaml.Unmarshal([]byte(o.stdout), out); err != nil || len(out.Pools) != 1 {
				t.Fatalf("%v: %v\n%s%s", args, err, o.stdout, o.err)
			}
			return out, o.code
		}
		want, _ := gather(tt.pool)
		got, code := gather(strings.Fields(tt.args)...)
		if code != tt.code || len(got.Nodes) != tt.nodes || len(got.Nodes) != len(want.Nodes) {
			t.Errorf("%s: exit code %d with %d nodes, want %d with %d", tt.args, code, len(got.Nodes), tt.code, tt.nodes)
		}
		var kinds []string
		for _, s := range got.Strays {
			kinds = append(kinds, string(s.Kind))
		}
		if strings.Join(kinds, " ") != tt.strays || len(want.Strays) != len(kinds) {
			t.Errorf("%s: strays %q, want %q", tt.args, kinds, tt.strays)
		}
		row, whole := got.Pools[0], want.Pools[0]
		if row.DRA != whole.DRA || row.Plugin != whole.Plugin || len(row.Runs) != len(whole.Runs) || len(row.Runs) == 0 ||
			row.Rollback == nil || whole.Rollback == nil || row.Rollback.Result != whole.Rollback.Result || row.Rollback.Nodes != whole.Rollback.Nodes {
			t.Errorf("%s: the pool is %+v, want it as by its name: %+v", tt.args, row, whole)
		}
	}
}
