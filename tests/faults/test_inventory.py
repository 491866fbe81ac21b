"""Tables that are broken or change while they are read cause one clear error."""

from __future__ import annotations

import os
import re
import resource
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.files.listings import list_files, read_footers
from tests.unit.inventory.files import inline, take_inline, touch, write
from windrow_core.files.errors import (
    FileChangedError,
    InventoryError,
    LocationError,
    UnreadableFootersError,
)
from windrow_core.models import RefreshProgress
from windrow_service.inventory.build import take_inventory
from windrow_service.inventory.errors import InventoryCancelledError
from windrow_service.inventory.footers.isolation import IsolatedExecutor
from windrow_service.inventory.look import Look

NOBODY = 65534


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """A folder that ordinary users may enter; the test runs as one."""
    # Not tmp_path, as other users may not enter its parents.
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    user = os.geteuid()
    if user == 0:
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        os.seteuid(user)
        for child in folder.rglob("*"):
            child.chmod(0o755)
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def processes() -> Iterator[IsolatedExecutor]:
    with IsolatedExecutor(1) as executor:
        yield executor


def break_file(path: Path, how: str) -> None:
    data = path.read_bytes()
    damaged = {
        "one byte": b"P",
        "only magic": b"PAR1PAR1",
        "truncated": data[: len(data) // 2],
        "no end": data[:-4],
        "no start": data[len(data) // 2 :],
        "text": b"id,name\n1,x\n" * 100,
        "footer of noise": data[:-60] + b"\xff" * 52 + data[-8:],
        "footer too long": data[:-8] + b"\xff\xff\xff\x7f" + b"PAR1",
        "encrypted": data[:-4] + b"PARE",
        "large text": b"id,name\n1,x\n" * 20_000,
    }[how]
    path.write_bytes(damaged)


@pytest.mark.parametrize(
    "how",
    [
        "one byte",
        "only magic",
        "truncated",
        "no end",
        "text",
        "footer of noise",
        "footer too long",
        "encrypted",
        "large text",
    ],
)
def test_a_file_that_is_not_parquet_is_named(
    tmp_path: Path, processes: IsolatedExecutor, how: str
) -> None:
    write(tmp_path, "k=1/good")
    break_file(write(tmp_path, "k=2/bad"), how)

    with pytest.raises(UnreadableFootersError, match="'k=2/bad': ") as caught:
        take_inventory(Look(location=str(tmp_path)), executor=processes)

    ((path, reason),) = caught.value.files
    assert (path, bool(reason)) == ("k=2/bad", True)


def test_a_file_that_lost_its_start_is_named(tmp_path: Path) -> None:
    file = write(tmp_path, "bad", {"x": list(range(9_000))}, row_group_size=3_000)
    data = file.read_bytes()
    file.write_bytes(data[-2_000:])

    with pytest.raises(UnreadableFootersError, match="points past its end"):
        take_inline(str(tmp_path))


def test_a_footer_that_crashes_its_reader_is_named(
    tmp_path: Path, processes: IsolatedExecutor
) -> None:
    for number in range(5):
        write(tmp_path, f"{number}", {"x": [number, number]})
    file = tmp_path / "3"
    data = bytearray(file.read_bytes())
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    # The type of the first column chunk: the thrift field after its file offset.
    at = data.rindex(b"\x1c\x15\x04\x19", footer) + 2
    data[at] = 0x5E
    file.write_bytes(data)

    with pytest.raises(UnreadableFootersError, match="'3': its footer is damaged") as caught:
        take_inventory(Look(location=str(tmp_path)), executor=processes)

    assert [path for path, _ in caught.value.files] == ["3"]
    file.unlink()
    assert take_inventory(Look(location=str(tmp_path)), executor=processes).files.num_rows == 4


def test_files_broken_in_one_way_are_one_line_with_a_count(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"{number:02d}").write_bytes(b"text")
    write(tmp_path, "good")

    with pytest.raises(UnreadableFootersError) as caught:
        take_inline(str(tmp_path))

    assert [path for path, _ in caught.value.files] == [f"{number:02d}" for number in range(12)]
    assert "'00' and 11 more: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_vanishes_after_the_listing_says_to_refresh_again(tmp_path: Path) -> None:
    write(tmp_path, "a")
    gone = write(tmp_path, "b")
    files = list_files(str(tmp_path)).files
    gone.unlink()

    with pytest.raises(FileChangedError, match="refresh again: 'b'"):
        read_footers(str(tmp_path), files, executor=inline)


@pytest.mark.parametrize("what", ["size", "time"])
def test_a_file_that_changes_after_the_listing_says_to_refresh_again(
    tmp_path: Path, what: str
) -> None:
    file = write(tmp_path, "a")
    touch(file, 1_000)
    files = list_files(str(tmp_path)).files
    if what == "size":
        write(tmp_path, "a", {"x": ["longer"] * 10})
        touch(file, 1_000)
    else:
        touch(file, 2_000)

    with pytest.raises(FileChangedError, match="refresh again: 'a'"):
        read_footers(str(tmp_path), files, executor=inline)


def test_a_file_that_becomes_a_folder_says_to_refresh_again(tmp_path: Path) -> None:
    file = write(tmp_path, "a")
    files = list_files(str(tmp_path)).files
    file.unlink()
    file.mkdir()

    with pytest.raises(FileChangedError):
        read_footers(str(tmp_path), files, executor=inline)


def test_an_unreadable_file_is_named(shared: Path) -> None:
    write(shared, "a").chmod(0)

    with pytest.raises(UnreadableFootersError, match="'a': Permission denied"):
        take_inline(str(shared))


def test_a_limit_of_open_files_is_never_taken_for_damage(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path, f"{number}")
    # What is imported and started here needs no files later.
    take_inventory(Look(location=str(tmp_path)))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    told = []
    # More are needed if this process has others open above the lowest free number.
    while told[-1:] != ["taken"] and len(told) < 500:
        lowest = os.dup(0)
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + len(told), hard))
        try:
            take_inventory(Look(location=str(tmp_path)))
            told.append("taken")
        except InventoryError as error:
            told.append(str(error))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert told[-1] == "taken"
    refused = [text for text in told if text != "taken"]
    assert len(refused) > 2
    for text in refused:
        assert "Too many open files: raise this process's limit" in text
        assert not re.search("damage|restore|remove|rewrite", text)


