"""Compiled classes are kept where nobody else can write, and never keep a driver from compiling."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from windrow_spark.class_cache import keep, kept, users_caches

KEY = "1" * 64
CLASSES = {"windrow.TableScan": b"\xca\xfe\xba\xbe" + bytes(range(256)) * 20, "windrow.A$B": b"x"}


@pytest.fixture
def caches(tmp_path: Path) -> Path:
    keep(tmp_path / "caches", KEY, CLASSES)
    return tmp_path / "caches"


def _folder(caches: Path) -> Path:
    return caches / "windrow" / "classes"


def _entry(caches: Path) -> Path:
    return _folder(caches) / f"{KEY}.zip"


def test_what_was_compiled_is_had_again(caches: Path) -> None:
    assert kept(caches, KEY) == CLASSES
    assert kept(caches, "2" * 64) is None
    assert _folder(caches).stat().st_mode & 0o777 == 0o700
    assert _entry(caches).stat().st_mode & 0o777 == 0o600


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


def _flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[60] ^= 1
    path.write_bytes(content)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_bytes(b"not an archive"),
    "cut": _cut,
    "a bit flipped": _flipped,
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a link": lambda path: path.rename(path.with_name("x")) and path.symlink_to(path.parent / "x"),
    "others may write": lambda path: path.chmod(0o620),
    "large": lambda path: os.truncate(path, 20_000_000),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_an_entry_that_is_damaged_is_not_used_and_made_anew(
    caches: Path, damage: Callable[[Path], object]
) -> None:
    damage(_entry(caches))
    assert kept(caches, KEY) is None

    keep(caches, KEY, CLASSES)

    assert kept(caches, KEY) == (None if _entry(caches).is_dir() else CLASSES)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
@pytest.mark.parametrize("depth", [0, 1])
def test_a_folder_that_others_may_write_to_is_not_used(caches: Path, mode: int, depth: int) -> None:
    folder = _folder(caches)
    [folder, folder.parent][depth].chmod(mode)
    before = sorted(folder.iterdir())

    keep(caches, "3" * 64, CLASSES)

    assert kept(caches, KEY) is None
    assert sorted(folder.iterdir()) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("is_folder", [True, False])
def test_what_somebody_else_has_put_there_is_not_used(caches: Path, is_folder: bool) -> None:
    os.chown(_folder(caches) if is_folder else _entry(caches), 12_345, 12_345)

    assert kept(caches, KEY) is None


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    caches = tmp_path / "file" / "caches"

    keep(caches, KEY, CLASSES)

    assert kept(caches, KEY) is None


def test_entries_of_a_month_ago_go_and_nothing_else(caches: Path) -> None:
    long_ago = time.time() - 31 * 86_400
    folder = _folder(caches)
    old, foreign = folder / f"{'4' * 64}.zip", folder / "thesis.zip"
    for path in (old, foreign):
        path.write_bytes(b"old")
        os.utime(path, (long_ago, long_ago))

    keep(caches, "5" * 64, CLASSES)

    assert not old.exists()
    assert foreign.exists()
    assert kept(caches, KEY) == CLASSES


def test_a_link_in_place_of_the_folder_is_not_followed(caches: Path, tmp_path: Path) -> None:
    _folder(caches).rename(tmp_path / "elsewhere")
    _folder(caches).symlink_to(tmp_path / "elsewhere")

    assert kept(caches, KEY) is None


def test_the_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert users_caches() == tmp_path
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert users_caches() == Path("/home/someone/.cache")
