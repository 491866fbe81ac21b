"""The law of erasures: no byte of ours has a removed value, and every other row is as it was."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from tests.support.servers import embedded
from tests.support.tables.traces import traces_of
from windrow.client import Client
from windrow_core.models.erasures import ErasureReceipt
from windrow_tables.merging.files import as_bits

PERSONS = st.integers(1, 12)
KINDS = ("text", "number", "nested", "list")
PATHS = {"text": "text", "number": "number", "nested": "payload.user.id", "list": "ids"}


def text_of(person: int) -> str:
    """Return a text that occurs nowhere by chance."""
    return f"person-{random.Random(person).getrandbits(64):016x}"


def number_of(person: int) -> int:
    """Return the same as a number."""
    return random.Random(-person).getrandbits(61) | 1 << 60


def rows_of(persons: list[int | None], *, nans: bool) -> pa.Table:
    """Return rows of some persons, in all columns; None is a row of nobody."""
    texts = [None if one is None else text_of(one) for one in persons]
    numbers = [None if one is None else number_of(one) for one in persons]
    return pa.table(
        {
            "text": pa.array(texts, pa.string()),
            "number": pa.array(numbers, pa.int64()),
            "payload": pa.array(
                [{"user": {"id": one, "also": [one]}} for one in texts],
                pa.struct(
                    [("user", pa.struct([("id", pa.string()), ("also", pa.list_(pa.string()))]))]
                ),
            ),
            "ids": pa.array([[one] if one else None for one in texts], pa.list_(pa.string())),
            "shade": pa.array(texts, pa.string()).dictionary_encode(),
            "score": pa.array(
                [float("nan") if nans else one for one in range(len(persons))], pa.float64()
            ),
        }
    )


@st.composite
def tables(draw: st.DrawFn) -> dict[str, tuple[pa.Table, dict[str, Any]]]:
    """Return the files of a table by path, with options of their writers."""
    files = {}
    for number in range(draw(st.integers(1, 8))):
        persons = draw(st.lists(st.one_of(PERSONS, st.none()), min_size=1, max_size=8))
        folder = draw(st.sampled_from(["", "", "p=a/", "p=b/"])) if number else "p=a/"
        options = {
            "compression": draw(st.sampled_from(["none", "snappy", "zstd", "gzip"])),
            "use_dictionary": draw(st.booleans()),
            "write_statistics": draw(st.booleans()),
            "row_group_size": draw(st.sampled_from([2, 100])),
            "write_page_index": draw(st.booleans()),
        }
        folder = folder or "p=c/"
        files[f"{folder}{number}.parquet"] = rows_of(persons, nans=draw(st.booleans())), options
    return files


@pytest.fixture(scope="module")
def place() -> Any:
    """A folder with the state of a coordinator and a table, and a client."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with embedded.client(folder / "state", [name]) as client:
            yield folder, client


def bits(rows: pa.Table) -> Counter[str]:
    """Return rows that are equal only if all their bits are."""
    return Counter(map(repr, as_bits(rows.drop_columns(["shade"])).to_pylist()))


def stored(folder: Path) -> pa.Table:
    """Return the rows of all files."""
    paths = sorted(path for path in folder.rglob("*.parquet") if "_windrow" not in path.parts)
    return pa.concat_tables(
        [pq.read_table(path, partitioning=None) for path in paths] or [rows_of([], nans=False)]
    )


@examples(24, deadline=None)
@given(
    files=tables(),
    kind=st.sampled_from((*KINDS, "condition")),
    gone=st.sets(PERSONS, min_size=1, max_size=4),
    refreshed=st.booleans(),
    planned=st.booleans(),
)
def test_after_the_receipt_no_byte_has_a_removed_value(
    place: tuple[Path, Client],
    files: dict[str, tuple[pa.Table, dict[str, Any]]],
    kind: str,
    gone: set[int],
    refreshed: bool,
    planned: bool,
) -> None:
    folder, client = place
    table = folder / "table"
    shutil.rmtree(table, ignore_errors=True)
    for path, (rows, options) in files.items():
        (table / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, table / path, **options)
    texts, numbers = {text_of(one) for one in gone}, {number_of(one) for one in gone}
    client.register_table("s.t", str(table), bloom_columns=["text"])
    try:
        if refreshed:
            client.refresh("s.t")
        if refreshed and planned:
            client.plan("s.t", filter={"op": "in", "column": "text", "values": sorted(texts)})
        before = stored(table)
        if kind == "condition":
            one = text_of(min(gone))
            texts, numbers = {one}, {number_of(min(gone))}
            erasure = client.erase("s.t", where=f"text = '{one}' AND p <> 'z'")
        else:
            keys = sorted(numbers if kind == "number" else texts)
            erasure = client.erase("s.t", key=PATHS[kind], values=keys)

        assert isinstance(erasure.receipt, ErasureReceipt)
        assert client.verify_receipt(erasure.receipt)
        left = [text not in texts for text in before["text"].to_pylist()]
        assert bits(stored(table)) == bits(before.filter(pa.array(left)))
        assert erasure.rows_removed == left.count(False)
        assert traces_of([*texts, *numbers], table, folder / "state") == []
        scan = client.scan("s.t", columns=["number"]).to_table() if any(left) else None
        assert scan is None or len(scan) == left.count(True)
    finally:
        client.delete_table("s.t")
