"""Spark jobs that maintain tables and caches."""
