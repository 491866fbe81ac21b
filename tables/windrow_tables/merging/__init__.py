"""Merging Parquet files: many into few, with the same values, types and metadata."""
