"""Everything that changes files, and whatever else may lie there, which has to stay.

A case brings files about as its caller does, and then lets the caller change them. Tests plant what is
not ours around it: `tests/faults/test_foreign_files.py`.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import time
import uuid
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.faults.writers import report_of
from tests.support.spark.host_caches import cache_in, key_of
from tests.support.tables import hive
from tests.support.tables.packs import settle
from windrow.client import Client
from windrow_core.files.remote import contents_of
from windrow_core.files.roots.disks import Root
from windrow_core.files.roots.proofs import ANYTHING
from windrow_core.files.roots.stores import StoreRoot
from windrow_core.files.status import FileStatus
from windrow_demo.write_once import begin_anew, write_once
from windrow_service.engines.folder import MetadataFolder
from windrow_service.pack_folder import DiskOrStoreFolder
from windrow_service.usecases.packs.ports import PackRun
from windrow_spark import class_cache
from windrow_spark.sql import creations
from windrow_spark.streaming.waiting import StagedRows, WaitingBatch, WaitingFolder
from windrow_spark.writing import staging as spark_staging
from windrow_tables.commits import begin, recover
from windrow_tables.commits.intents import Intent, PartitionChange, decoded, encoded
from windrow_tables.commits.remote_staging import RemoteStagingFolder
from windrow_tables.commits.spellings import Home
from windrow_tables.commits.staging_folders import StagingFolder
from windrow_tables.erasing.task import ErasingJob, _Eraser
from windrow_tables.executor.spec import ReadSpec
from windrow_tables.host_cache import contents
from windrow_tables.host_cache.cache import FileCache
from windrow_tables.host_cache.folders import CACHED, announce
from windrow_tables.merging.files import merge
from windrow_tables.merging.sources import Sources
from windrow_tables.merging.task import Job, _merged_here
from windrow_tables.packs.making import PackingJob, make_packs, remove_pack

WRITE_ID = "a" * 32
STAGED = f"_windrow/writes/{WRITE_ID}(/.*)?"
QUERY_ID = "11111111-2222-4333-8444-555555555555"
TABLE_UUID = "99999999-0000-4000-8000-000000000000"
_OLD_UUID = "88888888-0000-4000-8000-000000000000"
_TASK = f"part-00000-{uuid.UUID(int=7)}"

Act = Callable[[], object]


@dataclass(frozen=True)
class World:
    """A folder with the table of a case, which is empty at first, beside another table.

    Attributes:
        top: The folder.
        client: A client of a coordinator that may read everything.
    """

    top: Path
    client: Client

    @property
    def home(self) -> Path:
        """The folder in which a case changes files."""
        return self.top / "lake" / "a"

    @property
    def other(self) -> Path:
        """Another table beside it."""
        return self.top / "lake" / "b"

    @property
    def elsewhere(self) -> Path:
        """A folder that links lead to."""
        return self.top / "elsewhere"


@dataclass(frozen=True)
class Case:
    """What one caller, or several, do to files.

    Attributes:
        callers: Their names, as `tests.support.removals.callers` has them.
        prepare: Brings about the files, and returns what the callers then do.
        own: Matches the paths below the case's folder where everything is the callers' own.
        follow: Lets the callers follow a path that somebody else has given; None if they follow none.
        through_links: Matches what the callers write even where its owner has put a link.
    """

    callers: tuple[str, ...]
    prepare: Callable[[World], Act]
    own: str = "(?!)"
    follow: Callable[[World, str], object] | None = None
    through_links: str = "(?!)"


def staging_in(world: World) -> StagingFolder:
    """Return a staging folder with one new file."""
    world.home.mkdir(parents=True, exist_ok=True)
    staging = StagingFolder(str(world.home), WRITE_ID)
    staging.make("t", b"owner").release()
    hive.write_file(Path(staging.data) / "ds=1" / "new.parquet", [1])
    return staging


def intent_of(*changes: PartitionChange, sources: dict[str, str] | None = None) -> Intent:
    """Return an intent of the write."""
    return Intent(
        write_id=WRITE_ID,
        table="t",
        kind="write",
        mode="append",
        whole=False,
        partitions=changes,
        report=report_of(1),
        sources=sources or {},
    )


def state_of(path: Path) -> FileStatus:
    """Return the state of a file, as intents have it."""
    status = path.lstat()
    return FileStatus(status.st_size, status.st_mtime_ns)


def _staging_folder(world: World) -> Act:
    staging = staging_in(world)

    def act() -> None:
        staging.record(intent_of())
        staging.recorded()
        staging.forget()
        staging.clear()
        staging.remove()
        StagingFolder(str(world.home), "c" * 32).make("t", b"owner").release()

    return act


def _moving(world: World) -> Act:
    staging = staging_in(world)
    home, data = world.home, Path(staging.data)
    old = [hive.write_file(home / folder / "old.parquet", [2]) for folder in ("", "ds=1", "ds=2")]
    hive.write_file(data / "root.parquet", [3])
    os.link(old[1], data / "ds=1" / "old.parquet")
    inode = (data / "ds=1").stat().st_ino
    intent = intent_of(
        PartitionChange("", None, ("root.parquet",), (), {"old.parquet": state_of(old[0])}),
        PartitionChange("ds=1", inode, ("new.parquet",), ("old.parquet",), {}),
        PartitionChange("ds=2", None, (), (), {"old.parquet": state_of(old[2])}),
    )
    staging.record(intent)

    def act() -> None:
        moving = staging.moving(intent)
        moving.move_in()
        moving.finish()
        staging.remove()

    return act


def _follow_intent(world: World, path: str) -> None:
    """Believe intents that name a path in each place, without the look that `decoded` takes."""
    staging = staging_in(world)
    hive.write_file(world.home / "ds=1" / "old.parquet", [2])
    inode = (Path(staging.data) / "ds=1").stat().st_ino
    state = state_of(world.other / "ds=1" / "own.parquet")
    for change in (
        PartitionChange(path, None, (), (), {"own.parquet": state}),
        PartitionChange(path, inode, ("new.parquet",), (), {}),
        PartitionChange("ds=1", inode, (), (path,), {}),
        PartitionChange("ds=1", None, (), (path,), {path: state}),
        PartitionChange("", None, (path,), (), {}),
        PartitionChange("", None, (), (), {path: state, f"{path}/own.parquet": state}),
    ):
        intent = intent_of(change)
        moving = staging.moving(intent)
        for step in (moving.move_in, moving.finish):
            refused(step)
        assert _is_plain(path) or refused(partial(decoded, staging.path, encoded(intent))), change


def _is_plain(path: str) -> bool:
    """Return whether a path may be one of the table's, as far as its text tells."""
    return not path or (
        "://" not in path and all(part not in ("", ".", "..") for part in path.split("/"))
    )


