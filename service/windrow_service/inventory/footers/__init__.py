"""The footers of a table's files, read in processes that may crash."""
