"""HTTP: routes, problems, and what they depend on."""
