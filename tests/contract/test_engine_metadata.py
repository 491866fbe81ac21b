"""Metadata for other engines is kept as long as a snapshot needs it; nothing else is ever removed."""

from __future__ import annotations

import os
import shutil
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from anyio.from_thread import start_blocking_portal
from pyiceberg.table import StaticTable

from tests.support.servers import embedded
from tests.support.tables import hive
from windrow_core.models import TableDefinition
from windrow_service.api.services import Services
from windrow_service.bootstrap import open_services
from windrow_service.settings import EngineSettings, Settings
from windrow_service.usecases.access.authenticate import ANONYMOUS
from windrow_service.usecases.engines.describe import TableDescription
from windrow_service.wiring import rooms


def grow_old(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, (0, 0), follow_symlinks=False)


@pytest.mark.slow
def test_metadata_goes_with_the_last_snapshot_that_needs_it(tmp_path: Path) -> None:
    settings = Settings(state_dir=tmp_path / "state", allowed_locations=(str(tmp_path),))
    embedded.upgraded(settings.state_dir)
    hive.write_events(tmp_path / "t", files_per_day=1)
    made = tmp_path / "state" / "engines"

    async def check() -> None:
        async with open_services(settings) as services:
            describe = services.engines.describe
            assert describe is not None
            definition = TableDefinition(location=str(tmp_path / "t"))
            await services.tables.register("t", definition, None, ANONYMOUS.tables)
            await services.tables.refreshes.refresh_unless_checked("t", services.operations.clock())
            first = await describe("t", all_snapshots=True)
            old = {path.name for path in made.rglob("snap-1-*")}
            shutil.rmtree(tmp_path / "t" / "ds=2026-11-01")
            hive.write_file(tmp_path / "t" / "ds=2026-11-09" / "part", [90])
            await services.tables.refreshes.refresh_unless_checked("t", services.operations.clock())
            both = await describe("t", all_snapshots=True)
            await services.snapshots.expire("t", 1, timedelta(0))
            await describe.clean()
            # Somebody may still read what was asked for a moment ago.
            assert {path.name for path in made.rglob("snap-1-*")} == old
            assert Path(first.metadata_path).exists()
            grow_old(made)
            newest = await describe("t", all_snapshots=True)
            await describe.clean()
            assert not list(made.rglob("snap-1-*"))
            assert not Path(first.metadata_path).exists()
            assert both.version != newest.version
            rows = StaticTable.from_metadata(newest.metadata_path).scan().to_arrow()
            assert sorted(rows["id"].to_pylist()) == [*range(10, 30), 90]
            await services.tables.tables.delete("t", None)
            await describe.clean()
            # A copy of the database may know the table still.
            assert list(made.iterdir())
            grow_old(made)
            await describe.clean()
            assert not list(made.iterdir())

    with start_blocking_portal() as portal:
        portal.call(check)


@pytest.mark.slow
def test_new_snapshots_of_tables_that_engines_read_are_described_before_they_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(state_dir=tmp_path / "state", allowed_locations=(str(tmp_path),))
    embedded.upgraded(settings.state_dir)
    made = tmp_path / "state" / "engines"
    monkeypatch.setattr(rooms, "_FOLLOW_EVERY_S", 3600.0)

    async def check() -> None:
        async with open_services(settings) as services:
            describe, refreshes = services.engines.describe, services.tables.refreshes
            assert describe is not None

            async def grow(name: str, ids: list[int], file: str = "part") -> None:
                hive.write_file(tmp_path / name / "ds=2026-11-09" / file, ids)
                await refreshes.refresh_unless_checked(name, services.operations.clock())
                await describe.follow()

            for name in ("read", "unread"):
                definition = TableDefinition(location=str(tmp_path / name))
                hive.write_file(tmp_path / name / "ds=2026-11-09" / "first", [1])
                await services.tables.register(name, definition, None, ANONYMOUS.tables)
                await grow(name, [2])
            assert not made.exists()
            await describe("read", all_snapshots=True)
            for name in ("read", "unread"):
                await grow(name, [3], "second")
            assert len(list(made.rglob("snap-2-*.avro"))) == 1
            # What is there is as if it had been asked for.
            content = set(made.rglob("*.avro"))
            metadata = {path.name for path in made.rglob("*.metadata.json")}
            newest = await describe("read", all_snapshots=True)
            assert Path(newest.metadata_path).name in metadata
            assert content == set(made.rglob("*.avro"))
            # A table that engines cannot read any more is tried once.
            inside = pa.table({"id": [4], "ds": ["x"]})
            pq.write_table(inside, tmp_path / "read" / "ds=2026-11-09" / "inside")
            await refreshes.refresh_unless_checked("read", services.operations.clock())
            await describe.follow()
            await describe.follow()
            assert not list(made.rglob("snap-3-*.avro"))
            await services.tables.tables.delete("read", None)
            await describe.follow()

    with start_blocking_portal() as portal:
        portal.call(check)


