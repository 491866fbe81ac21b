"""Metadata that was edited at random: a refusal that names the table or the file, or a snapshot.

Footers of Parquet files have a law of their own: see `test_edited_footers.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from random import Random

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.transforms import BucketTransform, IdentityTransform

from tests.faults.test_footer_bombs import MOST_BYTES, peak_bytes
from tests.support.engines.delta_tables import with_vectors
from tests.support.files.random_edits import edit_at_random
from tests.support.laws import is_nightly
from tests.support.tables.acid_tables import AcidTable
from tests.support.tables.iceberg import new_table
from tests.support.tables.iceberg_deletes import delete_positions
from tests.support.tables.peers import found_by_delta_rs
from windrow_core.files.acid.write_ids import WriteIds
from windrow_core.files.errors import (
    DuplicateColumnError,
    InventoryError,
    SchemaConflictError,
    UnreadableTypeError,
)
from windrow_core.files.formats import FORMATS, ORC
from windrow_service.delta.inventory import take_version
from windrow_service.delta.reading import LoggedTable
from windrow_service.iceberg.inventory import take_iceberg
from windrow_service.inventory.build import take_inventory
from windrow_service.inventory.errors import TotalsTooLargeError
from windrow_service.inventory.footers.isolation import IsolatedExecutor
from windrow_service.inventory.listing.acid_files import Transactional
from windrow_service.inventory.look import Inventory, Look
from windrow_service.inventory.progress import ProgressMeter
from windrow_service.usecases.snapshots.next_snapshot import next_after_inventory

_COUNT = 6
_ROWS = pa.table(
    {
        "id": range(_COUNT),
        "region": [f"r{n % 2}" for n in range(_COUNT)],
        "tags": [[n, None] if n % 2 else [] for n in range(_COUNT)],
        "inner": [{"a": n, "b": {"c": str(n)}} for n in range(_COUNT)],
        "at": pa.array(range(_COUNT), pa.timestamp("us", "UTC")),
        "price": pa.array(range(_COUNT), pa.decimal128(12, 2)),
    }
)
# They name the column, or the total.
_ABOUT_COLUMNS = (
    DuplicateColumnError,
    SchemaConflictError,
    TotalsTooLargeError,
    UnreadableTypeError,
)


@dataclass(frozen=True, slots=True)
class Told:
    """A table with metadata.

    Attributes:
        location: Its folder.
        edited: The files of metadata, one of which is edited.
        suffix: How names of their format end, if theirs do not.
        take: Takes the inventory as a refresh does.
        good: A file that is not edited, if it has a number of rows of its own.
        theirs: The files as another reader of such metadata finds them; None if it refuses the
            table, or there is none.
    """

    location: Path
    edited: list[Path]
    take: Callable[[IsolatedExecutor], Inventory]
    suffix: str = ""
    good: str = ""
    theirs: Callable[[], set[str] | None] = lambda: None


def _avro(folder: Path) -> Told:
    fields = [
        {"name": "id", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9}},
        {"name": "tags", "type": ["null", {"type": "array", "items": ["null", "int"]}]},
        {"name": "by_name", "type": {"type": "map", "values": "string"}},
        {"name": "kind", "type": {"type": "enum", "name": "k", "symbols": ["a", "b"]}},
        {"name": "sum", "type": {"type": "fixed", "name": "f", "size": 4}},
    ]
    schema = {"type": "record", "name": "row", "fields": fields}
    row = {"id": 1, "price": b"\x01", "tags": [1, None], "by_name": {"x": "y"}, "kind": "a"}
    for name in ("edited.avro", "good.avro"):
        with (folder / name).open("wb") as file:
            fastavro.writer(file, schema, [{**row, "sum": b"abcd"}])
    return Told(
        folder,
        [folder / "edited.avro"],
        lambda executor: take_inventory(
            Look(location=str(folder), file_format=FORMATS["avro"]), executor=executor
        ),
    )


def _orc(folder: Path) -> Told:
    for name in ("edited.orc", "good.orc"):
        orc.write_table(_ROWS, folder / name, stripe_size=100)
    return Told(
        folder,
        [folder / "edited.orc"],
        lambda executor: take_inventory(
            Look(location=str(folder), file_format=ORC), executor=executor
        ),
        good="good.orc",
    )


def _delta(folder: Path) -> Told:
    rows = _ROWS.drop_columns(["tags"])
    write_deltalake(folder, rows, partition_by=["region"])
    write_deltalake(folder, rows, mode="append")
    DeltaTable(folder).create_checkpoint()
    write_deltalake(folder, rows, mode="append")
    DeltaTable(folder).delete("region = 'r1'")
    return _of_delta(folder)


def _vectors(folder: Path) -> Told:
    with_vectors(folder)
    return _of_delta(folder)


def _of_delta(folder: Path) -> Told:
    table = LoggedTable(location=str(folder))
    return Told(
        folder,
        sorted((folder / "_delta_log").iterdir()),
        lambda executor: take_version(table, None, None, ProgressMeter(), executor),
        theirs=partial(found_by_delta_rs, str(folder)),
    )


def _iceberg(folder: Path) -> Told:
    rows = _ROWS.drop_columns(["tags"])
    table, location = new_table(folder, rows.schema, **{"format-version": "2"})
    with table.update_spec() as spec:
        spec.add_field("region", IdentityTransform(), "r")
        spec.add_field("id", BucketTransform(3), "b")
    table.append(rows)
    table.append(rows)
    data = next(iter(table.inspect.files()["file_path"].to_pylist()))
    delete_positions(table, {data: [0]})
    table.refresh()
    newest = Path(table.metadata_location.removeprefix("file://"))
    options = {"metadata": str(newest)}
    return Told(
        Path(location),
        [newest, *sorted(Path(location).glob("metadata/*.avro"))],
        lambda executor: take_iceberg(location, options=options, executor=executor),
    )


def _acid(folder: Path) -> Told:
    table = AcidTable(folder, ["ds=1/"], 2)
    for _ in range(3):
        table.insert(table.begin(), 0, [("ds=1/", 0, 2), ("ds=1/", 1, 1)])
    rows = table.alive("ds=1/", table.now())
    table.delete(table.begin(), 0, rows[:2])
    table.compact("ds=1/", major=False)
    ids = WriteIds.parse(table.now().text)
    transactional = Transactional(names_rows=True, ids=ids)
    return Told(
        folder,
        sorted(path for path in folder.rglob("*") if path.is_file()),
        lambda executor: take_inventory(
            Look(location=str(folder), file_format=ORC, folders=transactional),
            executor=executor,
        ),
        ".orc",
    )


_KINDS = {
    "avro": _avro,
    "orc": _orc,
    "delta": _delta,
    "vectors": _vectors,
    "iceberg": _iceberg,
    "acid": _acid,
}


@pytest.fixture(scope="module", params=_KINDS)
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Told:
    return _KINDS[request.param](tmp_path_factory.mktemp("t"))


@pytest.fixture(scope="module")
def executor() -> Iterator[IsolatedExecutor]:
    with IsolatedExecutor(1) as executor:
        yield executor


@contextmanager
def _edited(told: Told, seed: int) -> Iterator[Path]:
    """Edit a file until the end of the block."""
    random = Random(seed)
    path = random.choice(told.edited)
    kept = path.read_bytes()
    try:
        edit_at_random(path, random, told.suffix)
        yield path
    finally:
        path.write_bytes(kept)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=3_500 if is_nightly() else 30, deadline=None)
@given(seed=st.integers(0, 2**63))
def test_edited_metadata_is_refused_by_name_or_makes_a_snapshot(
    seed: int, told: Told, executor: IsolatedExecutor
) -> None:
    refusal = None
    with _edited(told, seed) as path:
        try:
            inventory = told.take(executor)
            next_after_inventory(inventory, None, [])
        except InventoryError as error:
            refusal = error

    if refusal is not None:
        # Callers are answered in UTF-8.
        said = str(refusal).encode().decode()
        assert (
            str(told.location) in said or path.name in said or isinstance(refusal, _ABOUT_COLUMNS)
        )
        assert len(said) < 3_000
    else:
        files = inventory.files
        counts = dict(zip(files["path"].to_pylist(), files["row_count"].to_pylist(), strict=True))
        assert not any(".." in PurePosixPath(name).parts for name in counts)
        assert counts.get(told.good, _COUNT) == _COUNT
        assert all(count is None or count >= 0 for count in counts.values())
    # Whatever it declares, nothing is reserved for it.
    assert peak_bytes(executor) < MOST_BYTES


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("told", ["delta", "vectors"], indirect=True)
@settings(max_examples=1_500, deadline=None)
@given(seed=st.integers(0, 2**63))
def test_another_reader_finds_the_same_files_in_edited_metadata_or_one_refuses_it(
    seed: int, told: Told, executor: IsolatedExecutor
) -> None:
    with _edited(told, seed):
        try:
            files = told.take(executor).files
        except InventoryError:
            return
        theirs = executor.submit(told.theirs).result()

    assert theirs is None or set(files["path"].to_pylist()) == theirs
