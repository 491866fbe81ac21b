"""Files replaced under their names are never read by what was known of those before them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import windrow
from tests.support.laws import examples
from tests.support.servers import embedded
from tests.support.tables.replacements import (
    file_of,
    ids_in,
    make_table,
    replace,
    replacements,
    write,
)
from windrow_tables.executor.errors import StaleFileError

numbers = count()

BOUNDS = st.tuples(st.integers(0, 3_200), st.integers(0, 1_200)).map(lambda b: (b[0], sum(b)))
# The files that change, how the table is looked at, and the condition of the query afterwards.
ROUNDS = st.lists(
    st.tuples(
        st.lists(replacements, min_size=1, max_size=2),
        st.sampled_from(["refresh", "full", "staleness"]),
        BOUNDS,
    ),
    min_size=3,
    max_size=6,
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[windrow.Client]:
    root = tmp_path_factory.mktemp("rewrites")
    with embedded.client(root / "state", allowed_locations=[str(root.parent)]) as client:
        yield client


def ids_by(
    client: windrow.Client, table: str, bounds: tuple[int, int], **options: Any
) -> list[int]:
    condition = f"id >= {bounds[0]} AND id <= {bounds[1]}"
    found = client.scan(table, filter=condition, threads=1, **options).to_table()["id"].to_pylist()
    return sorted(found)


@examples(16, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rounds=ROUNDS, trusts=st.booleans())
def test_after_a_look_at_a_table_its_rows_are_those_of_its_files(
    client: windrow.Client, tmp_path: Path, rounds: list[Any], trusts: bool
) -> None:
    number = next(numbers)
    location, name = make_table(tmp_path / f"t{number}"), f"t.t{number}"
    # Times of long ago, so that folders are trusted where that is allowed at all.
    for path in [*location.rglob("*"), location]:
        os.utime(path, (10**9, 10**9))
    client.register_table(name, str(location), trust_folder_times=trusts)
    client.refresh(name)
    for changes, look, bounds in rounds:
        for change in changes:
            replace(location, change)
        if look == "full" or (look == "refresh" and not trusts):
            client.refresh(name, full=look == "full")
            found = ids_by(client, name, bounds)
        else:
            found = ids_by(client, name, bounds, max_staleness=0)

        assert found == ids_in(location, *bounds)


def test_a_file_that_has_changed_fails_one_scan_and_the_next_one_looks(
    client: windrow.Client, tmp_path: Path
) -> None:
    location = make_table(tmp_path / "table")
    client.register_table("t.once", str(location))
    client.refresh("t.once")
    write(file_of(location, 2), 7_000, 5)
    everything = (0, 10_000)

    with pytest.raises(StaleFileError, match=r"refresh the table and plan again"):
        ids_by(client, "t.once", everything)

    assert ids_by(client, "t.once", everything) == ids_in(location, *everything)
    # Also where the old bounds say that no file can hold such a row.
    assert ids_by(client, "t.once", (7_000, 7_100)) == ids_in(location, 7_000, 7_100) != []


def test_a_look_that_fails_keeps_nobody_from_the_files_that_are_there(
    client: windrow.Client, tmp_path: Path
) -> None:
    location = make_table(tmp_path / "table")
    client.register_table("t.broken", str(location))
    client.refresh("t.broken")
    file_of(location, 2).write_bytes(b"no Parquet")

    with pytest.raises(StaleFileError):
        ids_by(client, "t.broken", (0, 10_000))

    assert ids_by(client, "t.broken", (0, 1_100)) == ids_in_first_folder(location)


def ids_in_first_folder(location: Path) -> list[int]:
    return ids_in(location / "ds=2026-11-01", 0, 1_100)


def test_a_trusting_table_is_compared_in_full_by_plans_that_want_to_know(
    client: windrow.Client, tmp_path: Path
) -> None:
    location = make_table(tmp_path / "table")
    # Until then, a folder's time is not trusted.
    time.sleep(2.1)
    client.register_table("t.trusting", str(location), trust_folder_times=True)
    client.refresh("t.trusting")
    write(file_of(location, 2), 7_000, 5)
    client.refresh("t.trusting")

    assert ids_by(client, "t.trusting", (7_000, 7_100)) == []
    assert ids_by(client, "t.trusting", (7_000, 7_100), max_staleness=0) != []
    write(file_of(location, 3), 8_000, 5)
    # It is known now that files of this table are rewritten.
    client.refresh("t.trusting")
    assert ids_by(client, "t.trusting", (8_000, 8_100)) == ids_in(location, 8_000, 8_100) != []
