"""The Delta tables that delta-rs and Delta's kernel are tested with, read by Windrow and by them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder

import windrow
from tests.judges.verdicts import Verdict
from tests.support.servers import embedded

JUDGES = {"delta-rs": "tables of delta-rs", "delta-kernel-rs": "tables of Delta's kernel"}
_FOLDERS = {
    "delta-rs": ("crates/test/tests/data", "crates/core/tests/data_err_logs"),
    "delta-kernel-rs": ("kernel/tests/data", "kernel/tests/golden_data"),
}
# Its log has 300,000 files, none of which is there.
_LARGE = "300k-add-files"
_IN_PACIFIC_TIME = "data-reader-partition-values"
# What delta-rs 1.6.6 returns otherwise than the files have it.
_MISREAD = {"table_with_edge_timestamps": "the year 9999, as 1816"}


def verdicts(checkout: Path, folder: Path) -> list[Verdict]:
    """Read all tables of a project, each at its newest version.

    Args:
        checkout: The checkout of its repository.
        folder: Where archives are unpacked, and a coordinator keeps its state.
    """
    locations = tables(checkout, folder / "unpacked")
    allowed = (str(checkout), str(folder))
    with embedded.client(folder / "state", allowed_locations=allowed) as client:
        return list(_verdicts(client, locations))


def tables(checkout: Path, folder: Path) -> list[Path]:
    """Return the folders of a project's tables, those in archives unpacked into a folder."""
    homes = [checkout / part for part in _FOLDERS[checkout.name]]
    for home in homes:
        for archive in sorted(home.glob("*.tar.zst")):
            if not archive.name.startswith(_LARGE):
                place = folder / home.name
                place.mkdir(parents=True, exist_ok=True)
                command = ["tar", "--zstd", "--warning=no-unknown-keyword", "-xf", str(archive)]
                subprocess.run([*command, "-C", str(place)], check=True)
    logs = (log for home in (*homes, folder) for log in sorted(home.rglob("_delta_log")))
    return [log.parent for log in logs if log.is_dir()]


def _verdicts(client: windrow.Client, locations: Sequence[Path]) -> Iterator[Verdict]:
    for number, location in enumerate(locations):
        name = f"delta.t{number}"
        case = "/".join(location.parts[-2:])
        ours = _tried(partial(_ours, client, name, location))
        yield _verdict(case, ours, _tried(partial(_theirs, location)))


def _ours(client: windrow.Client, name: str, location: Path) -> pa.Table:
    # Times in partitions are of the zone in which the rows that the tests expect were read.
    zone = "America/Los_Angeles" if location.parent.name == _IN_PACIFIC_TIME else "UTC"
    client.register_table(name, str(location), "delta", format_options={"timeZone": zone})
    client.refresh(name)
    return client.scan(name).to_table()


def _theirs(location: Path) -> pa.Table:
    expected = location.parent / "expected"
    if location.name == "delta" and expected.is_dir():
        files = sorted(expected.glob("*.parquet"))
        return pa.concat_tables(
            [pq.read_table(file, partitioning=None) for file in files], promote_options="default"
        )
    query = QueryBuilder().register("t", DeltaTable(location))
    return pa.table(query.execute("SELECT * FROM t").read_all())


def _tried(read: Callable[[], pa.Table]) -> pa.Table | Exception:
    try:
        return read()
    except Exception as error:
        return error


def _verdict(case: str, ours: pa.Table | Exception, theirs: pa.Table | Exception) -> Verdict:
    if isinstance(ours, Exception):
        kind = "refused by both" if isinstance(theirs, Exception) else "refused"
        return Verdict(case, kind, str(ours))
    if isinstance(theirs, Exception):
        return Verdict(case, "read by Windrow alone", f"{type(theirs).__name__}: {theirs}")
    mine, other = _rows(ours), _rows(theirs)
    if mine == other:
        return Verdict(case, "equal")
    if (misread := _MISREAD.get(Path(case).name)) is not None:
        return Verdict(case, "misread by the judge", misread)
    first = next((f"{a} | {b}" for a, b in zip(mine, other, strict=False) if a != b), "")
    return Verdict(case, "other", f"{len(mine)} and {len(other)} rows: {first}")


def _rows(table: pa.Table) -> list[str]:
    """Return rows as texts that do not depend on the order of rows and columns."""
    return sorted(repr(sorted(row.items())) for row in table.to_pylist())
