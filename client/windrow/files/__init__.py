"""Data files: which lie in a folder, and what their footers say.

Coordinators and Spark jobs share it. It needs NumPy and pyarrow alone, and travels by value to
executors, which need not have Windrow: so no `lru_cache` here, and no import from elsewhere.
"""
