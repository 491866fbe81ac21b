"""Whoever changes files leaves alone what is not ours: foreign files, links, other tables and paths.

Each caller of `windrow_core.files.roots` has a case, and each case meets every plant.
"""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

import windrow
from tests.support.faults.foreign_files import (
    LOCAL,
    STORED,
    Case,
    StoredCase,
    StoredWorld,
    World,
    is_own,
    put_elsewhere,
    refused,
)
from tests.support.removals import callers
from tests.support.servers.coordinators import running
from tests.support.servers.hdfs import Hdfs, hdfs_cluster
from tests.support.servers.s3 import S3, s3_server
from tests.support.tables import hive
from windrow.client import Client
from windrow_core.files import hadoop
from windrow_core.files.objects.requests import Traffic, requests
from windrow_core.files.roots.proofs import ANYTHING
from windrow_core.files.roots.stores import StoreRoot
from windrow_core.files.schemes import is_object
from windrow_core.files.status import FileStatus
from windrow_service.settings import Settings

ROOT = Path(__file__).parents[2]
EVERY = pytest.mark.parametrize("case", LOCAL, ids=lambda case: case.callers[0])
FOLLOWING = [case for case in LOCAL if case.follow is not None]
# Where `/lake/b` is the other table.
PATHS = [
    "../b",
    "../b/ds=1",
    "../b/ds=1/own.parquet",
    "ds=1/../../b/ds=1",
    "_windrow/../../b/ds=1/own.parquet",
    "{lake}/b",
    "{lake}/b/ds=1",
    "{lake}/b/ds=1/own.parquet",
    "/{lake}/b/ds=1/own.parquet",
    "file://{lake}/b/ds=1",
    ".",
    "",
    "./../b",
    "ds=1/./../../b/ds=1",
    "link to b",
    "link to b/ds=1",
    "link to b/ds=1/own.parquet",
    "LINK TO B",
    "..",
]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    state = tmp_path_factory.mktemp("state")
    settings = Settings(state_dir=state, allowed_locations=("/",))
    with running(settings) as url, windrow.connect(url) as client:
        yield client


def new_world(client: Client, top: Path) -> World:
    world = World(top.resolve(), client)
    for folder in ("", "ds=1", "_windrow/writes/" + "f" * 32 + "/data/ds=1"):
        hive.write_file(world.other / folder / "own.parquet", [1])
    return world


