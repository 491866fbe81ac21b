"""The use cases of the coordinator, in terms of ports."""
