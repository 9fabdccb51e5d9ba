package cli

import (
	"strings"
	"testing"

	"github.com/dramigrate/dramigrate/internal/plan"
)

// Wrong usage is found before the cluster is asked anything that matters, and said
// in one line on stderr.
func TestUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct{ args, want string }{
		{"plan", "name the pool"},
		{"plan a b", "one POOL is expected"},
		{"plan a --selector x=y", "either POOL or --selector"},
		{"plan --for nothing a", `--for "nothing"`},
		{"plan --for prepare a", "no pool is expected"},
		{"plan a --driver-manifests .", "--driver-manifests is for prepare"},
		{"plan a --max-unavailable 0", `max-unavailable "0"`},
		{"plan a --drain some", `--drain "some"`},
		{"plan a --drain-timeout 0s", "--drain-timeout"},
		{"plan a --soak -1s", "--soak"},
		{"plan a -o xml", "must be one of table, yaml, json"},
		{"plan nowhere", `pool "nowhere"`},
		{"plan --selector a(", "selector"},
		{"plan --selector no=node", "selects no node"},
		{"version extra", `unexpected argument "extra"`},
		{"pools extra", `unexpected argument "extra"`},
		{"status a b", "one POOL is expected"},
		{"status nowhere", `pool "nowhere"`},
		{"verify", "name the pool"},
		{"verify gpu-a --canary", "give the image of the helper pods by --helper-image"},
		{"unlock", "name one POOL"},
		{"unlock a --shared", "name one POOL"},
		{"apply gpu-a --helper-image x", "give --yes"},
		{"rollback gpu-a", "give --yes"},
		{"prepare", "give --yes"},
		{"unprepare", "give --yes"},
		{"apply gpu-a --yes", "DRAMIGRATE_HELPER_IMAGE"},
		{"apply --yes --helper-image x", "name the pool"},
		{"apply gpu-a --dry-run=maybe", `--dry-run "maybe"`},
		{"apply gpu-a --yes --helper-image x --lock-ttl 0s", "--lock-ttl"},
		{"prepare a --yes", "for the whole cluster"},
		{"prepare --yes --plugin-rollout never", `--plugin-rollout "never"`},
		{"apply --plan plan.yaml --soak 1s --yes", "--soak is in the plan"},
		{"rollback gpu-a --soak 1s", "unknown flag: --soak"},
		{"node-probe", "--node is required"},
		{"pools --tool-namespace A/B", `--tool-namespace "A/B"`},
		{"plan gpu-a --resource gpu", `--resource "gpu"`},
		{"plan gpu-a --driver GPU_NVIDIA", `--driver "GPU_NVIDIA"`},
		{"plan gpu-a --out same --report html=./same", "both write to same"},
		{"apply gone.yaml --yes", "nor is there a file gone.yaml"},
	} {
		t.Run(c.args, func(t *testing.T) {
			o := invoke(t, preparedCluster(), nil, done, strings.Fields(c.args)...)
			if o.code != ExitUsage || !strings.Contains(o.err, c.want) {
				t.Errorf("exit code %d, want %d; stderr %q, want %q in it", o.code, ExitUsage, o.err, c.want)
			}
			if o.stdout != "" || len(o.ran) != 0 || strings.Count(o.err, "Error: ") != 1 {
				t.Errorf("stdout %q, %d runs, stderr %q", o.stdout, len(o.ran), o.err)
			}
		})
	}
}

// Commands in messages are those that a person can type, wherever they come from.
func TestAsTyped(t *testing.T) {
	const hint = "node/a-1: a budget; run `dramigrate apply gpu-a` to go on, or `dramigrate rollback gpu-a` to go back; made by dramigrate v1"
	const want = "node/a-1: a budget; run `kubectl dramigrate apply gpu-a` to go on, or `kubectl dramigrate rollback gpu-a` to go back; made by dramigrate v1"
	if got := asTyped(hint, "kubectl dramigrate"); got != want {
		t.Errorf("%s", got)
	}
	if got := asTyped(hint, "dramigrate"); got != hint {
		t.Errorf("%s", got)
	}
}

func TestNextThingToTypeAsPlugin(t *testing.T) {
	var b strings.Builder
	a := &app{Streams: Streams{Err: &b}, name: "kubectl dramigrate"}
	a.next(&plan.Plan{Operation: plan.Migrate, Pool: &plan.Pool{Name: "gpu-a"}})
	a.next(&plan.Plan{Operation: plan.Prepare})
	const want = "Pool gpu-a is on DRA. Look: kubectl dramigrate verify gpu-a. Back: kubectl dramigrate rollback gpu-a\n" +
		"Prepared. Next: kubectl dramigrate pools, then kubectl dramigrate plan POOL\n"
	if got := b.String(); got != want {
		t.Errorf("%s", got)
	}
}
