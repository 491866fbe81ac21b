"""Spark jobs that keep tables and caches in order."""
