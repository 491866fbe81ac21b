"""Suites of Spark's own tests, on tables that Windrow plans.

`python -m tests.programs.judged_suites JARS FOLDER MODE SUITE [PART]`

MODE is `plain`, `reads`, `packs` or `writes`: Spark alone, with accelerated reads, with packs of all
Parquet tables as they are registered, and with accelerated writes. PART is a pattern of the names of golden files that are run. Each location that a query reads is
registered when the optimizer first asks for it. Prints a line of JSON for each test: its suite, name
and outcome, the scans and writes that Windrow planned, and why it left others to Spark.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
import time
import traceback
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import ensure_callback_server_started, launch_gateway
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructType

import windrow
from tests.support.servers import embedded
from tests.support.tables.packs import pack_some, packs_for_few_files
from windrow.spark import recent_scans
from windrow_core.models import TableInfo
from windrow_core.models.format_options import checked_format_options
from windrow_spark.acceleration import accelerating
from windrow_spark.acceleration.decisions import Decisions
from windrow_spark.acceleration.refused import NotTheSameError
from windrow_spark.acceleration.requests import Columns, Place
from windrow_spark.catalog.importing import import_tables

_PACKAGES = (
    "java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util "
    "java.util.concurrent java.util.concurrent.atomic jdk.internal.ref sun.nio.ch sun.nio.cs "
    "sun.security.action sun.util.calendar"
)
_FORMATS = {
    "ParquetFileFormat": "parquet",
    "OrcFileFormat": "orc",
    "CSVFileFormat": "csv",
    "JsonFileFormat": "json",
    "TextFileFormat": "text",
    "AvroFileFormat": "avro",
}
_RUNNER = Path(__file__).parents[1] / "judges" / "SuiteRun.java"
# What only sources of Spark's own tests look at.
_OF_TESTS = ("dataSchema", "dataschema")
_CHANGING = re.compile(r"'[^']*'|/\S+|file:\S+|\bt\.\w+|\d+")


class Judged(Decisions):
    """Decisions that register what queries ask for, and count for the test that runs."""

    alone: ClassVar[Path]
    client: ClassVar[windrow.Client]
    counts: ClassVar[Counter[str]]
    reasons: ClassVar[Counter[str]]
    targets: ClassVar[dict[str, str]]
    with_packs: ClassVar[bool] = False

    def table_of(self, request: Place) -> TableInfo:
        """Return the table of a request, which is registered unless this test has done so."""
        for name in _OF_TESTS:
            request.options.pop(name, None)
        if not request.in_catalog and os.path.isfile(_location(request)):
            request = replace(request, path=str(self._alone(Path(_location(request)))))
        target = request.table if request.in_catalog else request.path
        # One location may be read, or made anew, with other columns or in another format.
        data = request.data if isinstance(request, Columns) else ""
        traits = f"{data}{request.format}{request.options}"
        if self.targets.get(target) != traits:
            try:
                self._register(request)
            except NotTheSameError:
                raise
            except Exception as error:
                traceback.print_exc()
                line = str(error).partition("\n")[0]
                raise NotTheSameError(f"cannot be registered: {line}") from error
            self.targets[target] = traits
            self._registered.renew()
        return super().table_of(request)

    def _alone(self, file: Path) -> Path:
        """Return a folder with a copy of a file alone: tables are folders."""
        status = file.stat()
        folder = self.alone / f"{status.st_ino}-{status.st_mtime_ns}-{status.st_size}"
        if not folder.exists():
            folder.mkdir(parents=True)
            shutil.copy2(file, folder / file.name.lstrip("._"))
        return folder

    def note(self, target: str, table: str | None, reason: str) -> None:
        """Count a decision."""
        super().note(target, table, reason)
        kind = "write" if target.startswith("INSERT ") else "scan"
        if table:
            self.counts[kind] += 1
        else:
            self.reasons[f"{kind}: {_CHANGING.sub('…', reason)[:160]}"] += 1

    def _register(self, request: Place) -> None:
        if request.in_catalog or request.format.endswith("$HiveFiles"):
            (done,) = import_tables(self._spark, self.client, [request.table], refresh="all")
            if done.reason:
                raise NotTheSameError(done.reason)
            self._pack(done.name)
            return
        name = request.format.rpartition(".")[2].rpartition("$")[2]
        location = _location(request)
        if name not in _FORMATS or not os.path.isdir(location):
            raise NotTheSameError(f"no folder of a format that is registered: {name}")
        options: dict[str, Any] = {}
        if isinstance(request, Columns):
            if '"type":"udt"' in request.data:
                raise NotTheSameError("a column has a user-defined type")
            partition = _types(request.partition_schema)
            columns = {c: t for c, t in _types(request.data).items() if c not in partition}
            options = {"columns": columns, "partition_columns": partition or None}
            options["format_options"] = _known(_FORMATS[name], request.options)
        table = "t.t" + hashlib.md5(location.encode(), usedforsecurity=False).hexdigest()[:12]
        self.client.register_table(table, location, _FORMATS[name], replace=True, **options)
        self.client.refresh(table)
        self._pack(table)

    def _pack(self, table: str) -> None:
        if self.with_packs:
            pack_some(self.client, table)


def _location(request: Place) -> str:
    return re.sub("^file:/*", "/", request.path)


def _known(format: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a read that a registration may have."""
    texts: dict[str, str] = {}
    for name, value in options.items():
        with suppress(ValueError):
            texts |= checked_format_options(format, {name: value})
    return texts


