"""Data files: lists folders, and reads footers.

Coordinators and Spark jobs share this package. It needs only NumPy and pyarrow, and is pickled by
value for executors, which need not have Windrow: so it uses no `lru_cache`, and imports no other
part of Windrow.
"""
