"""What runs beside a Spark session and in its tasks: reads, writes, commits, the cache of a host."""
