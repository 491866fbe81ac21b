"""What the footers of a table's files say, read in processes that may crash."""
