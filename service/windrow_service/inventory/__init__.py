"""Inventories: which files a table has, and what their footers say."""
