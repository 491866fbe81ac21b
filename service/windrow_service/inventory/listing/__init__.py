"""Which files are under a table's location, and what their paths mean."""