def refused(act: Act) -> bool:
    """Let something be tried; return whether it was refused, in whichever words of its caller."""
    try:
        act()
    except Exception:
        return True
    return False


def _move_home(world: World) -> Act:
    staging = staging_in(world)
    return lambda: staging.settle(["ds=1/new.parquet"], {"ds=1": Home("ds=01")})


def _follow_home(world: World, path: str) -> None:
    staging = staging_in(world)
    hive.write_file(Path(staging.data) / "ds=2" / "new.parquet", [1])
    refused(lambda: staging.settle(["ds=1/new.parquet"], {"ds=1": Home(path)}))
    refused(lambda: staging.settle(["ds=2/new.parquet"], {path: Home("ds=2")}))


def _recover(world: World) -> Act:
    name = f"t_{uuid.uuid4().hex}"
    hive.write_events(world.home)
    world.client.register_table(name, str(world.home))
    world.client.refresh(name)
    write = begin(world.client, name)
    hive.write_file(Path(write.folder) / "ds=2026-11-01" / "new.parquet", [1])
    # As if the driver had died.
    write._lease.end()
    write._lock.release()
    return lambda: recover(world.client, name)


def _batch(number: int) -> WaitingBatch:
    return WaitingBatch(number, 1, 1, ("",), "{}", 0.0, None, None)


def _waiting_folder(world: World) -> Act:
    world.home.mkdir(parents=True, exist_ok=True)
    folder = WaitingFolder(str(world.home), QUERY_ID)
    for number in range(3):
        new = folder.new_folder()
        hive.write_file(Path(new) / "part.parquet", [number])
        folder.keep(new, _batch(number))
    hive.write_file(Path(folder.new_folder()) / "part.parquet", [9])

    def act() -> None:
        with folder.gathered([_batch(2)]):
            pass
        folder.remove(folder.new_folder())
        folder.remove_up_to(1)
        folder.batches()
        folder.remove_up_to(2)

    return act


