"""Delta tables: their files, taken from their log without listing folders."""
