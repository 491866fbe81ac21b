"""Rows erased from tables, without Spark: found by several processes, committed like any change."""
