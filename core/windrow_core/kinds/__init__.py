"""Kinds of tables: what can be done with each, and how its files are read."""
