//go:build !linux || !cgo || !nvml

package nvml

import (
	"context"
	"testing"
)

func TestOpenIsNotBuiltIn(t *testing.T) {
	if lib, err := Open(context.Background(), Options{}); lib != nil || KindOf(err) != KindNotBuiltIn {
		t.Errorf("Open = %v, %v; want not-built-in", lib, err)
	}
}
