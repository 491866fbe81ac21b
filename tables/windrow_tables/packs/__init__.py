"""Packs: the rows of many small files of a table, in one file outside of its folder."""
