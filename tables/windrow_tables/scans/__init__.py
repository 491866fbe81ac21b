"""Tables read without Spark: by threads of this process, or in parts by other processes."""