def test_an_unlistable_folder_is_named(shared: Path) -> None:
    write(shared, "k=1/a")
    write(shared, "k=2/a")
    (shared / "k=2").chmod(0)

    with pytest.raises(LocationError, match="is not readable") as caught:
        take_inline(str(shared))

    assert caught.value.folder == str(shared / "k=2")


def test_a_folder_whose_files_cannot_be_examined_is_named(shared: Path) -> None:
    write(shared, "k=1/a")
    (shared / "k=1").chmod(0o444)

    with pytest.raises(LocationError, match="is not readable"):
        take_inline(str(shared))


def test_an_inventory_cancelled_while_reading_footers_stops(tmp_path: Path) -> None:
    for number in range(600):
        write(tmp_path, f"{number}", {"x": [number]})
    cancelled = threading.Event()

    def on_progress(progress: RefreshProgress) -> None:
        if progress.phase == "reading footers":
            cancelled.set()

    with pytest.raises(InventoryCancelledError):
        take_inline(str(tmp_path), on_progress=on_progress, cancelled=cancelled)


def test_an_error_in_the_callers_progress_callback_is_not_hidden(tmp_path: Path) -> None:
    write(tmp_path, "a")

    def on_progress(progress: RefreshProgress) -> None:
        raise RuntimeError("the caller's own")

    with pytest.raises(RuntimeError, match="the caller's own"):
        take_inline(str(tmp_path), on_progress=on_progress)
