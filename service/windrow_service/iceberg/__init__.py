"""What Iceberg's metadata says of a table's files, as columns of an inventory."""
