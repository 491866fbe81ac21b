"""Access tokens that others issue: OpenID Connect providers, and Kubernetes."""
