"""Law of transactional tables: for each list of write ids, the rows are those of the history."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest

from tests.support.laws import times
from tests.support.tables.acid_reading import inventory_of, rows_of
from tests.support.tables.acid_tables import AcidTable, Reader, random_history
from windrow_core.files.acid.choosing import AcidFolderError

# Each partition has a history of its own, which makes more than 500 histories.
PARTITIONS = [f"ds={number}/" for number in range(5)]
TABLES, AT_A_TIME = (times(6_000, by_day=120)), 24


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, TABLES, AT_A_TIME))
def test_the_rows_read_are_those_that_the_histories_left(first: int) -> None:
    checked = refused = 0
    for seed in range(first, first + AT_A_TIME):
        random_ = random.Random(seed)
        with tempfile.TemporaryDirectory() as folder:
            partitions = PARTITIONS if seed % 10 else [""]
            table = AcidTable(Path(folder), partitions, random_.randint(1, 2))
            readers: list[Reader] = []
            for _ in range(random_.choice([1, 1, 2])):
                random_history(table, random_, random_.randint(2, 5) * len(partitions))
                readers.append(table.now())
            for reader in readers:
                try:
                    inventory = inventory_of(table.location, reader.text)
                except AcidFolderError:
                    if reader is readers[-1]:
                        raise
                    # An earlier reader may need a write that a compaction has merged with later ones.
                    refused += 1
                    continue
                got = sorted(row["id"] for row in rows_of(table.location, inventory, reader.text))
                assert got == table.ids(reader), (seed, reader.text)
                checked += 1
    assert checked > 2 * refused
