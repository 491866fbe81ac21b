"""Folders of Hive's transactional (ACID) tables: their names, and which of them are read."""