def _types(schema: str) -> dict[str, str]:
    fields = StructType.fromJson(json.loads(schema))
    types: dict[str, DataType] = {field.name: field.dataType for field in fields}
    return {name: type_.simpleString() for name, type_ in types.items()}


class Listener:
    """Switches acceleration on for the session of a suite, and prints what its tests do."""

    def __init__(self, gateway: Any, suite: Any, mode: str) -> None:
        self._gateway, self._suite, self._mode = gateway, suite, mode
        self._context: Any = None
        self._packs_before: set[str] = set()
        self.began_s = 0.0

    def apply(self, event: Any) -> None:
        """Take an event, as `SuiteRun.java` tells it."""
        kind, test, error = (str(part) for part in event)
        if kind == "starting":
            try:
                self._start()
                return
            # ScalaTest takes no notice of what its reporters throw.
            except Exception:
                kind, error = "aborted", traceback.format_exc()
        if scans := _scans_of_packs() - self._packs_before:
            Judged.counts["scan of packs"] = len(scans)
        report = {
            "test": test,
            "outcome": kind,
            "seconds": round(time.monotonic() - self.began_s, 1),
            "planned": Judged.counts,
            "left": Judged.reasons,
            "error": error[:4000],
        }
        sys.stdout.write(json.dumps(report) + "\n")
        sys.stdout.flush()

    def _start(self) -> None:
        self.began_s = time.monotonic()
        Judged.counts, Judged.reasons, Judged.targets = Counter(), Counter(), {}
        self._packs_before = _scans_of_packs()
        session = self._session()
        # Windrow leaves queries to Spark that find columns by ids, and Spark's tests ask for that.
        session.conf().set("spark.sql.parquet.fieldId.read.enabled", "false")
        if self._mode != "plain" and (
            self._context is None or not self._context.equals(session.sparkContext())
        ):
            self._context = session.sparkContext()
            self._accelerate(session)

    def _session(self) -> Any:
        try:
            return self._suite.spark()
        except Py4JError:
            # Suites of golden files use one that all of Hive's suites share. They cache tables.
            hive = self._gateway.jvm.org.apache.spark.sql.hive.test.TestHive
            hive.setCacheTables(False)
            return hive.sparkSession()

    def _accelerate(self, session: Any) -> None:
        jvm = self._gateway.jvm
        context = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(self._context)
        SparkContext._active_spark_context = None
        spark = SparkSession(
            SparkContext(
                jsc=context, gateway=self._gateway, conf=SparkConf(_jconf=context.getConf())
            ),
            session,
        )
        windrow.accelerate(
            spark,
            Judged.client,
            tables="*",
            max_staleness=0,
            wait_s=60,
            writes=self._mode == "writes",
        )

    class Java:
        implements = ("java.util.function.Function",)


def _scans_of_packs() -> set[str]:
    return {scan.plan.plan_id for scan in recent_scans() if scan.packed_files}


def _gateway(jars: Path, folder: Path) -> Any:
    opens = " ".join(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _PACKAGES.split())
    temporary = folder / "tmp"
    temporary.mkdir(parents=True)
    classes = ":".join([*map(str, sorted(jars.glob("classes/*"))), f"{jars}/jars/*"])
    options = (
        f"-Dspark.testing=true -Dspark.test.home={jars}/home -Djava.io.tmpdir={temporary} "
        # As in sessions of PySpark: jars are those of all sessions.
        "-Dspark.sql.artifact.isolation.enabled=false "
        "-Dspark.ui.enabled=false -Dspark.memory.debugFill=false -Dderby.system.durability=test "
        f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=400m {opens}"
    )
    os.environ.update(SPARK_TESTING="1", SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        f"--driver-memory 2g --conf spark.driver.extraClassPath={classes} "
        f"--driver-java-options '{options}' pyspark-shell"
    )
    # Hive's suites write there which tests have passed.
    (folder / "target").mkdir()
    os.chdir(folder)
    gateway = launch_gateway()
    SparkContext._ensure_initialized(gateway=gateway)
    ensure_callback_server_started(gateway)
    return gateway


def run(jars: Path, folder: Path, mode: str, name: str, part: str = "") -> None:
    """Run a suite, and print what comes of each of its tests.

    Args:
        jars: The folder of Spark's tests.
        folder: Where files lie.
        mode: The mode.
        name: The suite's class.
        part: Which tests of a suite of golden files, as a pattern of their names; all by default.
    """
    gateway = _gateway(jars, folder)
    loader = gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()
    compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    compiler.setTargetVersion(8)
    compiler.cook(_RUNNER.read_text(encoding="utf-8"))
    runner = compiler.getClassLoader().loadClass("SuiteRun").newInstance()
    vars(accelerating)["Decisions"] = Judged
    Judged.with_packs = mode == "packs"
    with (
        packs_for_few_files(),
        embedded.client(folder / "state", allowed_locations=["/"]) as client,
    ):
        Judged.client, Judged.alone = client, folder / "alone"
        suite = loader.loadClass(name).newInstance()
        if part:
            names = str(suite.includeList().mkString(",")).split(",")
            ours = ",".join(one for one in names if re.fullmatch(part, one))
            gateway.jvm.java.lang.System.setProperty("spark.hive.includelist", ours)
            suite = loader.loadClass(name).newInstance()
        runner.run(suite, Listener(gateway, suite, mode))
    gateway.shutdown()


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
