"""Filters: from SQL text or a JSON tree to typed expressions, and back to JSON."""
