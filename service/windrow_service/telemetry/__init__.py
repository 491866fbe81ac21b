"""What the coordinator tells those who watch it: metrics and traces."""
