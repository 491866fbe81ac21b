"""Files whose footers claim gigabytes are named; the process that reads them stays small."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.inventory.files import write
from windrow_core.files.errors import UnreadableFootersError
from windrow_core.files.limits import MAX_FOOTER_BYTES, MAX_GAINED_BYTES, ReadLimits
from windrow_service.inventory.build import take_inventory
from windrow_service.inventory.footers.isolation import IsolatedExecutor, LostProcessError
from windrow_service.inventory.look import Look

GIB = 2**30
MOST_BYTES = 400 * 2**20


@pytest.fixture
def process() -> Iterator[IsolatedExecutor]:
    with IsolatedExecutor(1) as executor:
        yield executor


def peak_bytes(process: IsolatedExecutor) -> int:
    status = process.submit(Path.read_text, Path("/proc/self/status")).result()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


def claim(path: Path, footer_bytes: int) -> None:
    """Make a sparse file whose end claims a footer of this length."""
    with path.open("wb") as file:
        file.write(b"PAR1")
        file.seek(footer_bytes + 100)
        file.write(footer_bytes.to_bytes(4, "little") + b"PAR1")


@pytest.mark.parametrize("footer_bytes", [MAX_FOOTER_BYTES, GIB, 4 * GIB - 1])
def test_a_sparse_file_that_claims_a_long_footer_is_named_and_not_read(
    tmp_path: Path, process: IsolatedExecutor, footer_bytes: int
) -> None:
    write(tmp_path, "good")
    claim(tmp_path / "bomb", footer_bytes)

    with pytest.raises(UnreadableFootersError, match="MAX_FOOTER_BYTES") as caught:
        take_inventory(Look(location=str(tmp_path)), executor=process)

    assert [path for path, _ in caught.value.files] == ["bomb"]
    assert peak_bytes(process) < MOST_BYTES


def test_many_long_footers_are_not_held_in_memory_together(
    tmp_path: Path, process: IsolatedExecutor
) -> None:
    for number in range(10):
        claim(tmp_path / f"{number}", MAX_FOOTER_BYTES - 8)

    with pytest.raises(UnreadableFootersError) as caught:
        take_inventory(Look(location=str(tmp_path)), executor=process)

    assert len(caught.value.files) == 10
    assert peak_bytes(process) < MOST_BYTES


def test_a_longer_footer_is_read_if_the_limit_allows_it(
    tmp_path: Path, process: IsolatedExecutor
) -> None:
    columns = {f"a_long_name_of_a_column_{n}": [n] for n in range(1_000)}
    write(tmp_path, "wide", columns)

    with pytest.raises(UnreadableFootersError, match="at most 65,536 are read"):
        take_inventory(
            Look(location=str(tmp_path), limits=ReadLimits(footer_bytes=65_536)), executor=process
        )
    assert len(take_inventory(Look(location=str(tmp_path)), executor=process).files) == 1


def test_a_small_footer_that_claims_a_long_list_is_named(
    tmp_path: Path, process: IsolatedExecutor
) -> None:
    path = write(tmp_path, "bomb")
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    # The version, then the list of schema elements: claim an impossible number of them.
    assert data[footer : footer + 4].startswith(b"\x15\x04\x19")
    claimed = data[: footer + 3] + b"\xfc\xff\xff\xff\xff\x07" + data[footer + 4 : -8]
    length = len(claimed) - footer
    path.write_bytes(claimed + length.to_bytes(4, "little") + b"PAR1")

    with pytest.raises(UnreadableFootersError, match="bomb"):
        take_inventory(Look(location=str(tmp_path)), executor=process)

    assert peak_bytes(process) < MOST_BYTES


def test_a_task_that_takes_too_much_memory_loses_only_its_process(
    process: IsolatedExecutor,
) -> None:
    with pytest.raises(LostProcessError, match="bytes of memory"):
        process.submit(bytes, MAX_GAINED_BYTES + GIB).result()
    assert process.submit(divmod, 7, 2).result() == (3, 1)