def plant_others(world: World) -> None:
    """Plant what another installation, and somebody without one, may have in the same folder."""
    staging = world.home / "_windrow" / "writes" / ("f" * 32)
    for path in (
        staging / "owner",
        staging / "lock",
        staging / "data" / "ds=1" / "theirs.parquet",
        world.home / "_windrow" / "streams" / "theirs" / "0" / "batch.json",
        world.home / "_windrow" / "streams" / "theirs" / ".0" / "part.parquet",
        world.home / "_WINDROW" / "WRITES" / ("F" * 32) / "data" / "theirs",
        world.home / "77777777-0000-4000-8000-000000000000" / "snap-1-1-4.avro",
        world.home / "77777777-0000-4000-8000-000000000000" / "owner",
        world.home / "files" / "ab" / "thesis.txt",
        world.home / "incoming" / "thesis.txt",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text(f"of others: {path.name}")


def contents(*folders: Path) -> dict[Path, tuple[bytes | None, int]]:
    return {
        path: (path.read_bytes() if path.is_file() else None, path.lstat().st_mode)
        for folder in folders
        for path in folder.rglob("*")
        if not path.is_symlink()
    }


@EVERY
def test_foreign_files_stay(client: Client, case: Case, tmp_path: Path) -> None:
    world = new_world(client, tmp_path)
    act = case.prepare(world)
    ours = set(world.home.rglob("*"))
    plant_others(world)
    folders = [world.home, *(path for path in ours if path.is_dir())]
    for folder in folders:
        if folder != world.home and is_own(case, world, folder):
            continue
        for name in ("thesis.txt", ".hidden", "_SUCCESS.txt", "THEIRS/own.parquet"):
            path = folder / name
            if not is_own(case, world, path):
                path.parent.mkdir(exist_ok=True)
                path.write_text(f"of somebody: {name}")
    foreign = {path for path in world.home.rglob("*") if path not in ours}
    before = {path: one for path, one in contents(world.home).items() if path in foreign}
    others = contents(world.other)
    assert before

    act()

    after = contents(world.home)
    assert {path: after.get(path) for path in before} == before
    assert contents(world.other) == others


@EVERY
@pytest.mark.parametrize("kind", ["folders", "files"])
def test_what_links_lead_to_stays(client: Client, case: Case, kind: str, tmp_path: Path) -> None:
    names = _names(case, kind, new_world(client, tmp_path / "first"))
    assert names or kind == "files"
    for number, name in enumerate(names):
        world = new_world(client, tmp_path / str(number))
        act = case.prepare(world)
        # Names of the case's own are drawn anew each time.
        path = world.home / _likest(name, world, kind)
        put_elsewhere(world, path)
        before = {
            path: one
            for path, one in contents(world.elsewhere, world.other).items()
            if not re.search(case.through_links, path.as_posix())
        }
        refused(act)
        after = contents(world.elsewhere, world.other)
        assert {path: after.get(path) for path in before} == before, name
        shutil.rmtree(world.top)


def _names(case: Case, kind: str, world: World) -> list[str]:
    case.prepare(world)
    return [
        path.relative_to(world.home).as_posix()
        for path in sorted(world.home.rglob("*"))
        if path.is_dir() == (kind == "folders")
    ]


def _likest(name: str, world: World, kind: str) -> str:
    """Return the path in this world that is what another path was in the first one."""
    if (world.home / name).exists():
        return name
    depth = name.count("/")
    others = [
        path.relative_to(world.home).as_posix()
        for path in sorted(world.home.rglob("*"))
        if path.is_dir() == (kind == "folders")
    ]
    shape = re.sub("[0-9a-f]{2,}", "#", name)
    return next(
        one
        for one in others
        if one.count("/") == depth and re.sub("[0-9a-f]{2,}", "#", one) == shape
    )


@pytest.mark.parametrize("case", FOLLOWING, ids=lambda case: case.callers[0])
@pytest.mark.parametrize("path", PATHS)
def test_no_path_that_others_give_is_followed_out_of_the_folder(
    client: Client, case: Case, path: str, tmp_path: Path
) -> None:
    world = new_world(client, tmp_path)
    world.home.mkdir()
    world.home.chmod(0o700)
    cache_lock = world.home / "agent.lock"
    cache_lock.touch()
    (world.home / "link to b").symlink_to(world.other)
    before = contents(world.other)
    assert case.follow is not None

    case.follow(world, path.format(lake=world.home.parent))

    assert contents(world.other) == before


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with s3_server() as server:
        server.client.create_bucket(Bucket="foreign-files")
        yield server


@pytest.fixture(scope="module")
def hdfs() -> Iterator[Hdfs]:
    with hdfs_cluster() as cluster:
        yield cluster


@pytest.fixture(params=[pytest.param("hdfs", marks=pytest.mark.nightly), "s3"])
def stored_world(request: pytest.FixtureRequest, tmp_path: Path) -> StoredWorld:
    store = request.getfixturevalue(request.param)
    root = "s3://foreign-files" if request.param == "s3" else str(store.uri)
    world = StoredWorld(f"{root}/{uuid.uuid4().hex}/lake", tmp_path)
    for path in (
        "b/own.parquet",
        "b/ds=1/own.parquet",
        # Names that begin like those of the case.
        "ab/own.parquet",
        "a/ds=1/thesis.txt",
        "a/ds=10/own.parquet",
        "a/thesis.txt",
        f"a/_windrow/writes/{'f' * 32}/begun",
        f"a/_windrow/writes/{'f' * 32}/data/ds=1/theirs.parquet",
        f"a/_windrow/writes/{'a' * 33}/data/theirs.parquet",
        f"a/_windrow/writes-{'a' * 32}/theirs.parquet",
    ):
        world.put(path)
    return world


def stored_files(world: StoredWorld) -> dict[str, FileStatus]:
    if is_object(world.lake):
        objects = requests().list_all(world.lake, Traffic())
        return {one.key: one.state for one in objects}
    return dict(hadoop.entries_of(world.lake, recursive=True)[1])


@pytest.mark.parametrize("case", STORED, ids=lambda case: case.callers[0])
def test_foreign_files_stay_on_a_store(case: StoredCase, stored_world: StoredWorld) -> None:
    before = stored_files(stored_world)
    act = case.prepare(stored_world)

    act()

    after = stored_files(stored_world)
    assert {path: after.get(path) for path in before} == before


@pytest.mark.parametrize(
    "case", [case for case in STORED if case.follow], ids=lambda case: case.callers[0]
)
def test_no_path_that_others_give_is_followed_out_of_a_folder_on_a_store(
    case: StoredCase, stored_world: StoredWorld
) -> None:
    before = stored_files(stored_world)
    lake = stored_world.lake
    assert case.follow is not None

    for path in [*(one.format(lake=lake) for one in PATHS), f"{lake}/b/ds=1/own.parquet", "a//b"]:
        case.follow(stored_world, path)
        after = stored_files(stored_world)
        assert {path: after.get(path) for path in before} == before, path
        StoreRoot(lake).remove_tree(f"a/_windrow/writes/{'a' * 32}", ANYTHING)


def test_every_caller_has_a_case() -> None:
    cases = [name for case in (*LOCAL, *STORED) for name in case.callers]
    assert sorted(cases) == sorted(set(cases))
    assert sorted(cases) == sorted(callers())


def test_every_caller_is_in_the_documents() -> None:
    text = (ROOT / "docs" / "explain" / "security.md").read_text()
    section = text.partition("## Who changes files")[2].partition("\n## ")[0]
    names = re.findall(r"^\| `([\w.]+)`", section, re.MULTILINE)
    assert sorted(names) == sorted(callers())
