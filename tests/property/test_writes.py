"""Whatever the order of writes, and wherever drivers die, a table holds the committed rows."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

import windrow
import windrow_tables.commits
from tests.support.faults.readers import listed_ids, planned_ids
from tests.support.faults.writers import STEPS, Writers
from tests.support.laws import examples
from tests.support.servers.coordinators import running
from windrow_service.settings import Settings

pytestmark = pytest.mark.slow

DAYS = ["ds=1", "ds=2", "ds=__HIVE_DEFAULT_PARTITION__"]
UNDONE = ("begun", "staged", "admitted", "linked")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    state = tmp_path_factory.mktemp("state")
    with running(Settings(state_dir=state, allowed_locations=("/",))) as url:
        yield url


writes = st.tuples(
    st.sampled_from(["append", "overwrite_partitions", "overwrite"]),
    st.sets(st.sampled_from(DAYS)),
    st.one_of(st.none(), st.tuples(st.sampled_from(list(STEPS)), st.integers(1, 2))),
)


# Not shrunk: each step is a process, so shrinking a failure would take minutes.
@examples(6, phases=[Phase.generate])
@given(partitioned=st.booleans(), asked=st.lists(writes, min_size=1, max_size=4))
def test_a_table_holds_exactly_the_rows_of_committed_writes(
    url: str,
    writers: Writers,
    tmp_path_factory: pytest.TempPathFactory,
    partitioned: bool,
    asked: list[tuple[str, set[str], tuple[str, int] | None]],
) -> None:
    location: Path = tmp_path_factory.mktemp("table") / "t"
    table, ids = f"t_{uuid.uuid4().hex}", count()
    expected: dict[str, list[int]] = {}
    with windrow.connect(url) as client:
        client.register_table(table, str(location))
        for mode, days, dies in asked:
            folders = sorted(days) if partitioned else [""] if days else []
            new = {folder: [next(ids), next(ids)] for folder in folders}
            files = {
                f"{folder}/{uuid.uuid4().hex}.parquet".strip("/"): new[folder] for folder in new
            }
            outcome = writers.write(url, table, files, mode=mode, dies=dies)
            assert outcome == "committed" or (outcome == "killed" and dies is not None)
            # Recover at once: otherwise the next driver might die while it recovers this write.
            windrow_tables.commits.recover(client, table)
            if outcome == "killed" and dies is not None and dies[0] in UNDONE:
                continue
            if mode == "overwrite" or (mode == "overwrite_partitions" and new and not partitioned):
                expected = {}
            for folder, some in new.items():
                kept = expected.get(folder, []) if mode == "append" else []
                expected[folder] = [*kept, *some]

        found = sorted(id_ for ids in expected.values() for id_ in ids)
        if client.table(table).current_snapshot is None:
            assert found == []
        else:
            assert planned_ids(url, table, location) == found
        if partitioned:
            there = {folder: some for folder, some in listed_ids(location).items() if some}
            assert there == {folder: sorted(some) for folder, some in expected.items()}
        assert not (location / "_windrow").exists()
        assert not list(client.writes(table, open_only=True))
    shutil.rmtree(location)
