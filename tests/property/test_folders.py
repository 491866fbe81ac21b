"""Laws of listing only changed folders: it finds the same files as listing all."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_service.inventory.listing.relisting import KnownListing, Relisting, list_again
from windrow_service.inventory.progress import ProgressMeter

# Several ticks of a file system's clock, so that later changes get a later time.
TICKS_S = 0.02

FOLDERS = st.sampled_from(["", "a", "b", "a/a", "a/b", "b/a", "a/a/a"])
NAMES = st.sampled_from(["f", "g"])
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("write"), FOLDERS, NAMES, st.integers(0, 2)),
        st.tuples(st.just("remove"), FOLDERS, NAMES),
        st.tuples(st.just("make folder"), FOLDERS),
        st.tuples(st.just("remove folder"), FOLDERS.filter(bool)),
        st.tuples(st.just("rename folder"), FOLDERS.filter(bool), FOLDERS.filter(bool)),
        st.tuples(st.just("move file"), FOLDERS, NAMES, FOLDERS, NAMES),
        st.tuples(st.just("link"), FOLDERS, FOLDERS, NAMES),
    ),
    max_size=8,
)


def an_hour_later() -> int:
    """Return a time at which everything just made is old."""
    return time.time_ns() + 3600 * 10**9


def listed(location: Path, known: KnownListing | None = None) -> Relisting:
    return list_again(
        str(location), ProgressMeter(), known, clock_ns=an_hour_later, trusts_folders=True
    )


@examples(25)
@given(st.lists(CHANGES, min_size=2, max_size=5))
def test_the_result_does_not_depend_on_earlier_listings(rounds: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        location = Path(folder) / "table"
        location.mkdir()
        found = listed(location)
        for number, changes in enumerate(rounds):
            for change in changes:
                _apply(location, number, change)
            time.sleep(TICKS_S)

            found = listed(location, KnownListing(files=found.files, state=found.state, full=False))

            assert found.files.equals(listed(location).files)
            time.sleep(TICKS_S)


def _apply(location: Path, number: int, change: tuple[Any, ...]) -> None:
    what, folder, *rest = change
    path = location / folder
    if what == "make folder":
        path.mkdir(parents=True, exist_ok=True)
    elif what == "write":
        name, content = rest
        path.mkdir(parents=True, exist_ok=True)
        (location / ".new").write_bytes(b"x" * (number + content))
        os.replace(location / ".new", path / name)
    elif what == "remove":
        (path / rest[0]).unlink(missing_ok=True)
    elif what == "remove folder":
        shutil.rmtree(path, ignore_errors=True)
    elif what == "rename folder":
        target = location / rest[0]
        if path.is_dir() and not target.exists() and not target.is_relative_to(path):
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
    elif what == "move file":
        name, target, target_name = rest
        if (path / name).is_file() and (location / target).is_dir():
            os.replace(path / name, location / target / target_name)
    elif what == "link":
        target, name = rest
        if path.is_dir() and not (path / "link").is_symlink():
            (path / "link").symlink_to(location / target / name)
