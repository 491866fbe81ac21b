"""What a table's files tell of the writes that made them, and what is worth compacting."""
