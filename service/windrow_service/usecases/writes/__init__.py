"""Plans of writes, and the records of writes."""
