"""Files are read beneath the folder of their table, in the state that is asked for."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from windrow_core.files.places import open_file, read_file
from windrow_core.files.status import FileStatus
from windrow_core.files.table_paths import home_and_path, home_of

_CONTENT = bytes(range(100))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file of a table."""
    path = tmp_path / "table" / "ds=1" / "a"
    path.parent.mkdir(parents=True)
    path.write_bytes(_CONTENT)
    return path


@pytest.mark.parametrize(
    ("start", "end", "most_bytes", "content"),
    [
        (0, None, None, _CONTENT),
        (90, None, None, _CONTENT[90:]),
        (-10, None, None, _CONTENT[90:]),
        (-200, None, None, _CONTENT),
        (10, 20, None, _CONTENT[10:20]),
        (10, 20, 5, _CONTENT[10:15]),
        (0, 1_000, None, _CONTENT),
        (100, 110, None, b""),
        (20, 10, None, b""),
    ],
)
def test_a_part_of_a_file_ends_with_the_file_at_the_latest(
    file: Path, start: int, end: int | None, most_bytes: int | None, content: bytes
) -> None:
    part = read_file(home_of(str(file.parent)), str(file), None, start, end, None, most_bytes)

    assert part.content == content
    assert part.state == FileStatus(100, file.stat().st_mtime_ns)


def test_a_file_in_another_state_is_not_read(file: Path) -> None:
    home, path = home_and_path(str(file.parents[1]), "ds=1/a")

    part = read_file(home, path, FileStatus(100, 1))

    assert (part.content, part.state.size_bytes) == (b"", 100)


def test_no_link_leads_out_of_the_table(file: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a").write_bytes(b"secret")
    home, path = home_and_path(str(file.parents[1]), "ds=1/a")
    file.unlink()
    file.symlink_to(tmp_path / "other" / "a")

    with pytest.raises(OSError, match="leads out of the table's location") as refused:
        read_file(home, path)
    with pytest.raises(OSError, match="leads out of the table's location"), open_file(home, path):
        pass

    assert refused.value.errno == errno.EXDEV
