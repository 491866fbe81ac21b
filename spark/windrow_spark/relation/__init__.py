"""A table as a relation of a Spark session; each scan of it gets its own plan."""