def _staged_rows(world: World) -> Act:
    folder = world.home / "new"
    folder.mkdir(parents=True)
    hive.write_file(folder / "some.parquet", [1])
    pq.write_table(pa.table({"id": pa.array([], pa.int64())}), folder / "none.parquet")
    return lambda: StagedRows.of(str(folder), [])


def _spark_staging(world: World) -> Act:
    data = Path(staging_in(world).data)
    hive.write_file(data / "_attempts" / "1" / "0-0.parquet", [1])
    hive.write_file(data / "ds=3" / "b=2" / f"{_TASK}.c000.snappy.parquet", [1])
    pq.write_table(pa.table({"id": pa.array([], pa.int64())}), data / f"{_TASK}.c000.parquet")

    def act() -> None:
        folder = str(data)
        for step in (
            lambda: spark_staging.move_staged(folder, [("_attempts/1/0-0.parquet", "ds=4/p")]),
            lambda: spark_staging.remove_staged(folder, "_attempts"),
            lambda: spark_staging._tidy(Root(folder), "b"),
        ):
            refused(step)

    return act


def _follow_staged(world: World, path: str) -> None:
    data = staging_in(world).data
    refused(lambda: spark_staging.move_staged(data, [("ds=1/new.parquet", path)]))
    refused(lambda: spark_staging.move_staged(data, [(path, "free")]))
    spark_staging.remove_staged(data, path)


def _host_cache(world: World) -> Act:
    cache = _filled(world)
    files = world.home / "files"
    orphan = files / "ab" / f"ab{'0' * 30}"
    orphan.parent.mkdir(exist_ok=True)
    orphan.write_bytes(b"left by a crash")
    (world.home / "incoming" / ("1" * 32)).write_bytes(b"left by a crash")

    def act() -> None:
        cache.drop(key_of("b"))
        cache.keep(key_of("c"), bytes(100_000))
        cache.close()
        again = cache_in(world.home)
        again.close()
        announce(again.folder)
        (world.home / "damaged").touch()
        contents.make_anew(again.folder).close()

    return act


def _class_cache(world: World) -> Act:
    keys = "a" * 64, "b" * 64
    for key in keys:
        class_cache.keep(world.home, key, {"windrow.A": b"code"})
    month_ago = time.time() - 31 * 86_400
    os.utime(world.home / "windrow" / "classes" / f"{keys[0]}.zip", (month_ago, month_ago))
    return lambda: class_cache.keep(world.home, keys[1], {"windrow.A": b"other code"})


def _filled(world: World) -> FileCache:
    world.home.mkdir(parents=True, exist_ok=True)
    os.chmod(world.home, 0o700)
    cache = cache_in(world.home)
    for name in "ab":
        cache.keep(key_of(name), bytes(100_000))
    return cache


def _follow_row(world: World, path: str) -> None:
    cache = _filled(world)
    with closing(sqlite3.connect(cache.folder.database)) as connection:
        connection.execute("UPDATE Entries SET file = ?", (path,))
        connection.commit()
    cache.drop(key_of("a"))
    cache.close()
    cache_in(world.home).close()


def _created_folders(world: World) -> Act:
    inner = world.home / "x" / "y" / "z"
    inner.mkdir(parents=True)
    return lambda: creations._remove([str(inner), str(inner.parent), str(inner.parent.parent)])


def _merge(world: World) -> Act:
    attempt = world.home / "attempt"
    attempt.mkdir(parents=True)
    names = [f"{number}.parquet" for number in range(4)]
    for name in names:
        hive.write_file(world.home / name, range(100))
    files = Sources(str(world.home), 2**24, "")
    sources = [files.open(name) for name in names]
    # Far more files are expected than it takes, so that they are written again.
    return lambda: merge(sources, [], 2**14, 100.0, str(attempt / "0-0"))


def _erasing(world: World, location: str, staging: str) -> _Eraser:
    """Return what writes a file of two rows without one of them, into the folder of a write."""
    spec = ReadSpec(
        table="t",
        location=location,
        data=pa.schema([("id", pa.int64())]),
        hidden=pa.schema([]),
        partition=pa.schema([]),
        output=("id",),
    )
    job = ErasingJob(
        spec=spec.packed(),
        filter={"op": "eq", "column": "id", "value": 1},
        column="id",
        fields=(),
        staging=staging,
        tag="e" * 8,
        max_footer_bytes=2**24,
    )
    return _Eraser(job)


