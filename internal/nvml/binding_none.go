//go:build !linux || !cgo || !nvml

package nvml

// load is all that a build without cgo or the tag nvml, or for another system, has of
// the library.
func load(string) (driver, error) { return nil, &Error{Kind: KindNotBuiltIn} }
