"""Streams: micro-batches of Spark's queries, written to tables and read from them."""
