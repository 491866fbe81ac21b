"""Inventories: what files a table has, and what their footers say."""
