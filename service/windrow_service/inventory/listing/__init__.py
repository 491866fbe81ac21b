"""Which files lie under a table's location, and what their paths say."""