def grow_older(folder: Path, by_s: float) -> None:
    for path in [*folder.rglob("*"), folder]:
        before_s = path.stat().st_mtime - by_s
        os.utime(path, (before_s, before_s))


def plant(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"of somebody else: {path.name}")
    return path


@pytest.mark.slow
def test_what_others_keep_in_the_folder_stays(tmp_path: Path) -> None:
    lake, elsewhere = tmp_path / "lake", tmp_path / "elsewhere"
    settings = settings_of(tmp_path, "a", metadata_folder=lake)
    hive.write_events(lake / "events")
    hive.write_events(lake / "orders")
    uuids = [f"{digit * 8}-0000-4000-8000-000000000000" for digit in "12345"]
    unmarked, of_others, copied, link, own = (lake / uuid for uuid in uuids)
    plants = [
        plant(lake / "notes" / "thesis.txt"),
        plant(lake / "file"),
        plant(unmarked / "snap-1-1-4.avro"),
        plant(of_others / "snap-1-1-4.avro"),
        plant(elsewhere / "snap-1-1-4.avro"),
        plant(lake / uuids[0].replace("1", "A") / "snap-1-1-4.avro"),
    ]
    (of_others / "owner").write_text(f"another {of_others.name}")
    link.symlink_to(elsewhere)

    async def check() -> None:
        async with open_services(settings) as services:
            describe = services.engines.describe
            assert describe is not None
            description = await described(services, "events", lake / "events")
            made = Path(description.metadata_path).parent
            mark = (made / "owner").read_text()
            # Of a table of this installation that is no more, with something that is not ours.
            for folder in (copied, own):
                plants.append(plant(folder / "README"))
                plants.append(plant(folder / "SNAP-1-1-4.AVRO"))
                plants.append(plant(folder / "snap-2-1-4.avro" / "file"))
                (folder / "old.avro").symlink_to(elsewhere / "snap-1-1-4.avro")
                (folder / "snap-3-1-4.avro").symlink_to(elsewhere / "snap-1-1-4.avro")
            for name in ("snap-1-1-4.avro", ".snap-1-1-4.avro.0123456789abcdef"):
                plant(own / name)
            (own / "owner").write_text(mark.replace(made.name, own.name))
            # As `cp -r` makes it.
            (copied / "owner").write_text(mark)
            plants.append(plant(made / "thesis.txt"))
            plants.append(plant(made / "snap" / "snap-1-1-4.avro"))
            plants.append(plant(copied / "snap-1-1-4.avro"))
            grow_old(lake)
            before = {path: path.read_text() for path in plants}
            for _ in range(2):
                await describe.clean()
            assert {path: path.read_text() for path in plants} == before
            assert link.is_symlink()
            assert not list(own.glob("*1-1-4.avro*"))
            assert (own / "owner").exists()
            assert len(list((lake / "orders").rglob("*.parquet"))) == 6
            description = await describe("events", all_snapshots=True)
            rows = StaticTable.from_metadata(description.metadata_path).scan().to_arrow()
            assert len(rows) == 60

    with start_blocking_portal() as portal:
        portal.call(check)


