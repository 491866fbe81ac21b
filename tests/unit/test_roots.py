"""Roots: what is changed below a folder, and that nothing else ever is."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_core.files.roots import disks
from windrow_core.files.roots.disks import Root
from windrow_core.files.roots.proofs import (
    ANYTHING,
    Consent,
    Form,
    Mark,
    NotOursError,
    OutsideError,
    Proof,
    Record,
)
from windrow_core.files.roots.stores import StoreRoot
from windrow_core.files.status import FileStatus

# Everything that removes, renames or overwrites; `path` may be anything.
CHANGES: dict[str, Callable[[Root, str], object]] = {
    "remove_file": lambda root, path: root.remove_file(path, ANYTHING),
    "remove_tree": lambda root, path: root.remove_tree(path, ANYTHING),
    "remove_empty": lambda root, path: root.remove_empty(path),
    "move away": lambda root, path: root.move(path, "free", ANYTHING),
    "move there": lambda root, path: root.move("own", path, ANYTHING),
    "exchange new": lambda root, path: root.exchange(path, "folder", "aside", ANYTHING),
    "exchange live": lambda root, path: root.exchange("folder", path, "aside", ANYTHING),
    "write_file": lambda root, path: root.write_file(path, b"new", ANYTHING, lasting=False),
    "link from": lambda root, path: root.link(path, "free"),
    "link to": lambda root, path: root.link("own", path),
    "make_folder": lambda root, path: root.make_folder(path),
    "make_new_folder": lambda root, path: root.make_new_folder(path),
    "touch": lambda root, path: root.touch(path),
}
# Names that exist below the root, some of which lead out of it, and parts that lead elsewhere.
PARTS = ["own", "folder", "deep", "to folder", "to file", "to root", "..", ".", "", "table", "b"]


class Lake:
    """Two tables beside each other; a root on the first, which holds links to the second."""

    def __init__(self, above: Path) -> None:
        self.other = above / "lake" / "b"
        self.own = above / "lake" / "table"
        for table in (self.other, self.own):
            (table / "folder" / "deep").mkdir(parents=True)
            (table / "empty").mkdir()
            for name in ("own", "folder/file", "folder/deep/file"):
                (table / name).write_text(str(table / name))
        (self.own / "to folder").symlink_to(self.other / "folder")
        (self.own / "to file").symlink_to(self.other / "own")
        (self.own / "to root").symlink_to("..")
        (self.own / "folder" / "to folder").symlink_to(self.other)

    def others(self) -> dict[str, tuple[str | None, int, int]]:
        """Return what lies outside of the table: contents, modes, and times of change."""
        above = self.other.parent.parent
        return {
            str(path): (
                path.read_text() if path.is_file() else None,
                path.stat().st_mode,
                # The folder of both tables changes neither.
                path.stat().st_mtime_ns,
            )
            for path in [above, *above.rglob("*")]
            if self.own not in [path, *path.parents]
        }


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


@examples(800)
@given(
    change=st.sampled_from(sorted(CHANGES)),
    parts=st.lists(st.sampled_from(PARTS), min_size=1, max_size=4),
    begins=st.sampled_from(["", "", "/", "absolute"]),
)
def test_no_path_leads_out_of_a_root(change: str, parts: list[str], begins: str) -> None:
    with TemporaryDirectory() as folder:
        lake = Lake(Path(folder).resolve())
        before = lake.others()
        path = "/".join(parts)
        if begins:
            path = "/" + path if begins == "/" else f"{lake.other}/{path}"
        with suppress(OSError):
            CHANGES[change](Root(str(lake.own)), path)
        assert lake.others() == before


# It goes as far as it can.
@pytest.mark.parametrize("change", sorted(CHANGES.keys() - {"remove_empty"}))
@pytest.mark.parametrize("path", ["../b/own", "folder/../../b/own", "/etc", "to folder/file", "."])
def test_what_leads_out_is_refused_by_name(lake: Lake, change: str, path: str) -> None:
    with pytest.raises(OutsideError) as refusal:
        CHANGES[change](Root(str(lake.own)), path)
    assert path.partition("/")[0] in str(refusal.value)
    assert repr(str(lake.own)) in str(refusal.value)


def test_a_root_behind_a_link_is_refused_unless_the_caller_named_it(lake: Lake) -> None:
    link = lake.own.parent / "link"
    link.symlink_to(lake.own)
    with pytest.raises(OutsideError, match="'link' is a symbolic link"):
        Root(str(link))
    with pytest.raises(OutsideError, match="'link' is a symbolic link"):
        Root(str(link / "folder"))
    root = Root.resolved(str(link))
    assert root.path == str(lake.own)
    link.unlink()
    link.symlink_to(lake.other)
    # It stays what it was when it was opened.
    root.remove_file("own", ANYTHING)
    assert (lake.other / "own").exists()
    assert not (lake.own / "own").exists()


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ("remove_tree", "swapped/deep"),
        ("remove_file", "swapped/file"),
        ("move away", "swapped/file"),
        ("write_file", "swapped/file"),
        ("make_folder", "swapped/new"),
        ("exchange live", "swapped/deep"),
    ],
)
def test_links_that_come_between_a_look_and_a_change_lead_nowhere(
    lake: Lake, change: str, path: str
) -> None:
    (lake.own / "swapped").symlink_to(lake.other / "folder")
    before = lake.others()
    root, swapper = Root(str(lake.own)), Root(str(lake.own))
    changes = 0
    ended = threading.Event()

    def swap() -> None:
        while not ended.is_set():
            with suppress(OSError):
                swapper.exchange("real", "swapped", "aside", ANYTHING)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(200):
            for name in ("real", "swapped"):
                with suppress(OSError):
                    root.make_folder(f"{name}/deep")
                with suppress(OSError):
                    root.write_file(f"{name}/file", b"own", lasting=False)
            with suppress(OSError):
                CHANGES[change](root, path)
                changes += 1
            with suppress(OSError):
                root.remove_file("free", ANYTHING)
    finally:
        ended.set()
        thread.join()
    assert changes
    assert _without_times(lake.others()) == _without_times(before)


def test_a_tree_goes_without_what_its_links_lead_to(lake: Lake) -> None:
    before = lake.others()
    root = Root(str(lake.own))
    root.remove_tree("folder", ANYTHING)
    assert not (lake.own / "folder").exists()
    root.remove_file("to folder", ANYTHING)
    root.remove_file("to file", ANYTHING)
    assert lake.others() == before


def test_a_tree_that_is_too_deep_is_an_error_of_the_system(lake: Lake) -> None:
    root = Root(str(lake.own))
    deep = os.open(lake.own / "folder", os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=deep)
        below = os.open("d", os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    os.close(deep)
    try:
        with pytest.raises(OSError, match=r"too deep|not empty"):
            root.remove_tree("folder", ANYTHING)
    finally:
        subprocess.run(["rm", "-rf", str(lake.own / "folder")], check=True)


@pytest.mark.parametrize("has_renameat2", [True, False])
def test_nothing_is_overwritten_without_a_proof(
    lake: Lake, has_renameat2: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_renameat2:
        monkeypatch.setattr(disks, "_rename", _unsupported)
    root = Root(str(lake.own))
    with pytest.raises(FileExistsError):
        root.write_file("own", b"new")
    with pytest.raises(FileExistsError):
        root.move("folder/file", "own", ANYTHING)
    with pytest.raises(FileExistsError):
        root.link("folder/file", "own")
    with pytest.raises(NotOursError, match=r"'own' below .* no record names it.* yourself"):
        root.write_file("own", b"new", Record({}))
    assert (lake.own / "own").read_text() == str(lake.own / "own")
    assert sorted(path.name for path in lake.own.iterdir() if path.name.startswith(".")) == []
    root.write_file("own", b"new", ANYTHING)
    root.write_file("another", b"new")
    assert (lake.own / "own").read_text() == (lake.own / "another").read_text() == "new"


def _unsupported(*_: object) -> None:
    raise NotImplementedError


PROOFS: list[tuple[str, Callable[[Path], Proof], bool]] = [
    ("a form", lambda _: Form(re.compile("folder/fi.e")), True),
    ("a form of the name alone", lambda _: Form(re.compile("file")), False),
    ("a form of another case", lambda _: Form(re.compile("folder/FILE")), False),
    ("a form that is old", lambda _: Form(re.compile(".*"), 60), True),
    ("a form that is young", lambda _: Form(re.compile(".*"), 10**6), False),
    ("a mark", lambda _: Mark("mark", b"ours"), True),
    ("another mark", lambda _: Mark("mark", b"our"), False),
    ("a longer mark", lambda _: Mark("mark", b"ours too"), False),
    ("the end of a mark", lambda _: Mark("mark", b"rs"), False),
    ("the last line of a mark", lambda _: Mark("lines", b"ours"), True),
    ("no mark", lambda _: Mark("none", b"ours"), False),
    ("a mark behind a link", lambda _: Mark("link", b"ours"), False),
    ("a record", lambda path: Record({"folder/file": _state(path)}), True),
    ("a record without a state", lambda _: Record({"folder/file": None}), True),
    ("another state", lambda path: Record({"folder/file": FileStatus(4, 1)}), False),
    ("a record of others", lambda path: Record({"file": _state(path)}), False),
    ("consent", lambda _: Consent(), True),
]


@pytest.mark.parametrize(
    ("proof", "holds"), [one[1:] for one in PROOFS], ids=[one[0] for one in PROOFS]
)
@pytest.mark.parametrize("change", ["remove_file", "move", "write_file"])
def test_what_no_proof_shows_to_be_ours_stays(
    tmp_path: Path, proof: Callable[[Path], Proof], holds: bool, change: str
) -> None:
    file = tmp_path / "folder" / "file"
    file.parent.mkdir()
    file.write_text("text")
    os.utime(file, (10**9, os.stat(tmp_path).st_mtime - 3600))
    (tmp_path / "mark").write_text("ours")
    (tmp_path / "lines").write_text("host\nours")
    (tmp_path / "link").symlink_to("mark")
    root = Root.resolved(str(tmp_path))

    def act(*proofs: Proof) -> None:
        if change == "move":
            root.move("folder/file", "moved", *proofs)
        elif change == "write_file":
            root.write_file("folder/file", b"new", *proofs)
        else:
            root.remove_file("folder/file", *proofs)

    # All of them must hold.
    for proofs in ([proof(file)], [Consent(), proof(file)], [proof(file), Consent()]):
        if not holds:
            with pytest.raises((NotOursError, OSError)):
                act(*proofs)
            assert file.read_text() == "text"
    if change != "write_file":
        with pytest.raises(NotOursError, match="no proof"):
            act()
    if holds:
        act(proof(file))
        assert not file.exists() or file.read_text() == "new"


def _state(path: Path) -> FileStatus:
    status = path.stat()
    return FileStatus(status.st_size, status.st_mtime_ns)


def test_a_folder_is_as_young_as_what_lies_deepest_in_it(tmp_path: Path) -> None:
    deep = tmp_path / "folder" / "deep"
    deep.mkdir(parents=True)
    (deep / "file").write_text("text")
    for path in (deep, deep.parent):
        os.utime(path, (10**9, 10**9))
    root = Root.resolved(str(tmp_path))
    with pytest.raises(NotOursError, match="changed within the last 1 hours"):
        root.remove_tree("folder", Form(re.compile(".*"), 3600))
    os.utime(deep / "file", (10**9, 10**9))
    root.remove_tree("folder", Form(re.compile(".*"), 3600))
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize("uri", ["hdfs://names/lake/table", "s3://bucket/lake/table"])
@pytest.mark.parametrize(
    "path",
    ["../b/file", "a/../../b", "/file", "a//b", "./a", "s3://bucket/b", "hdfs://names/b", "a/\0"],
)
def test_no_path_leads_out_of_a_root_on_a_store(uri: str, path: str) -> None:
    root = StoreRoot(uri)
    for change in _changes_on_a_store(root, path):
        # Nothing is asked of the store, which does not exist.
        with pytest.raises(OutsideError, match=re.escape(repr(path))):
            change()


def _changes_on_a_store(root: StoreRoot, path: str) -> Iterator[Callable[[], object]]:
    yield lambda: root.write_file(path, b"")
    yield lambda: list(root.bring([(path, "free")], ANYTHING))
    yield lambda: list(root.bring([("own", path)], ANYTHING))
    yield lambda: root.remove_files(["own", path], ANYTHING)
    yield lambda: root.remove_tree(path, ANYTHING)
    yield lambda: root.changed_ns(path)


def _without_times(others: dict[str, tuple[str | None, int, int]]) -> object:
    return {path: content for path, (content, _, _) in others.items()}
