"""Spark's daemon of Python workers, with the imports of nearly every worker done.

Workers are forks of the daemon. Spark's own daemon imports as little as it can, so each worker
imports pandas and PyArrow anew: most of the CPU time of a worker that runs only a few short tasks.
"""

from __future__ import annotations

from importlib import import_module

from pyspark.daemon import manager

if __name__ == "__main__":
    for name in ("pandas", "pyarrow.parquet", "pyspark.worker"):
        import_module(name)
    manager()