@pytest.mark.slow
def test_coordinators_that_share_a_folder_leave_each_others_metadata(tmp_path: Path) -> None:
    """Of two databases, and of a database and its copy, whose snapshots have the same numbers."""
    made = tmp_path / "made"
    names = ("a", "copy", "other")
    a, copy, other = (settings_of(tmp_path, name, metadata_folder=made) for name in names)

    async def check() -> None:
        async with open_services(a) as services:
            await described(services, "first", tmp_path / "first")
        # As from a backup.
        shutil.copytree(tmp_path / "a", tmp_path / "copy", dirs_exist_ok=True)
        async with (
            open_services(a) as of_a,
            open_services(copy) as of_copy,
            open_services(other) as of_other,
        ):
            newest = {}
            for number, services in enumerate((of_a, of_copy, of_other)):
                file = tmp_path / "first" / "ds=2026-11-09" / f"part-{number}"
                hive.write_file(file, [100 + number])
                newest[number] = await described(services, "first", tmp_path / "first")
                newest[10 + number] = await described(services, "own", tmp_path / f"own-{number}")
            needed = {number: avro_files_of(one) for number, one in newest.items()}
            for _ in range(3):
                grow_older(made, 45 * 60)
                # A round of each shows what it needs.
                for services in (of_a, of_copy, of_other):
                    assert services.engines.describe is not None
                    await services.engines.describe.clean()
            for number, description in newest.items():
                assert all(path.exists() for path in needed[number])
                assert not Path(description.metadata_path).exists()
            for number, services in enumerate((of_a, of_copy, of_other)):
                for name, is_shared in (("first", True), ("own", False)):
                    assert services.engines.describe is not None
                    again = await services.engines.describe(name, all_snapshots=True)
                    rows = StaticTable.from_metadata(again.metadata_path).scan().to_arrow()
                    extra = [id_ for id_ in rows["id"].to_pylist() if id_ >= 100]
                    assert sorted(extra) == [*range(100, 101 + number)] if is_shared else not extra
                    one = newest[number if is_shared else 10 + number]
                    assert again.metadata_path == one.metadata_path
                    assert avro_files_of(again) == needed[number if is_shared else 10 + number]

    with start_blocking_portal() as portal:
        portal.call(check)


def avro_files_of(description: TableDescription) -> set[Path]:
    """The lists of manifests, and the manifests, that a description names."""
    table = StaticTable.from_metadata(description.metadata_path)
    lists = {Path(snapshot.manifest_list) for snapshot in table.snapshots()}
    manifests = {
        Path(manifest.manifest_path)
        for snapshot in table.snapshots()
        for manifest in snapshot.manifests(table.io)
    }
    return lists | manifests


@pytest.mark.slow
def test_a_description_never_names_files_that_are_not_there(tmp_path: Path) -> None:
    made = tmp_path / "made"
    settings = settings_of(tmp_path, "a", metadata_folder=made)

    async def check() -> None:
        async with open_services(settings) as services:
            describe = services.engines.describe
            assert describe is not None
            first = await described(services, "t", tmp_path / "t")
            hive.write_file(tmp_path / "t" / "ds=2026-11-09" / "part", [100])
            await described(services, "t", tmp_path / "t")
            # It named the first snapshot alone.
            Path(first.metadata_path).unlink()
            names = {path.name for path in made.rglob("*") if path.is_file()}
            for pattern in ("*", "snap-1-*.avro", "snap-2-*.json", "*.avro", "*.metadata.json"):
                for path in made.rglob(pattern):
                    if path.is_file():
                        path.unlink()
                description = await describe("t", all_snapshots=True)
                assert {path.name for path in made.rglob("*") if path.is_file()} == names
                table = StaticTable.from_metadata(description.metadata_path)
                for snapshot in table.snapshots():
                    assert len(table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()) >= 60
            shutil.rmtree(made)
            await describe("t", all_snapshots=True)
            assert {path.name for path in made.rglob("*") if path.is_file()} == names

    with start_blocking_portal() as portal:
        portal.call(check)


def settings_of(folder: Path, name: str, *, metadata_folder: Path) -> Settings:
    """Settings of a coordinator with a database of its own, and metadata in a folder."""
    settings = Settings(
        state_dir=folder / name,
        allowed_locations=(str(folder),),
        engines=EngineSettings(metadata_folder=metadata_folder),
    )
    embedded.upgraded(settings.state_dir)
    return settings


async def described(services: Services, name: str, location: Path) -> TableDescription:
    """Register a table, if it is new, refresh it, and describe it."""
    if not location.exists():
        hive.write_events(location)
    definition = TableDefinition(location=str(location))
    await services.tables.register(name, definition, None, ANONYMOUS.tables)
    await services.tables.refreshes.refresh_unless_checked(name, services.operations.clock())
    assert services.engines.describe is not None
    return await services.engines.describe(name, all_snapshots=True)