def _file_of(path: str, status: FileStatus) -> pa.RecordBatch:
    row = {"path": path, **status._asdict(), "row_count": 2, "partition": {}}
    fields = [("path", pa.string()), ("size_bytes", pa.int64()), ("mtime_ns", pa.int64())]
    more = [("etag", pa.string()), ("row_count", pa.int64()), ("partition", pa.struct([]))]
    return pa.RecordBatch.from_pylist([row], pa.schema([*fields, *more]))


def _erase(world: World) -> Act:
    staging = staging_in(world)
    file = hive.write_file(world.home / "ds=1" / "a.parquet", [1, 2])
    eraser = _erasing(world, str(world.home), staging.data)
    return lambda: eraser.erase(_file_of("ds=1/a.parquet", state_of(file)))


def _metadata_folder(world: World) -> Act:
    folder = MetadataFolder(world.home, "installation")
    for table in (TABLE_UUID, _OLD_UUID):
        for name in ("snap-1-1-4.avro", "snap-2-2-4.avro", f"{'0' * 40}.avro"):
            folder.write(table, name, b"ours")
        for path in [*(world.home / table).iterdir(), world.home / table]:
            os.utime(path, (0, 0))

    def act() -> None:
        names = {"snap-2-2-4.avro"}
        for step in (
            lambda: folder.use(TABLE_UUID, names, 60.0),
            lambda: folder.clean(TABLE_UUID, names, 60.0),
            lambda: folder.remove(_OLD_UUID, 60.0),
            lambda: folder.write(TABLE_UUID, "snap-3-3-4.avro", b"ours"),
        ):
            refused(step)

    return act


def _follow_table(world: World, path: str) -> None:
    _metadata_folder(world)
    folder = MetadataFolder(world.home, "installation")
    for act in (
        lambda: folder.write(path, "own.parquet", b"ours"),
        lambda: folder.write(TABLE_UUID, path, b"ours"),
        lambda: folder.clean(path, (), 0.0),
        lambda: folder.remove(path, 0.0),
    ):
        refused(act)


def _packing(world: World) -> tuple[PackingJob, pa.Table]:
    """Return how the packs of two files are made in the case's folder, and the files."""
    table = world.top / "sources"
    partition = pa.schema([("ds", pa.string())])
    rows = []
    for number in range(2):
        file = hive.write_file(table / f"ds={number}" / "a.parquet", [number])
        os.utime(file, (1, 1))
        path, size_bytes = str(file.relative_to(table)), file.stat().st_size
        rows.append((path, size_bytes, 10**9, None, 1, {"ds": str(number)}))
    world.home.mkdir(parents=True, exist_ok=True)
    settle()
    job = PackingJob(
        location=str(table),
        folder=str(world.home),
        home=TABLE_UUID,
        run="0" * 16,
        partition=partition,
        min_sources=2,
    )
    types = (pa.string(), pa.int64(), pa.int64(), pa.string(), pa.int64(), pa.struct(partition))
    names = ("path", "size_bytes", "mtime_ns", "etag", "row_count", "partition")
    columns = map(pa.array, zip(*rows, strict=True), types)
    return job, pa.table(dict(zip(names, columns, strict=True)))


_LEFT = PackRun(
    run_id="1" * 16, table_id=1, home=TABLE_UUID, lease_until=datetime.now(timezone.utc)
)


def _packs(world: World) -> Act:
    job, files = _packing(world)
    ((old,), _) = make_packs(job, files)
    folder = DiskOrStoreFolder(job.folder)

    def make_and_remove() -> None:
        for pack in make_packs(job, files)[0]:
            remove_pack(job, pack)

    def leave_and_remove() -> None:
        make_packs(replace(job, run=_LEFT.run_id), files)
        folder.remove_left(_LEFT, ())

    def act() -> None:
        refused(lambda: folder.remove(old.path))
        refused(make_and_remove)
        refused(leave_and_remove)

    return act


