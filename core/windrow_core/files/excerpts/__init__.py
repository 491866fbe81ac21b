"""Small Parquet files made of others: of some columns of a large file, or of many small files."""
