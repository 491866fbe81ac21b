"""Tables that only Spark's own reader reads, on any release of Spark."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

import windrow
from tests.support.files.avro_files import avro_file
from windrow_spark.errors import FormatUnavailableError

_RECORD = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}
# Format, options, columns, and the content of a file.
_TABLES = {
    "csv": ("csv", {"header": "true"}, "a int, b string", b'a,b\n1,"x,y"\nz\n'),
    "json": ("json", {"mode": "DROPMALFORMED"}, "a int, b array<int>", b'{"a":1,"b":[2]}\n{\n'),
    "text": ("text", {"wholetext": "true"}, "value string", b"x\ny\n"),
    "hive": (
        "text",
        {"serde": "LazySimpleSerDe", "field.delim": ";"},
        "a int, b string",
        b"1;\\N\n",
    ),
    "hive_nested": (
        "text",
        {"serde": "LazySimpleSerDe", "field.delim": ",", "collection.delim": "|"},
        "a array<int>, b map<string,int>, c timestamp",
        b"1|x,k\x032,2026-01-02 03:04:05\n\\N\n",
    ),
    "hive_quoted": (
        "text",
        {"serde": "OpenCSVSerde", "separatorChar": ";"},
        "a string, b string",
        b'"x;1";y\nz\n',
    ),
    "avro": ("avro", {}, "a int", avro_file(_RECORD, [{"a": 7}])),
}
EXPECTED = {
    "csv": "[(1, 'x,y'), (None, None)]",
    "json": "[(1, [2])]",
    "text": "[('x\\ny\\n',)]",
    "hive": "[(1, None)]",
    "hive_nested": "[([1, None], {'k': 2}, datetime.datetime(2026, 1, 2, 3, 4, 5)), "
    "(None, None, None)]",
    "hive_quoted": """[('x;1', 'y'), ('z', None)]""",
    "avro": "[(7,)]",
}


def results(spark: SparkSession, client: windrow.Client, folder: Path) -> dict[str, str]:
    """Return the rows of each table, or the error if this Spark has no reader for it."""
    outcomes = {}
    for name, (format_, options, columns, content) in _TABLES.items():
        location = folder / "formats" / name
        location.mkdir(parents=True)
        (location / "file").write_bytes(content)
        types = dict(column.split(" ") for column in columns.split(", "))
        table = f"formats.{name}"
        client.register_table(table, str(location), format_, columns=types, format_options=options)
        client.refresh(table)
        try:
            outcomes[name] = repr([tuple(row) for row in client.read(spark, table).collect()])
        except FormatUnavailableError as error:
            outcomes[name] = str(error)
    return outcomes