def _follow_packs(world: World, path: str) -> None:
    job, files = _packing(world)
    ((pack,), _) = make_packs(job, files)
    folder = DiskOrStoreFolder(job.folder)
    for one in (path, f"{job.folder}/{path}"):
        refused(partial(folder.remove, one))
        refused(partial(remove_pack, job, replace(pack, path=one)))
        refused(partial(folder.remove_left, replace(_LEFT, run_id=job.run, home=one), ()))


def _demo(world: World) -> Act:
    world.home.mkdir(parents=True, exist_ok=True)
    work = begin_anew(world.home / "work")
    (work / "state").write_text("of an earlier run")

    def act() -> None:
        begin_anew(work)
        refused(lambda: begin_anew(world.other))
        write_once(world.home / "table", {"v": 1}, lambda _: None, file_count=0)
        write_once(world.home / "table", {"v": 2}, lambda _: None, file_count=0)

    return act


LOCAL = [
    Case(("windrow_tables.commits.staging_folders.StagingFolder",), _staging_folder, STAGED),
    Case(("windrow_tables.commits.moving.Moving",), _moving, STAGED, _follow_intent),
    Case(("windrow_tables.commits.preparation.move_home",), _move_home, STAGED, _follow_home),
    Case(("windrow_tables.commits.recovery.recover",), _recover, "_windrow/writes/[0-9a-f]{32}/.*"),
    Case(
        ("windrow_spark.streaming.waiting.WaitingFolder",),
        _waiting_folder,
        rf"_windrow/streams/{QUERY_ID}/(\.[0-9a-f]{{32}}|[0-9]+)(/.*)?",
        lambda world, path: refused(lambda: WaitingFolder(str(world.home), path).remove_up_to(9)),
    ),
    Case(("windrow_spark.class_cache.keep",), _class_cache),
    Case(("windrow_spark.streaming.waiting.StagedRows",), _staged_rows, "new/.*"),
    Case(
        tuple(
            f"windrow_spark.writing.staging.{name}"
            for name in ("move_staged", "remove_staged", "_tidy")
        ),
        _spark_staging,
        STAGED,
        _follow_staged,
    ),
    Case(
        (
            "windrow_tables.host_cache.cache.FileCache",
            "windrow_tables.host_cache.contents.make_anew",
            "windrow_tables.host_cache.contents._remove_files",
            "windrow_tables.host_cache.contents._remove_orphans",
            "windrow_tables.host_cache.folders.announce",
        ),
        _host_cache,
        CACHED.pattern.pattern,
        _follow_row,
        # SQLite's database.
        r"files/entries\.db.*",
    ),
    Case(("windrow_spark.sql.creations._remove",), _created_folders),
    Case(("windrow_tables.merging.files.merge",), _merge, "attempt/.*"),
    Case(("windrow_tables.erasing.task._Eraser",), _erase, STAGED),
    Case(
        ("windrow_service.engines.folder.MetadataFolder",),
        _metadata_folder,
        "[0-9-]{36}/(snap-.*|0+.avro|owner)",
        _follow_table,
    ),
    Case(
        (
            "windrow_service.pack_folder.DiskOrStoreFolder",
            "windrow_tables.packs.making._Maker",
            "windrow_tables.packs.making.remove_pack",
        ),
        _packs,
        "[0-9-]{36}/pack-[0-9a-f]{32}.parquet",
        _follow_packs,
    ),
    Case(
        ("windrow_demo.write_once.begin_anew", "windrow_demo.write_once._mark"),
        _demo,
        "(work|table)(/.*)?",
    ),
]


def put_elsewhere(world: World, path: Path) -> None:
    """Put a link in the place of a file or folder, which then lies elsewhere."""
    target = world.elsewhere / path.relative_to(world.home)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(path, target)
    path.symlink_to(target)


def is_own(case: Case, world: World, path: Path) -> bool:
    """Return whether everything there is the case's own."""
    return re.fullmatch(case.own, path.relative_to(world.home).as_posix()) is not None


@dataclass(frozen=True)
class StoredWorld:
    """As `World`, on a store.

    Attributes:
        lake: URI of the folder with both tables.
        scratch: A folder of this machine.
    """

    lake: str
    scratch: Path

    @property
    def home(self) -> str:
        """URI of the folder in which a case changes files."""
        return f"{self.lake}/a"

    def put(self, path: str, ids: list[int] | None = None) -> None:
        """Put a Parquet file there, below both tables' folder."""
        file = self.scratch / "file.parquet"
        hive.write_file(file, ids or [1])
        StoreRoot(self.lake).upload(str(file), path, ANYTHING)


