"""Tables described as Iceberg tables, for engines other than Spark."""
