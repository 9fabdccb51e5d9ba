//go:build !linux || !cgo

package nvml

// load is all that a build without cgo, or for another system, has of the library.
func load(string) (driver, error) { return nil, &Error{Kind: KindNotBuiltIn} }
