"""Overlapping writes: none removes files that it cannot have known, unless told to."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow
from tests.support.faults.readers import planned_ids
from tests.support.faults.writers import report_of, stage
from tests.support.laws import examples
from tests.support.servers.coordinators import running
from windrow_core.models import WriteConflict, WriteMode
from windrow_service.settings import Settings
from windrow_tables.commits import TableWrite, begin
from windrow_tables.commits.errors import PartitionChangedError, WriteConflictError

DAYS = ("ds=1", "ds=2")


@dataclass(frozen=True)
class Step:
    """A step of one of three writers: begin a write, or commit the one that it has begun.

    Attributes:
        writer: The number of the writer.
        mode: The mode of the write; `compaction` merges files.
        conflict: The conflict option of the write.
        days: Partitions that the write adds a file to, or whose files it merges.
    """

    writer: int
    mode: WriteMode | Literal["compaction"]
    conflict: WriteConflict
    days: frozenset[str]


@dataclass(frozen=True)
class ModelFile:
    """A file of the table in the model, and when the newest of its rows came."""

    path: str
    ids: tuple[int, ...]
    published_at: int


@dataclass
class Begun:
    """An open write, the number of the step that began it, and its new file in each folder."""

    write: TableWrite
    at: int
    step: Step
    files: dict[str, ModelFile]
    sources: dict[str, list[ModelFile]]


steps = st.builds(
    Step,
    writer=st.integers(0, 2),
    mode=st.sampled_from(["append", "overwrite_partitions", "overwrite", "compaction"]),
    conflict=st.sampled_from(["fail", "fail", "fail", "overwrite"]),
    days=st.frozensets(st.sampled_from(DAYS)),
)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    state = tmp_path_factory.mktemp("state")
    with running(Settings(state_dir=state, allowed_locations=("/",))) as url:
        yield url


@pytest.mark.slow
@examples(12)
@given(partitioned=st.booleans(), asked=st.lists(steps, min_size=4, max_size=12))
def test_no_interleaving_removes_files_that_a_write_cannot_have_known(
    url: str, tmp_path_factory: pytest.TempPathFactory, partitioned: bool, asked: list[Step]
) -> None:
    location: Path = tmp_path_factory.mktemp("table") / "t"
    table, ids = f"t_{uuid.uuid4().hex}", count()
    model: dict[str, list[ModelFile]] = {}
    open_writes: dict[int, Begun] = {}
    with windrow.connect(url) as client, ExitStack() as undone:
        partition_columns = {"ds": "int"} if partitioned else {}
        client.register_table(table, str(location), partition_columns=partition_columns)
        for now, step in enumerate(asked):
            begun = open_writes.pop(step.writer, None)
            if begun is None:
                merges = step.mode == "compaction"
                write = undone.enter_context(
                    begin(client, table, kind="compaction")
                    if step.mode == "compaction"
                    else begin(client, table, step.mode, conflict=step.conflict)
                )
                folders = sorted(step.days) if partitioned else [""] if step.days else []
                sources = {folder: list(model.get(folder, [])) for folder in folders if merges}
                files = {
                    folder: new_file(folder, *(sources[folder] if merges else [next(ids)]))
                    for folder in folders
                    if not merges or sources[folder]
                }
                stage(write.folder, {file.path: list(file.ids) for file in files.values()})
                open_writes[step.writer] = Begun(write, now, step, files, sources)
                continue
            if begun.step.mode == "compaction":
                compact(begun, model)
                continue
            replaced = replaced_by(begun, set(model))
            unknown = any(
                file.published_at > begun.at for folder in replaced for file in model[folder]
            )
            if unknown and begun.step.conflict == "fail":
                with pytest.raises(WriteConflictError, match="that others published after"):
                    begun.write.commit(report_of(1))
                continue
            begun.write.commit(report_of(1))
            for folder in replaced:
                model[folder] = []
            for folder, file in begun.files.items():
                model.setdefault(folder, []).append(replace(file, published_at=now))

        expected = sorted(id_ for files in model.values() for file in files for id_ in file.ids)
        if client.table(table).current_snapshot is not None:
            assert planned_ids(url, table, location) == expected
        else:
            assert expected == []
    shutil.rmtree(location, ignore_errors=True)


def new_file(folder: str, *rows: ModelFile | int) -> ModelFile:
    """Return a file with a new row, or with those of other files."""
    sources = [one for one in rows if isinstance(one, ModelFile)]
    return ModelFile(
        path=f"{folder}/{uuid.uuid4().hex}.parquet".strip("/"),
        ids=tuple(
            id_ for one in rows for id_ in (one.ids if isinstance(one, ModelFile) else (one,))
        ),
        published_at=max((one.published_at for one in sources), default=0),
    )


def compact(begun: Begun, model: dict[str, list[ModelFile]]) -> None:
    """Commit a compaction, unless a writer was faster."""
    old = [one for files in begun.sources.values() for one in files]
    if not old:
        return
    paths = [one.path for one in old]
    if any(one not in model[folder] for folder, files in begun.sources.items() for one in files):
        with pytest.raises(PartitionChangedError):
            begun.write.commit(report_of(1), replaces=paths)
        return
    begun.write.commit(report_of(1), replaces=paths)
    for folder, files in begun.sources.items():
        if files:
            model[folder] = [one for one in model[folder] if one not in files]
            model[folder].append(begun.files[folder])


def replaced_by(begun: Begun, there: set[str]) -> set[str]:
    """Return the folders whose files a write replaces."""
    if begun.step.mode == "append":
        return set()
    return there if begun.step.mode == "overwrite" else there & set(begun.files)


@pytest.mark.parametrize("how", ["refresh", "publish"])
def test_files_added_without_windrow_are_not_removed_either(
    url: str, tmp_path: Path, how: str
) -> None:
    table = f"t_{uuid.uuid4().hex}"
    with windrow.connect(url) as client:
        client.register_table(
            table,
            str(tmp_path / "t"),
            columns={"id": "bigint", "name": "string"},
            partition_columns={"ds": "int"},
        )
        with begin(client, table, "overwrite_partitions") as write:
            stage(write.folder, {"ds=1/new.parquet": [1]})
            stage(str(tmp_path / "t"), {"ds=1/other.parquet": [2]})
            if how == "refresh":
                client.refresh(table)
            else:
                status = (tmp_path / "t/ds=1/other.parquet").stat()
                file = {
                    "path": "ds=1/other.parquet",
                    "size_bytes": status.st_size,
                    "mtime_ns": status.st_mtime_ns,
                    "row_count": 1,
                }
                client.publish(table, [file])
            with pytest.raises(WriteConflictError, match="in 'ds=1' that others published"):
                write.commit(report_of(1))
        assert planned_ids(url, table, tmp_path / "t") == [2]


@pytest.mark.parametrize("order", ["append first", "compaction first", "compaction alone"])
def test_an_overwrite_is_stopped_by_new_rows_and_not_by_compactions(
    url: str, tmp_path: Path, order: str
) -> None:
    table = f"t_{uuid.uuid4().hex}"
    with windrow.connect(url) as client:
        client.register_table(table, str(tmp_path / "t"), partition_columns={"ds": "int"})
        append(client, table, {"ds=1/a.parquet": [1], "ds=1/b.parquet": [2]})
        with begin(client, table, "overwrite_partitions") as overwrite:
            stage(overwrite.folder, {"ds=1/new.parquet": [3]})
            old = ["ds=1/a.parquet", "ds=1/b.parquet"]
            if order == "append first":
                append(client, table, {"ds=1/c.parquet": [4]})
                old.append("ds=1/c.parquet")
            with begin(client, table, kind="compaction") as compaction:
                ids = [1, 2, 4][: len(old)]
                staged = stage(compaction.folder, {"ds=1/merged.parquet": ids})
                compaction.commit(report_of(staged), replaces=old)
            if order == "compaction first":
                append(client, table, {"ds=1/c.parquet": [4]})
            if order == "compaction alone":
                overwrite.commit(report_of(1))
            else:
                with pytest.raises(WriteConflictError, match="in 'ds=1' that others published"):
                    overwrite.commit(report_of(1))
        rows = [3] if order == "compaction alone" else [1, 2, 4]
        assert planned_ids(url, table, tmp_path / "t") == rows


def test_an_overwrite_is_refused_if_the_snapshot_of_its_start_has_expired(
    url: str, tmp_path: Path
) -> None:
    table = f"t_{uuid.uuid4().hex}"
    with windrow.connect(url) as client:
        client.register_table(table, str(tmp_path / "t"), partition_columns={"ds": "int"})
        for day in (1, 2):
            append(client, table, {f"ds={day}/old.parquet": [day]})
        with begin(client, table, "overwrite_partitions") as write:
            stage(write.folder, {"ds=1/new.parquet": [3]})
            append(client, table, {"ds=2/more.parquet": [4]})
            client.expire_snapshots(table, keep_last=1, max_age=timedelta(0))
            with pytest.raises(WriteConflictError, match="others may have published"):
                write.commit(report_of(1))


def append(client: windrow.Client, table: str, files: dict[str, list[int]]) -> None:
    with begin(client, table) as write:
        write.commit(report_of(stage(write.folder, files)))
