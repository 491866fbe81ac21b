"""The calls that a client makes to a coordinator: one module per resource, over one transport."""
