//go:build !linux

package node

import (
	"fmt"
	"runtime"
)

// Missing says what this machine and user lack to run real kubelets.
func Missing() []string {
	return []string{fmt.Sprintf("this is %s: a real kubelet needs Linux, where each node has mount and pid namespaces of its own", runtime.GOOS)}
}
