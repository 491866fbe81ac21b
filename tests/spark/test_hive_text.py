"""Tables of text in Hive's SerDes, compared with Spark's own Hive tables of the same files."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import windrow
from tests.programs.on_hive import outcome
from tests.support.servers.coordinators import running
from tests.support.spark import quick_spark
from windrow_calls.errors import InvalidArgumentError, ProblemError
from windrow_service.settings import Settings

ROOT = Path(__file__).parents[2]
LAZY = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
OPEN_CSV = "org.apache.hadoop.hive.serde2.OpenCSVSerde"
TYPES = (
    *("int", "bigint", "tinyint", "double", "float", "decimal(8,2)", "string", "boolean", "date"),
    *("timestamp", "binary", "array<int>", "map<string,int>", "struct<a:int,b:string>"),
    "array<struct<a:string,b:array<int>>>",
)
CELLS = (
    *(
        "",
        " ",
        "1",
        "-5",
        "300",
        "1.5",
        "99999999.999",
        "NaN",
        "true",
        "FALSE",
        "x",
        "é",
        "NULL",
        "-",
    ),
    *("\\N", "2026-01-02", "2026-01-02 03:04:05.678", "1582-10-10", "a\\,b", 'q"uo"te', "'single'"),
    *("1\x022", "k\x031\x02l\x032", "7\x02b", "k:1|l:2", "1|2|x", "aGk=", "\\"),
)
COUNT = 400


def drawn(random: Random, number: int) -> dict[str, Any]:
    """Return a table, and the lines of its files."""
    serde = random.choice([LAZY, LAZY, OPEN_CSV])
    more = {
        LAZY: {
            "field.delim": [",", ";", "\t", "1", "|"],
            "collection.delim": ["|", ":"],
            "mapkey.delim": [":"],
            "escape.delim": ["\\"],
            "serialization.null.format": ["NULL", "-", ""],
            "serialization.last.column.takes.rest": ["true"],
            "timestamp.formats": ["yyyy-MM-dd"],
        },
        OPEN_CSV: {"separatorChar": [";", "\t"], "quoteChar": ["'"], "escapeChar": ['"', "|"]},
    }[serde]
    properties = {
        name: random.choice(values) for name, values in more.items() if random.random() < 0.4
    }
    types = TYPES if serde == LAZY else ("string",)
    # Hive's names of columns are in lower case.
    columns = {name: random.choice(types) for name in "dbeac"[: random.randint(1, 5)]}
    sep = properties.get("field.delim", "\x01").replace("1", "\x01")
    sep = sep if serde == LAZY else properties.get("separatorChar", ",")
    quote = properties.get("quoteChar", '"') if serde == OPEN_CSV else ""
    files = []
    for _ in range(random.randint(1, 3)):
        lines = []
        for _ in range(random.randint(0, 6)):
            cells = random.choices(CELLS, k=random.choice([len(columns), len(columns), 0, 2, 6]))
            lines.append(sep.join(quote + c + quote if random.random() < 0.5 else c for c in cells))
        files.append("\n".join(lines) + random.choice(["", "\n", "\r\n"]))
    return {
        "name": f"t{number}",
        "serde": serde,
        "properties": properties,
        "columns": columns,
        "files": files,
    }


@pytest.fixture(scope="module")
def drawn_tables(folder: Path) -> list[dict[str, Any]]:
    """Random tables of text, with their files written."""
    random = Random()
    tables = [drawn(random, number) for number in range(COUNT)]
    for table in tables:
        (folder / table["name"]).mkdir()
        for number, text in enumerate(table["files"]):
            file, content = folder / table["name"] / f"part-{number}", text.encode()
            if number == 2:
                file, content = file.with_suffix(".gz"), gzip.compress(content)
            file.write_bytes(content)
    return tables


@pytest.fixture(scope="module")
def on_hive(folder: Path, drawn_tables: list[dict[str, Any]]) -> tuple[list[Any], dict[str, Any]]:
    """The rows of Spark's Hive tables on the same files, and the results of importing others."""
    (folder / "tables.json").write_text(json.dumps(drawn_tables))
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    quick_spark.set_up(environment, Path(sys.executable).parents[1])
    settings = Settings(state_dir=folder / "others", allowed_locations=(str(folder),))
    with running(settings) as url:
        done = subprocess.run(
            [sys.executable, "-m", "tests.programs.on_hive", str(folder), url],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=900,
        )
    assert done.returncode == 0, done.stderr[-5_000:]
    rows, imported = json.loads(done.stdout.splitlines()[-1])
    return rows, imported


