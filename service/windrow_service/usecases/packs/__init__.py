"""Packs of tables: planned, published, used in place of the files they are made of, and removed."""
