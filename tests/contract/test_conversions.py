"""A table that is converted to another format in place, while a write to it is under way, stays whole."""

from __future__ import annotations

from pathlib import Path

import pytest

import windrow
from tests.support.faults.writers import report_of, stage
from tests.support.laws import a_few
from tests.support.tables import hive
from windrow_core.files.errors import LocationError
from windrow_core.models import WriteMode
from windrow_tables.commits import begin
from windrow_tables.commits.errors import UnfitLocationError

DAY = "ds=2026-11-01"
_LOG = "_delta_log/00000000000000000000.json"
# What a conversion writes, relative to the location.
SIGNS = [
    _LOG,
    f"{DAY}/{_LOG}",
    f"../{_LOG}",
    ".hoodie/hoodie.properties",
    f"{DAY}/.hoodie_partition_metadata",
    "metadata/v1.metadata.json",
    "schema/schema-0",
    "_spark_metadata/0",
    f"{DAY}/base_0000001/bucket_00000",
]
# None stands for a compaction, which replaces the files of a partition.
MODES: list[WriteMode | None] = [None, "overwrite_partitions", "overwrite", "append"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("is_begun", a_few([True, False], 2))
def test_a_write_to_a_table_that_is_converted_meanwhile_removes_and_adds_nothing(
    client: windrow.Client,
    name: str,
    tables_folder: Path,
    sign: str,
    mode: WriteMode | None,
    is_begun: bool,
) -> None:
    location = tables_folder / f"above_{name}" / "t"
    old = [hive.write_file(location / DAY / f"{n}.parquet", [n]) for n in range(2)]
    client.register_table(name, str(location))
    client.refresh(name)
    replaces = None if mode else sorted(str(path.relative_to(location)) for path in old)

    def convert() -> None:
        path = location / sign
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")

    if not is_begun:
        convert()
    with pytest.raises((UnfitLocationError, LocationError), match="holds "):  # noqa: PT012
        kind = "write" if mode else "compaction"
        with begin(client, name, mode or "append", kind) as write:
            rows = stage(write.folder, {f"{DAY}/new.parquet": [0, 1]})
            if is_begun:
                convert()
            write.commit(report_of(rows), replaces)

    assert all(path.exists() for path in old)
    assert not list(location.rglob("new.parquet"))
    assert not list(client.writes(name, open_only=True))
    client.delete_table(name)
