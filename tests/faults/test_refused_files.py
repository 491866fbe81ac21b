"""What the system refuses is told as that, with its own remedy, wherever files are read.

The files are on a file system that refuses what it is told to, so each error is the kernel's own.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.support.faults.refusing_disk import HARMFUL, RefusingDisk, refusing_disk
from tests.support.files import orc_files
from tests.support.files.avro_files import avro_file
from tests.support.laws import in_turn
from tests.support.servers.coordinators import PLAIN, running
from tests.support.tables import acid_tables, hive
from tests.support.tables.delta_tables import DeltaLog, column, metadata, protocol
from tests.unit.inventory.files import write
from tests.unit.inventory.test_sinks import log as sink_log
from windrow_service.settings import Settings

REMEDIES = {
    errno.EACCES: "right to read it|let the user of the coordinator",
    errno.EIO: "check the disk or the mount",
    errno.ESTALE: "mount its file system again",
    errno.EMFILE: "raise this process's limit of open files",
    errno.ENOMEM: "give this process more memory",
    errno.EDQUOT: "raise the quota",
    errno.ELOOP: "correct the symbolic links",
    errno.ENAMETOOLONG: "give it a shorter name",
}
CAUSES = {number: os.strerror(number) for number in REMEDIES}
# Listings of folders say it in their own words.
CAUSES[errno.EACCES] = "Permission denied|not readable"
WIDE = {f"c{at}": list(range(at, at + 9_000)) for at in range(4)}


@dataclass(frozen=True, slots=True)
class Place:
    """Something that a refresh reads.

    Attributes:
        table: The table.
        operation: What is refused, as for `RefusingDisk.refusing`.
        end: End of the path of the file or folder, which the answer must name.
        below: Refuse only reads below this offset.
        numbers: Numbers of the errors.
    """

    table: str
    operation: str
    end: str
    below: int | None = None
    numbers: tuple[int, ...] = tuple(REMEDIES)

    @property
    def name(self) -> str:
        return f"{self.table}-{self.operation}-{self.end.rpartition('/')[2]}"


PLACES = [
    Place("parquet", "list", "/parquet"),
    Place("parquet", "list", "/ds=2026-11-02"),
    # A file whose state is not given away: its folder may not be entered.
    Place("parquet", "stat", "/ds=2026-11-02/part-00001.parquet"),
    Place("parquet", "open", "ds=2026-11-02/part-00001.parquet"),
    Place("parquet", "read", "ds=2026-11-02/part-00001.parquet"),
    # It would say which of the files count. Who may not look there has no part in it.
    Place("parquet", "stat", "/behind/_delta_log", None, (errno.EIO, errno.ESTALE)),
    Place("blooms", "read", "/b.parquet", 4_096, (errno.EACCES, errno.EIO)),
    Place("orc", "open", "/b.orc"),
    Place("orc", "read", "/b.orc"),
    Place("avro", "open", "/b.avro"),
    Place("avro", "read", "/b.avro"),
    Place("csv", "list", "/csv"),
    Place("json", "list", "/json"),
    Place("delta", "list", "/_delta_log"),
    Place("delta", "open", "00000.json"),
    Place("delta", "open", "_last_checkpoint"),
    Place("delta_checkpoint", "open", "1.checkpoint.parquet"),
    Place("delta_checkpoint", "read", "1.checkpoint.parquet"),
    Place("sink", "list", "/_spark_metadata"),
    Place("sink", "open", "/_spark_metadata/0"),
    Place("acid", "open", "_metadata_acid"),
    Place("acid", "open", "bucket_00000"),
    Place("iceberg", "list", "/metadata"),
    Place("iceberg", "open", ".metadata.json"),
    Place("iceberg", "open", ".avro"),
    Place("iceberg", "read", "-m0.avro"),
]


def _delta(folder: Path, *, checkpoint: bool) -> None:
    log = DeltaLog(folder)
    columns = metadata([column("id", "long")])
    log.commit(protocol(), columns, log.write_file("a.parquet", pa.table({"id": [1, 2]})))
    log.commit(log.write_file("b.parquet", pa.table({"id": [3]})))
    if checkpoint:
        from deltalake import DeltaTable

        DeltaTable(folder).create_checkpoint()
    else:
        (log.log / "_last_checkpoint").write_text("{}")


def _acid(folder: Path) -> None:
    table = acid_tables.AcidTable(folder)
    table.insert(table.begin(), 0, [("", 0, 3)])
    table.put("base_0000001/bucket_00000", acid_tables.written([]))
    table.put("base_0000001/_metadata_acid", b'{"thisFileVersion":"0","dataFormat":"compacted"}')


def _sink(folder: Path) -> None:
    write(folder, "a.parquet")
    sink_log(folder, "0", "a.parquet")


def _iceberg(folder: Path) -> None:
    from tests.support.tables.iceberg import catalog_in

    rows = pa.table({"id": [1, 2, 3]})
    catalog = catalog_in(folder.with_name("warehouse"))
    table = catalog.create_table("ns.t", rows.schema, location=f"file://{folder}")
    table.append(rows)


def _put(*files: tuple[Path, bytes]) -> None:
    for path, content in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


RECORD = {"type": "record", "name": "r", "fields": [{"name": "x", "type": "long"}]}
# Called with the table's folder on the disk.
TABLES: dict[str, tuple[Callable[[Path], Any], dict[str, Any]]] = {
    "parquet": (hive.write_events, {}),
    "blooms": (lambda folder: write(folder, "b.parquet", WIDE), {"bloom_columns": ["c0"]}),
    "orc": (lambda folder: orc_files.write(folder, "b.orc"), {"format": "orc"}),
    "avro": (
        lambda folder: _put((folder / "b.avro", avro_file(RECORD, [{"x": 1}]))),
        {"format": "avro"},
    ),
    "csv": (
        lambda folder: _put((folder / "b.csv", b"1\n")),
        {"format": "csv", "columns": [{"name": "x", "type": "bigint"}]},
    ),
    "json": (
        lambda folder: _put((folder / "b.json", b'{"x": 1}\n')),
        {"format": "json", "columns": [{"name": "x", "type": "bigint"}]},
    ),
    "delta": (lambda folder: _delta(folder, checkpoint=False), {"format": "delta"}),
    "delta_checkpoint": (lambda folder: _delta(folder, checkpoint=True), {"format": "delta"}),
    "sink": (_sink, {}),
    "acid": (_acid, {"format": "orc", "transactional": "full"}),
    "iceberg": (_iceberg, {"format": "iceberg"}),
}


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RefusingDisk]:
    with refusing_disk(tmp_path_factory.mktemp("refused") / "files") as disk:
        yield disk


@pytest.fixture(scope="module")
def http(disk: RefusingDisk, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    settings = Settings(
        state_dir=tmp_path_factory.mktemp("state"), allowed_locations=(str(disk.folder),)
    )
    with running(settings) as url, httpx.Client(verify=PLAIN, base_url=url, timeout=60) as http:
        for name, (make, definition) in TABLES.items():
            make(disk.folder / name)
            asked = {"location": str(disk.folder / name), **definition}
            http.put(f"/tables/{name}", json=asked).raise_for_status()
        yield http


def _thing(place: Place, number: int) -> str:
    if place.operation == "stat" and number == errno.EACCES:
        return place.end.split("/")[-2]
    if place.table == "sink" and place.operation == "open":
        # Quoted, since paths of tests have digits.
        return "'0'"
    return place.end.rpartition("/")[2]


@pytest.mark.parametrize("place", PLACES, ids=[place.name for place in PLACES])
def test_a_refresh_that_the_system_refuses_says_so_with_the_right_remedy(
    http: httpx.Client, disk: RefusingDisk, place: Place
) -> None:
    wrong = {}
    for number in in_turn(place.numbers, PLACES.index(place), 3):
        with disk.refusing(place.operation, f"{re.escape(place.end)}$", number, below=place.below):
            answer = http.post(f"/tables/{place.table}/refresh?full=true")
        told = answer.json().get("detail", answer.text)
        if not (
            answer.status_code == 409
            and _thing(place, number) in told
            and re.search(CAUSES[number], told)
            and re.search(REMEDIES[number], told)
            and not HARMFUL.search(told)
        ):
            wrong[errno.errorcode[number]] = f"{answer.status_code} {told}"

    assert wrong == {}


def test_nothing_but_the_refusal_was_wrong(http: httpx.Client) -> None:
    answers = {name: http.post(f"/tables/{name}/refresh") for name in TABLES}

    assert {name: one.text for name, one in answers.items() if not one.is_success} == {}
