"""Tables of Spark's catalog, such as Hive's metastore, registered at a coordinator."""
