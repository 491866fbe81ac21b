"""Unchanged queries of Spark's own tables and paths, planned by Windrow where the rows are the same."""
