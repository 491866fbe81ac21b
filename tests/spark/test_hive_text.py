"""Tables of text in Hive's SerDes, compared with Spark's own Hive tables of the same files."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import windrow
from tests.support import quick_spark
from tests.support.laws import is_nightly
from tests.support.on_hive import outcome
from windrow.errors import InvalidArgumentError, ProblemError

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
COUNT = 400 if is_nightly() else 24


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
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hive")


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[windrow.Client]:
    with windrow.embedded(folder / "state", allowed_locations=[str(folder)]) as client:
        yield client


def test_any_text_of_hive_has_the_rows_of_sparks_hive_tables(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    random = Random() if is_nightly() else Random(7)
    tables = [drawn(random, number) for number in range(COUNT)]
    for table in tables:
        (folder / table["name"]).mkdir()
        for number, text in enumerate(table["files"]):
            file, content = folder / table["name"] / f"part-{number}", text.encode()
            if number == 2:
                file, content = file.with_suffix(".gz"), gzip.compress(content)
            file.write_bytes(content)
    (folder / "tables.json").write_text(json.dumps(tables))
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    quick_spark.set_up(environment, Path(sys.executable).parents[1])
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.on_hive", str(folder)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-5_000:]
    expected = json.loads(done.stdout.splitlines()[-1])

    refused = 0
    for number, (table, rows) in enumerate(zip(tables, expected, strict=True)):
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
    assert refused < len(tables) / 2


@pytest.mark.parametrize(
    ("options", "columns", "said"),
    [
        ({"serde": "JsonSerDe"}, {"a": "int"}, "register format json"),
        ({"serde": "com.example.Serde"}, {"a": "int"}, "give LazySimpleSerDe or OpenCSVSerde"),
        ({"serde": "LazySimpleSerDe", "separatorChar": ","}, {"a": "int"}, "known are collection"),
        ({"serde": "OpenCSVSerde", "skip.header.line.count": 1}, {"a": "string"}, "skips lines"),
        ({"serde": "LazySimpleSerDe", "line.delim": ";"}, {"a": "int"}, "at .* alone"),
        ({"serde": "OpenCSVSerde"}, {"a": "int"}, "gives strings alone"),
        ({"serde": "LazySimpleSerDe"}, {"a": "char(3)"}, "cuts or pads"),
    ],
)
def test_what_spark_would_read_otherwise_than_hive_is_refused_by_name(
    client: windrow.Client,
    folder: Path,
    options: dict[str, Any],
    columns: dict[str, str],
    said: str,
) -> None:
    with pytest.raises((InvalidArgumentError, ProblemError), match=said):
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
