"""Access tokens of other issuers: OpenID Connect providers, and Kubernetes."""
