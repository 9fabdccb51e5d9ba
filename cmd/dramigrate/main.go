// Command dramigrate moves GPU node pools between device plugins and Dynamic
// Resource Allocation. Named kubectl-dramigrate, it is a kubectl plugin.
package main

import (
	"os"

	"github.com/dramigrate/dramigrate/internal/cli"
)

// version is set by the linker for a release; empty, the build information serves.
var version string

func main() {
	os.Exit(cli.Main(os.Args, cli.OSStreams(), cli.NewBuild(version)))
}
