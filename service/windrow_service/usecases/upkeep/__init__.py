"""Advice on how a table is written, and plans to compact it."""