def _stored_staging(world: StoredWorld) -> RemoteStagingFolder:
    staging = RemoteStagingFolder(world.home, WRITE_ID)
    staging.make("t", b"owner")
    world.put(f"a/_windrow/writes/{WRITE_ID}/data/ds=1/new.parquet")
    return staging


def _stored_staging_folder(world: StoredWorld) -> Act:
    staging = _stored_staging(world)

    def act() -> None:
        staging.record(intent_of())
        staging.recorded()
        staging.forget()
        staging.clear()
        staging.remove()

    return act


def _stored_moving(world: StoredWorld) -> Act:
    staging = _stored_staging(world)
    world.put("a/ds=1/old.parquet")
    _, states = contents_of(f"{world.home}/ds=1")
    change = PartitionChange(
        "ds=1", None, ("new.parquet",), (), {"old.parquet": states["old.parquet"]}
    )
    intent = intent_of(change, sources={"ds=1/new.parquet": "ds=1/new.parquet"})

    def act() -> None:
        moving = staging.moving(intent)
        moving.move_in()
        moving.finish()
        staging.remove()

    return act


def _follow_stored_intent(world: StoredWorld, path: str) -> None:
    staging = _stored_staging(world)
    _, states = contents_of(f"{world.lake}/b/ds=1")
    state = states["own.parquet"]
    for change, sources in (
        (PartitionChange(path, None, (), (), {"own.parquet": state}), {}),
        (PartitionChange("", None, (), (), {path: state}), {}),
        (PartitionChange("", None, (path,), (), {}), {path: "ds=1/new.parquet"}),
        (PartitionChange("", None, ("x.parquet",), (), {}), {"x.parquet": path}),
    ):
        intent = intent_of(change, sources=sources)
        moving = staging.moving(intent)
        for step in (moving.move_in, moving.finish):
            refused(step)
        assert _is_plain(path) or refused(partial(decoded, staging.path, encoded(intent))), change


def _stored_spark_staging(world: StoredWorld) -> Act:
    staging = _stored_staging(world)
    folder = f"a/_windrow/writes/{WRITE_ID}/data"
    world.put(f"{folder}/_attempts/1/0-0.parquet")
    world.put(f"{folder}/ds=3/b=2/{_TASK}.c000.snappy.parquet")

    def act() -> None:
        spark_staging._begin(f"{staging.data}/new")
        spark_staging.move_staged(staging.data, [("_attempts/1/0-0.parquet", "ds=4/p.parquet")])
        spark_staging.remove_staged(staging.data, "_attempts")
        spark_staging._tidy_remote(StoreRoot(staging.data), "b")
        staging.remove()

    return act


def _follow_stored(world: StoredWorld, path: str) -> None:
    data = _stored_staging(world).data
    refused(lambda: spark_staging.move_staged(data, [("ds=1/new.parquet", path)]))
    refused(lambda: spark_staging.move_staged(data, [(path, "free")]))
    spark_staging.remove_staged(data, path)


def _stored_merge(world: StoredWorld) -> Act:
    staging = _stored_staging(world)
    for number in range(3):
        world.put(f"a/ds=1/{number}.parquet", [number])
    job = Job(world.home, staging.data, (), 2**20, 1.0, 2**24)
    paths = [f"ds=1/{number}.parquet" for number in range(3)]
    return lambda: _merged_here(job, "0" * 32, 0, "ds=1", paths)


@dataclass(frozen=True)
class StoredCase:
    """As `Case`, on a store."""

    callers: tuple[str, ...]
    prepare: Callable[[StoredWorld], Act]
    follow: Callable[[StoredWorld, str], object] | None = None


STORED = [
    StoredCase(
        ("windrow_tables.commits.remote_staging.RemoteStagingFolder",), _stored_staging_folder
    ),
    StoredCase(
        ("windrow_tables.commits.remote_moving.RemoteMoving",),
        _stored_moving,
        _follow_stored_intent,
    ),
    StoredCase(
        tuple(
            f"windrow_spark.writing.staging.{name}"
            for name in ("_begin", "_move_remote", "_tidy_remote")
        ),
        _stored_spark_staging,
        _follow_stored,
    ),
    StoredCase(("windrow_tables.merging.task._merged_here",), _stored_merge),
]
