"""Excerpts: some columns of a large Parquet file, read as a small Parquet file of their own."""
