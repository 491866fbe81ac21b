"""Spark's daemon of Python workers, with less work for each worker and task.

Workers are forks of the daemon. Spark's own daemon imports as little as it can, so each worker
imports pandas and PyArrow anew: most of the CPU time of a worker that runs only a few short tasks.
Before each task Spark tells Python that modules may have changed, and Python then reads the file
lists of Spark's archives again: most of the CPU time of a short task. These archives never change.
"""

from __future__ import annotations

from importlib import import_module
from zipimport import zipimporter

from pyspark.daemon import manager


def _keep_file_list(archive: zipimporter) -> None:
    """Replace `zipimporter.invalidate_caches`."""


if __name__ == "__main__":
    for name in ("pandas", "pyarrow.parquet", "pyspark.worker"):
        import_module(name)
    setattr(zipimporter, "invalidate_caches", _keep_file_list)  # noqa: B010
    manager()
