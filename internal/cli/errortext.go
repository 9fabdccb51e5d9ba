package cli

import (
	"errors"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
)

// explain is the one line that a person reads: the error, and for the common ways
// in which a cluster cannot be used, the next thing to do.
func explain(err error) string {
	var dial *url.Error
	switch {
	case clientcmd.IsEmptyConfig(err):
		return "no cluster to talk to: set KUBECONFIG or give --kubeconfig"
	case apierrors.IsUnauthorized(err):
		return err.Error() + "; the credentials of this kubeconfig are not accepted: log in again"
	case apierrors.IsForbidden(err):
		return err.Error() + "; ask for this permission, or use another --context"
	case errors.As(err, &dial):
		u, parseErr := url.Parse(dial.URL)
		if parseErr != nil {
			return err.Error()
		}
		return "the cluster at " + u.Scheme + "://" + u.Host + " cannot be reached: " + dial.Err.Error() +
			"; check --kubeconfig and --context"
	default:
		return err.Error()
	}
}
