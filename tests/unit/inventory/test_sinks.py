"""The log of a streaming query decides which files of its folder count."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.unit.inventory.files import as_previous, take_inline, write
from windrow_core.files.errors import LocationError
from windrow_core.models import RefreshProgress
from windrow_service.inventory.look import Inventory

# Far in the future, so that every folder's time can be trusted.
LATER_NS = 3 * 10**18


def log(location: Path, batch: str, *paths: str, **changes: object) -> Path:
    """Write a batch as Spark does: a header, and a line for each file."""
    lines = ["v1"]
    for path in paths:
        file = location / path
        entry = {
            "path": "file://" + quote(str(file), safe="/="),
            "size": file.stat().st_size,
            "isDir": False,
            "modificationTime": 1,
            "blockReplication": 1,
            "blockSize": 1,
            "action": "add",
        }
        lines.append(json.dumps(entry | changes))
    target = location / "_spark_metadata" / batch
    target.parent.mkdir(exist_ok=True)
    target.write_text("\n".join(lines))
    return target


def take(location: Path, previous: Inventory | None = None) -> Inventory:
    return take_inline(
        str(location),
        previous=as_previous(previous) if previous else None,
        clock_ns=lambda: LATER_NS,
        trusts_folders=True,
    )


def paths(inventory: Inventory) -> list[str]:
    found: list[str] = inventory.files["path"].to_pylist()
    return found


@pytest.fixture
def sink(tmp_path: Path) -> Path:
    """A folder whose name Spark escapes, with four files; the last is not committed."""
    location = tmp_path / "si nk%2F"
    for path in ("k=a%20b/0", "k=a%20b/1", "k=c/2", "k=c/uncommitted"):
        write(location, path)
    log(location, "0", "k=a%20b/0")
    log(location, "1", "k=a%20b/1", "k=c/2")
    return location


COMMITTED = ["k=a%20b/0", "k=a%20b/1", "k=c/2"]


def test_files_missing_from_the_log_are_skipped_and_counted(sink: Path) -> None:
    seen: list[RefreshProgress] = []

    inventory = take_inline(str(sink), on_progress=seen.append)

    assert paths(inventory) == COMMITTED
    assert (seen[-1].files_found, seen[-1].files_uncommitted) == (3, 1)


def test_a_file_that_is_committed_later_is_found_in_a_folder_that_did_not_change(
    sink: Path,
) -> None:
    first = take(sink)
    log(sink, "2", "k=c/uncommitted")

    second = take(sink, first)

    assert paths(second) == [*COMMITTED, "k=c/uncommitted"]
    assert second.folder_count == 1


def test_without_its_log_a_folder_is_a_plain_table_again(sink: Path) -> None:
    first = take(sink)
    for file in (sink / "_spark_metadata").iterdir():
        file.unlink()
    (sink / "_spark_metadata").rmdir()

    assert paths(take(sink, first)) == [*COMMITTED, "k=c/uncommitted"]


def test_a_compacted_batch_replaces_those_before_it(sink: Path) -> None:
    log(sink, "2.compact", *COMMITTED)
    log(sink, "3", "k=c/uncommitted")
    (sink / "_spark_metadata/0").unlink()

    assert paths(take(sink)) == [*COMMITTED, "k=c/uncommitted"]


def test_an_empty_log_is_an_empty_table(sink: Path) -> None:
    for file in (sink / "_spark_metadata").iterdir():
        file.write_text("v1")

    assert paths(take(sink)) == []


def test_a_log_that_names_the_folder_by_a_link_is_understood(sink: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(sink)
    (sink / "_spark_metadata/0").write_text(
        (sink / "_spark_metadata/0").read_text().replace("si%20nk%252F", "link")
    )

    assert paths(take(sink)) == COMMITTED


def first_line(change: Callable[[dict[str, object]], object]) -> Callable[[Path], None]:
    def apply(location: Path) -> None:
        file = location / "_spark_metadata/1"
        header, entry, *rest = file.read_text().split("\n")
        file.write_text("\n".join([header, json.dumps(change(json.loads(entry))), *rest]))

    return apply


WRONG: dict[str, tuple[Callable[[Path], object], Sequence[str]]] = {
    "a later version": (
        lambda sink: (sink / "_spark_metadata/1").write_text("v2\n"),
        ["'v2'", "_spark_metadata/1"],
    ),
    "nothing": (lambda sink: (sink / "_spark_metadata/1").write_text(""), ["begins with ''"]),
    "a line cut short": (
        lambda sink: os.truncate(sink / "_spark_metadata/1", 100),
        ["is not a log of Spark's"],
    ),
    "no object": (first_line(lambda entry: [entry]), ["is not a log of Spark's"]),
    "a size of text": (first_line(lambda entry: entry | {"size": "1"}), ["is not a log"]),
    "no size": (
        first_line(lambda entry: {name: entry[name] for name in entry if name != "size"}),
        ["an entry without 'size'"],
    ),
    "another action": (
        first_line(lambda entry: entry | {"action": "delete"}),
        ["the action 'delete'"],
    ),
    "another size": (
        first_line(lambda entry: entry | {"size": 1}),
        ["k=a%20b/1", "does not have the 1 bytes"],
    ),
    "a file twice": (lambda sink: log(sink, "2", "k=c/2"), ["names a file twice"]),
    "a file that is gone": (lambda sink: (sink / "k=c/2").unlink(), ["k=c/2", "does not exist"]),
    "a batch missing": (lambda sink: log(sink, "3", "k=c/uncommitted"), ["lacks batch 2"]),
    "a batch far off": (lambda sink: log(sink, "9" * 18, "k=c/uncommitted"), ["lacks batch 2"]),
    "a pipe": (
        lambda sink: os.mkfifo(sink / "_spark_metadata/2"),
        ["_spark_metadata/2", "begins with ''"],
    ),
    "no URI": (
        first_line(lambda entry: entry | {"path": "file://[x/y"}),
        ["'file://[x'", "is not a URI"],
    ),
    "the first batch missing": (
        lambda sink: (sink / "_spark_metadata/0").unlink(),
        ["lacks batch 0"],
    ),
    "a folder elsewhere": (
        first_line(lambda entry: entry | {"path": "file:///elsewhere/k=c/2"}),
        ["'file:///elsewhere/k=c'", "moved"],
    ),
    "a path that climbs": (
        first_line(lambda entry: entry | {"path": f"{entry['path']}/../../k=c/2"}),
        ["does not exist"],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_faulty_log_is_refused_with_the_fault(sink: Path, name: str) -> None:
    damage, words = WRONG[name]
    damage(sink)

    with pytest.raises(LocationError) as caught:
        take(sink)

    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.slow
def test_a_log_is_read_within_bounds(sink: Path) -> None:
    os.truncate(sink / "_spark_metadata/1", 2**33)

    with pytest.raises(LocationError, match="is larger than"):
        take(sink)
