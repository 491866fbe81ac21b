"""Headers of Avro files, read in processes that may crash."""
