"""Writes go by the values of partitions, however the folders of a table spell them."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import windrow
from tests.support.faults.readers import ids_in, planned_ids
from tests.support.faults.writers import report_of, stage
from tests.support.files.spellings import SPELLINGS
from tests.support.laws import examples
from tests.support.servers.coordinators import running
from tests.support.tables import hive
from windrow.client import Client
from windrow_core.models import Column
from windrow_service.settings import Settings
from windrow_tables.commits import begin
from windrow_tables.commits.inventories import list_files, take_inventory

pytestmark = pytest.mark.slow

KEYS = {"k": ("k", "K", "%6B"), "l m": ("l m", "l%20m", "L M")}

# The position of a value in SPELLINGS, for each partition column.
Values: TypeAlias = tuple[int, ...]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    state = tmp_path_factory.mktemp("state")
    with running(Settings(state_dir=state, allowed_locations=("/",))) as url:
        yield url


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[Client]:
    with windrow.connect(url) as client:
        yield client


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[str], list[str], list[str]]:
    """Draw types, how the table spells its keys, and old and new folders without keys."""
    types = draw(st.lists(st.sampled_from(list(SPELLINGS)), min_size=1, max_size=2))
    keys = [draw(st.sampled_from(KEYS[name])) for name in list(KEYS)[: len(types)]]
    texts = [st.sampled_from([text for value in SPELLINGS[one] for text in value]) for one in types]
    folders = st.lists(st.tuples(*texts).map("|".join), unique=True, min_size=1, max_size=6)
    return types, keys, draw(folders), draw(folders)


def values_of(types: Sequence[str], folder: str) -> Values:
    """Return the values of a folder without keys, by the table of spellings."""
    return tuple(
        next(at for at, value in enumerate(SPELLINGS[type_]) if text in value)
        for type_, text in zip(types, folder.split("|"), strict=True)
    )


def path_of(keys: Sequence[str], folder: str) -> str:
    """Return the path of a folder, given without keys."""
    parts = zip(keys, folder.split("|"), strict=True)
    return "/".join(f"{key}={text}" for key, text in parts)


def ids_by_folder(location: Path) -> dict[str, list[int]]:
    """Return the ids in each folder that holds files, without its keys."""
    found: dict[str, list[int]] = {}
    for file in location.rglob("*.parquet"):
        parts = file.relative_to(location).parts[:-1]
        folder = "|".join(part.partition("=")[2] for part in parts)
        found.setdefault(folder, []).extend(ids_in(file))
    return found


@examples(30)
@given(
    drawn=tables(),
    mode=st.sampled_from(["append", "overwrite", "overwrite_partitions"]),
    declared=st.booleans(),
)
@example(
    drawn=(["int", "int"], ["k", "l m"], ["09|00", "9|0", "9|-01"], ["9|0", "09|-1"]),
    mode="overwrite_partitions",
    declared=False,
)
@example(drawn=(["int"], ["K"], ["09"], ["9", "+9", "0"]), mode="append", declared=True)
def test_a_write_goes_to_the_folders_that_its_values_have(
    client: Client,
    url: str,
    tmp_path_factory: pytest.TempPathFactory,
    drawn: tuple[list[str], list[str], list[str], list[str]],
    mode: str,
    declared: bool,
) -> None:
    types, keys, before, written = drawn
    # Only whole numbers are inferred to be what they are spelled as here.
    declared = declared or set(types) != {"int"}
    location = tmp_path_factory.mktemp("table") / "t"
    names = list(KEYS)[: len(types)]
    old = {folder: [at] for at, folder in enumerate(before)}
    new = {folder: [100 + at] for at, folder in enumerate(written)}
    for folder, ids in old.items():
        hive.write_file(location / path_of(keys, folder) / "part-0.parquet", ids)
    columns = [Column(name=name, type=type_) for name, type_ in zip(names, types, strict=True)]
    table = f"t_{uuid.uuid4().hex}"
    client.register_table(
        table, str(location), **({"partition_columns": columns} if declared else {})
    )
    client.publish(table, take_inventory(str(location), list_files(str(location)), names).files)

    with begin(client, table, mode) as write:
        # Spark writes the files of all partitions of a task under one name.
        files = {f"{path_of(names, folder)}/part-9.parquet": ids for folder, ids in new.items()}
        write.commit(report_of(stage(write.folder, files)))

    def by_values(folders: Mapping[str, list[int]]) -> dict[Values, list[int]]:
        found: dict[Values, list[int]] = {}
        for folder, ids in folders.items():
            found.setdefault(values_of(types, folder), []).extend(ids)
        return {values: sorted(ids) for values, ids in found.items()}

    kept = {} if mode == "overwrite" else by_values(old)
    for values, ids in by_values(new).items():
        kept[values] = sorted([*(kept.get(values, []) if mode == "append" else []), *ids])
    there = ids_by_folder(location)
    assert by_values(there) == kept
    assert planned_ids(url, table, location) == sorted(id_ for ids in kept.values() for id_ in ids)
    homes: dict[Values, set[str]] = {}
    for folder, ids in there.items():
        if max(ids) >= 100:
            homes.setdefault(values_of(types, folder), set()).add(folder)
    for values, folders in homes.items():
        had = {folder for folder in old if values_of(types, folder) == values}
        assert len(folders) == 1
        assert not had or folders <= had
    shutil.rmtree(location)
