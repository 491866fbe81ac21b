"""Compile all Java files with the newest and the oldest Spark, as drivers do at first use.

    python -m tests.support.spark.java_sources

takes two seconds for each that is installed. The compiler, Janino, is in Spark's own jars: a JVM
is enough.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from windrow_spark.compiling import source_text
from windrow_spark.relation.java_classes import base_classes
from windrow_spark.sql.registering import PARENT

_ROOT = Path(__file__).parents[3]
_ENVIRONMENTS = (".venv", ".venv-spark35")
# What Spark has had from 4 on.
_FROM_SPARK_4 = ("UnresolvedDataSource", "ProcedureCatalog")
# As drivers compile: interfaces may have static methods.
_TARGET = "-Dorg.codehaus.janino.UnitCompiler.defaultTargetVersion=8"
_COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"


def sources(jars: Path) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each Java file, as the Spark of a folder compiles it."""
    (scala,) = (jar.stem.removeprefix("scala-library-") for jar in jars.glob("scala-library-*"))
    for folder in ("spark", "spark_jobs"):
        for path in sorted(_ROOT.joinpath(folder).rglob("*.java")):
            template = path.read_text(encoding="utf-8")
            is_old = scala.startswith("2.12")
            if is_old and any(name in template for name in _FROM_SPARK_4):
                continue
            if "extends BASE" not in template:
                words = {PARENT: "Object" if is_old else "Procedures"}
                yield str(path.relative_to(_ROOT)), source_text(template, scala, words)
                continue
            for name, base in base_classes().items():
                # Spark 3.5 has its reader of Avro in a package of its own.
                if ".avro." in base and not any(jars.glob("spark-avro*")):
                    continue
                text = source_text(template, scala, {"NAME": name, "BASE": base})
                yield str(path.relative_to(_ROOT).with_name(f"{name}.java")), text


def compilation(java: str, jars: Path) -> subprocess.CompletedProcess[str]:
    """Compile all Java files with the Spark of a folder; print how many there are."""
    files = dict(sources(jars))
    (spark,) = (jar.stem for jar in jars.glob("spark-core_*"))
    sys.stdout.write(f"Compiling {len(files)} Java files with {spark}\n")
    with TemporaryDirectory() as folder:
        for path, text in files.items():
            target = Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        command = [
            java,
            "-XX:TieredStopAtLevel=1",
            _TARGET,
            "-cp",
            f"{jars}/*",
            _COMPILER,
            "-d",
            "out",
        ]
        classpath = os.pathsep.join(map(str, jars.glob("*.jar")))
        return subprocess.run(
            [*command, "-classpath", classpath, *files],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )


def main() -> int:
    """Return 1 if a file cannot be compiled."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(f"{home}/bin/java" if home else "java")
    if java is None:
        sys.stdout.write("No Java was found: the Java files were not compiled\n")
        return 0
    for folder in _ENVIRONMENTS:
        for jars in _ROOT.glob(f"{folder}/lib/python*/site-packages/pyspark/jars"):
            outcome = compilation(java, jars)
            if outcome.returncode:
                sys.stderr.write(outcome.stderr or outcome.stdout)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
