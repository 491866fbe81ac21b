"""Rows that are erased from tables, with proof."""
