"""HTTP: routes, problems, and their dependencies."""
