"""Virtual environments with older releases of Spark, for subprocesses.

    python -m tests.support.spark.older_spark

creates them, unless they exist. They share everything except Spark with the environment that runs
this.
"""

from __future__ import annotations

from tests.support.processes.environments import python_with

# The last release of each line that is supported besides the newest.
OLDEST = "3.5.9"
OTHERS = ("4.0.5", "4.1.4", "4.2.1")


def python_with_spark(version: str) -> str:
    """Return the interpreter of an environment, which is created on first use and then kept.

    Args:
        version: Version of Spark.
    """
    # Spark's dependencies are shared; only Spark 3.5 also needs distutils, which setuptools provides
    # on Python 3.12 and later.
    packages = [f"pyspark=={version}", *(["setuptools<81"] if version == OLDEST else [])]
    name = f".venv-spark{''.join(version.split('.')[:2])}"
    return python_with(packages, name, f".installed-{version}", "--no-deps")


if __name__ == "__main__":
    for version in (OLDEST, *OTHERS):
        python_with_spark(version)
