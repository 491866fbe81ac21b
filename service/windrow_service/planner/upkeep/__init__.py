"""What a table's files reveal about the writes that made them, and which are worth compacting."""
