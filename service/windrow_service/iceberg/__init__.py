"""The files of Iceberg tables, read from their metadata into columns of an inventory."""
