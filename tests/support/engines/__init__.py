"""Engines other than Spark, which read tables through the coordinator's catalog."""
