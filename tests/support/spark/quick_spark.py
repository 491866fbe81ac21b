"""Faster start of the tests' JVMs and Python workers, most of which run only for seconds.

    python -m tests.support.spark.quick_spark

writes an archive of the classes that this interpreter's Spark loads into its virtual environment. A
JVM that finds it starts with half the CPU time; a JVM of another Spark or Java, or without the
archive, starts as usual.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, MutableMapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_THIS_SPARK = Path(sys.prefix)
# Few JVMs run long enough for the optimising compiler to pay, and none should use both cores. Without
# that compiler the default code cache is small: a session that generates classes for thousands of
# queries would spend an eighth of its time on evicting code and compiling it again.
# Without room for Spark's classes, the whole heap is collected each time they outgrow it.
_LIGHT = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m -XX:MetaspaceSize=256m"
)
# Classes need no verification: they come from Spark's build or its own compiler.
BRIEF = f"{_LIGHT} -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"

# Compiling a query takes Spark longer than interpreting it on the few rows of a test.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}

_ROOT = str(Path(__file__).parents[3])
_OF_JVMS = {
    # Otherwise each sort clears up to 64 MB for a few rows: a tenth of the time went into collections.
    "spark.buffer.pageSize": "1m",
    "spark.python.daemon.module": "tests.support.spark.worker_daemon",
    # Executors run in folders of their own.
    "spark.executorEnv.PYTHONPATH": _ROOT,
}


def jvm_options(spark: Path = _THIS_SPARK) -> str:
    """Return the options for JVMs of the Spark in a virtual environment."""
    classes = _classes(spark)
    if not classes.exists():
        return BRIEF
    return f"{BRIEF} -XX:SharedArchiveFile={classes} -Xlog:cds=off"


def set_up(environment: MutableMapping[str, str], spark: Path = _THIS_SPARK) -> None:
    """Make drivers, masters and workers in this environment start and run short jobs faster.

    Args:
        environment: Environment of the processes.
        spark: Virtual environment that holds their Spark.
    """
    # Not as a file of settings: the archive is of no use to a JVM with another SPARK_CONF_DIR.
    settings = (f"-D{name}={value}" for name, value in {**INTERPRETED, **_OF_JVMS}.items())
    environment["SPARK_SUBMIT_OPTS"] = " ".join([jvm_options(spark), *settings])
    environment["SPARK_DAEMON_JAVA_OPTS"] = jvm_options(spark)
    environment["SPARK_LAUNCHER_OPTS"] = _LIGHT
    # Servers of Spark Connect pass only the paths of their own environment to workers.
    paths = environment.get("PYTHONPATH", "").split(os.pathsep)
    if _ROOT not in paths:
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [*paths, _ROOT]))


def remember_classes() -> None:
    """Ask the JVM for each class and package once.

    Py4J asks again at each use, and for a package the JVM searches all archives of Spark: that took
    an eighth of its CPU time.
    """
    from py4j.java_gateway import JavaClass, JavaPackage, JVMView

    for kind in (JVMView, JavaPackage):
        kind.__getattr__ = _remembering(kind.__getattr__, (JavaClass, JavaPackage))


def _remembering(look_up: Callable[[Any, str], Any], kinds: tuple[type, ...]) -> Any:
    def get(self: Any, name: str) -> Any:
        # By `vars`, since an attribute that is not found in the usual way calls `get` again.
        its = vars(self)
        memory = vars(its["_gateway_client"]).setdefault("known", {})
        key = its.get("_fqn"), name
        if key not in memory:
            answer = look_up(self, name)
            if not isinstance(answer, kinds):
                return answer
            memory[key] = answer
        return memory[key]

    return get


@cache
def java_object(spark: SparkSession, name: str) -> Any:
    """Return an object of a class whose source is beside this module."""
    jvm: Any = spark.sparkContext._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
    compiler.cook(Path(__file__).with_name(f"{name}.java").read_text(encoding="utf-8"))
    return compiler.getClassLoader().loadClass(name).newInstance()


def _classes(spark: Path) -> Path:
    return spark / "spark.jsa"


def main() -> None:
    """Do a little of everything that tests do, and archive the classes loaded for it."""
    from pyspark.sql import SparkSession

    classes = _classes(_THIS_SPARK)
    classes.unlink(missing_ok=True)
    os.environ["SPARK_SUBMIT_OPTS"] = f"{_LIGHT} -XX:ArchiveClassesAtExit={classes} -Xlog:cds=off"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[1]")
    for name, value in {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")

    def same(batches: Iterator[Any]) -> Iterator[Any]:
        return batches

    with tempfile.TemporaryDirectory() as folder:
        rows = spark.range(100).selectExpr("id", "string(id) AS name", "id % 2 AS p")
        rows.repartition(2, "p").write.partitionBy("p").parquet(f"{folder}/rows")
        copy = spark.read.parquet(f"{folder}/rows")
        copy.mapInArrow(same, copy.schema).where("p = 1").groupBy("p").count().collect()
        rows.rdd.map(len).collect()
    spark.stop()
    jvm = spark.sparkContext._gateway.proc
    # The JVM ends when its input is closed, and then writes the archive.
    jvm.stdin.close()
    jvm.wait()


if __name__ == "__main__":
    main()