@pytest.mark.nightly
def test_any_text_of_hive_has_the_rows_of_sparks_hive_tables(
    spark: SparkSession,
    client: windrow.Client,
    folder: Path,
    drawn_tables: list[dict[str, Any]],
    on_hive: tuple[list[Any], dict[str, Any]],
) -> None:
    refused = 0
    for number, (table, rows) in enumerate(zip(drawn_tables, on_hive[0], strict=True)):
        client.register_table(
            table["name"],
            str(folder / table["name"]),
            "text",
            columns=table["columns"],
            format_options={"serde": table["serde"], **table["properties"]},
        )
        client.refresh(table["name"])
        assert outcome(client.read(spark, table["name"]), number) == rows, table
        refused += rows == "refused"
    assert refused < len(drawn_tables) / 2


@pytest.mark.nightly
def test_tables_of_a_metastore_have_the_rows_of_sparks_or_are_refused_by_name(
    on_hive: tuple[list[Any], dict[str, Any]],
) -> None:
    _, found = on_hive
    for table, reason in {
        "mixed_": "its partition p=30 is read by org.apache.hadoop.hive.serde2.lazy",
        "sequence_": "SequenceFileInputFormat is not read",
        "view_": "it is a view",
        "widened_": "the columns of its partition p=40 differ from the table's",
        "bad_": "part-0.parquet",
        "hashed_": "2 buckets are left out",
    }.items():
        assert reason in found["first"].pop(f"sales.{table}"), table
    # The others were created without a reason to report.
    assert set(found["first"].values()) == {""}
    assert len(found["unlike"]) == len(found["first"]) + 1
    assert {table: rows for table, rows in found["unlike"].items() if rows} == {}
    assert found["again"] == found["trusting"] == ["failed", "skipped", "unchanged"]
    assert "1 partition added; 1 partition removed" in found["changed"]["sales.orc_"]
    assert found["then"] == []


@pytest.mark.nightly
def test_tables_of_a_metastore_are_accelerated_with_the_rows_of_sparks(
    on_hive: tuple[list[Any], dict[str, Any]],
) -> None:
    assert on_hive[1]["accelerated"] == {}
    reasons = on_hive[1]["serdes"]
    assert reasons.pop("csv_") == reasons.pop("text_") == ""
    assert "names of files differently" in reasons.pop("names")
    assert "SequenceFileInputFormat is not read" in reasons.pop("sequence_")
    assert "import it again" in reasons.pop("altered")
    assert reasons == {}


@pytest.mark.nightly
def test_statements_on_tables_of_a_metastore_leave_the_rows_and_partitions_of_sparks_own_writer(
    on_hive: tuple[list[Any], dict[str, Any]],
) -> None:
    assert on_hive[1]["written"] == {}


@pytest.mark.nightly
def test_a_remote_metastore_is_followed_by_the_job(
    on_hive: tuple[list[Any], dict[str, Any]],
) -> None:
    succeeded, output = on_hive[1]["remote"]
    # A failed table makes the job fail, but the others are imported.
    assert not succeeded
    assert "1 unchanged, 1 failed" in output or "1 failed, 1 unchanged" in output
    assert "part-0.parquet" in output


@pytest.mark.parametrize(
    ("options", "columns", "reason"),
    [
        ({"serde": "JsonSerDe"}, {"a": "int"}, "register format json"),
        ({"serde": "com.example.Serde"}, {"a": "int"}, "give LazySimpleSerDe or OpenCSVSerde"),
        ({"serde": "LazySimpleSerDe", "separatorChar": ","}, {"a": "int"}, "are collection"),
        ({"serde": "OpenCSVSerde", "skip.header.line.count": 1}, {"a": "string"}, "skips lines"),
        ({"serde": "LazySimpleSerDe", "line.delim": ";"}, {"a": "int"}, "divides lines only at"),
        ({"serde": "OpenCSVSerde"}, {"a": "int"}, "gives only strings"),
        ({"serde": "LazySimpleSerDe"}, {"a": "char(3)"}, "cuts or pads"),
    ],
)
def test_tables_that_spark_would_read_differently_from_hive_are_refused_with_the_reason(
    client: windrow.Client,
    folder: Path,
    options: dict[str, Any],
    columns: dict[str, str],
    reason: str,
) -> None:
    with pytest.raises((InvalidArgumentError, ProblemError), match=reason):
        client.register_table(
            "refused", str(folder / "state"), "text", columns=columns, format_options=options
        )


def test_types_that_hive_lacks_are_refused_as_by_spark(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    (folder / "ntz").mkdir()
    client.register_table(
        "ntz",
        str(folder / "ntz"),
        "text",
        columns={"a": "timestamp_ntz"},
        format_options={"serde": "LazySimpleSerDe"},
    )
    client.refresh("ntz")

    with pytest.raises(AnalysisException, match="HiveText datasource doesn't support"):
        client.read(spark, "ntz")
