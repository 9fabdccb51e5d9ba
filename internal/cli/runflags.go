package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/engine"
)

// runFlags are how a plan is run; none of them is part of it.
type runFlags struct {
	yes      bool
	dryRun   string
	file     string
	edited   bool
	lockTTL  time.Duration
	lockWait time.Duration
}

func (f *runFlags) addFlags(cmd *cobra.Command) {
	s := cmd.Flags()
	s.BoolVar(&f.yes, "yes", false, "do not ask; needed where there is no terminal")
	s.StringVar(&f.dryRun, "dry-run", "none", "none, client (show the plan alone) or server (have the server check what can be sent)")
	s.Lookup("dry-run").NoOptDefVal = "client"
	s.StringVar(&f.file, "plan", "", "run the plan saved in this file, if the cluster still asks for the same one")
	s.BoolVar(&f.edited, "allow-edited", false, "run a saved plan that was edited by hand, if its steps are what its settings ask for")
	s.DurationVar(&f.lockTTL, "lock-ttl", engine.DefaultTTL, "how long the lock outlives a run that died")
	s.DurationVar(&f.lockWait, "lock-wait", 0, "how long to wait for another run to end")
	offer(cmd, "dry-run", "none", "client", "server")
	offerFiles(cmd, "plan", cobra.ShellCompDirectiveFilterFileExt, "yaml", "yml", "json")
}

func (f *runFlags) validate() error {
	switch f.dryRun {
	case "none", "client", "server":
	default:
		return usageError("--dry-run %q: must be none, client or server", f.dryRun)
	}
	if f.lockTTL < time.Second || f.lockWait < 0 {
		return usageError("--lock-ttl must be at least 1s, --lock-wait not negative")
	}
	return nil
}

// askable says that the question before a run can be asked, if there is one.
func (f *runFlags) askable(s Streams) error {
	if f.dryRun == "none" && !f.yes && !s.InTTY {
		return usageError("there is no terminal to ask on: give --yes to go on without a question")
	}
	return nil
}
