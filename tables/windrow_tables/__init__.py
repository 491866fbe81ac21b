"""Tables without Spark: scans, what tasks read, commits, and the cache of a host."""
