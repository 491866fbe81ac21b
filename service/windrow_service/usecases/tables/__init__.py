"""Tables as they are registered."""
