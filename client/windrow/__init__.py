"""Windrow: split grouping plans for tables of many small files, read on Spark."""
