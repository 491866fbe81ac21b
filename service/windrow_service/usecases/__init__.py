"""What the coordinator does, in terms of ports."""
