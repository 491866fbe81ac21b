"""Files of another format than their table's are told by how they begin."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from tests.support.files.avro_files import avro_file
from tests.unit.inventory.files import take_inline, write
from windrow_core.files.beginnings import kind_of
from windrow_core.files.errors import OtherFormatError, UnreadableFootersError
from windrow_core.files.formats import FORMATS

COLUMNS = pa.schema([("a", pa.int64()), ("b", pa.string())])
ROWS = pa.table({"a": [1, 2], "b": ["x", "y"]}, schema=COLUMNS)


def as_csv(path: Path) -> None:
    path.write_text("1,x\n2,y\n")


def as_json(path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS.to_pylist()))


def as_avro(path: Path) -> None:
    fields = [{"name": "a", "type": "long"}, {"name": "b", "type": "string"}]
    schema = {"type": "record", "name": "r", "fields": fields}
    path.write_bytes(avro_file(schema, ROWS.to_pylist()))


WRITERS: dict[str, Callable[[Path], None]] = {
    "parquet": lambda path: pq.write_table(ROWS, path),
    "orc": lambda path: orc.write_table(ROWS, str(path)),
    "avro": as_avro,
    "csv": as_csv,
    "json": as_json,
}


# Lines of CSV and JSON cannot be told from each other's with certainty, and are text as well.
MISTAKES = [
    (kind, table_format)
    for kind in WRITERS
    for table_format in (*WRITERS, "text")
    if kind != table_format and not {kind, table_format} <= {"csv", "json", "text"}
]


@pytest.mark.parametrize(("kind", "table_format"), MISTAKES)
def test_one_line_says_which_format_the_files_have(
    tmp_path: Path, kind: str, table_format: str
) -> None:
    (tmp_path / "ds=1").mkdir()
    for number in range(12):
        # Without a suffix: what is in the files decides.
        WRITERS[kind](tmp_path / "ds=1" / f"part-{number}")
    declared = COLUMNS if table_format in ("csv", "json") else None

    with pytest.raises(OtherFormatError) as raised:
        take_inline(str(tmp_path), file_format=FORMATS[table_format], columns=declared)

    text = str(raised.value)
    assert "\n" not in text
    assert f"format='{kind}'" in text
    assert f"`--format {kind}`" in text


def test_text_of_no_format_is_said_to_be_text(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("An apple a day\nkeeps the doctor away.\n")

    with pytest.raises(OtherFormatError, match=r"lines of text, not Parquet.*format='text'"):
        take_inline(str(tmp_path))


def test_files_that_are_not_all_alike_are_named_by_what_is_wrong_with_them(tmp_path: Path) -> None:
    write(tmp_path, "good")
    for number in range(20):
        (tmp_path / f"n{number:02d}.csv").write_text("1,2\n")

    with pytest.raises(UnreadableFootersError) as raised:
        take_inline(str(tmp_path))

    text = str(raised.value)
    assert "\n" not in text
    assert text.startswith("cannot read 20 files as Parquet; ")
    assert ": 'n00.csv' and 19 more: " in text


def test_each_reason_has_a_line_with_a_count(tmp_path: Path) -> None:
    write(tmp_path, "good")
    cut = (tmp_path / "good").read_bytes()[:-9] + b"\xff\x00\x00\x00PAR1"
    (tmp_path / "damaged").write_bytes(cut)
    for number in range(3):
        (tmp_path / f"n{number}").write_text("1,2\n")

    with pytest.raises(UnreadableFootersError) as raised:
        take_inline(str(tmp_path))

    first, *others = str(raised.value).splitlines()
    assert first == "cannot read 4 files as Parquet; fix each as described, then refresh again:"
    assert [line.partition(":")[0].strip() for line in others] == [
        "'damaged'",
        "'n0' and 2 more",
    ]


@pytest.mark.parametrize(
    ("path", "head", "kind"),
    [
        ("a.csv", b"h\n1\n", "csv"),
        ("a.csv.gz", gzip.compress(b"h\n1\n", mtime=0), "csv"),
        ("a", gzip.compress(b'{"a": 1}\n', mtime=0), "json"),
        ("a.json", b"[\n1]", "json"),
        ("a", b"a;b\n1;2\n", "csv"),
        ("a", b"a\tb\n1\t2\n", "csv"),
        ("a", b"a,b\n1;2\n", "text"),
        ("a", b'{"cut off', "text"),
        ("a", "ä,ö\n".encode("latin-1"), None),
        ("a.csv", "ä,ö\n".encode("latin-1"), "csv"),
        ("a", b"\0\1\2", None),
        ("a", b"", None),
        ("a", b"\x1f\x8bnot gzip", None),
    ],
)
def test_a_format_is_told_by_content_then_by_suffix(
    path: str, head: bytes, kind: str | None
) -> None:
    assert kind_of(path, head) == kind
