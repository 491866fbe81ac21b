"""What a client asks of a coordinator: one module for each resource, and what carries requests."""
