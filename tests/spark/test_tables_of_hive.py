"""Transactional tables that Hive's own classes wrote have the rows that Hive reads."""

from __future__ import annotations

import random
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyarrow import orc
from pyspark.sql import SparkSession

import windrow
from tests.support.tables.hive_acid import History, rows_of, table_of_hive, valid
from windrow_calls.errors import RefreshFailedError
from windrow_core.files.acid.choosing import AcidFolderError, choose
from windrow_core.files.acid.names import folder_of
from windrow_core.files.acid.write_ids import WriteIds

pytestmark = pytest.mark.usefixtures("interpreted")


def test_folders_are_chosen_as_hive_chooses_them(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(16)
    told, chosen, listed = [], [], []
    for number in range(400):
        folder = tmp_path / str(number)
        names = {_name(chance) for _ in range(chance.randint(1, 9))}
        for name in names:
            (folder / name).mkdir(parents=True)
        highest = chance.randint(1, 9)
        aborted = sorted({chance.randint(1, highest) for _ in range(chance.choice((0, 0, 1, 3)))})
        try:
            text = table_of_hive(spark, folder).state(valid(highest, aborted))
            told.append(sorted(text.partition("originals")[0].split()))
        except Py4JJavaError as error:
            reason = str(error)
            told.append(["error"] if "Not enough history" in reason else [reason])
        listed.append((sorted(names), highest, aborted))
        ids = WriteIds.parse(f"t:{highest}:{2**63 - 1}::{','.join(map(str, aborted))}")
        folders = [found for found in map(folder_of, names) if found is not None]
        try:
            ours = choose("", folders, names, ids, has_originals=True, insert_only=False)
        except AcidFolderError:
            chosen.append(["error"])
            continue
        base = [ours.base] if ours.base else []
        chosen.append(sorted(one.name for one in (*base, *ours.deltas, *ours.delete_deltas)))
    assert [pair for pair in zip(chosen, told, listed, strict=True) if pair[0] != pair[1]] == []


def _name(chance: random.Random) -> str:
    least = chance.randint(1, 8)
    most = least + chance.choice((0, 0, 0, 1, 3))
    statement = f"_{chance.randint(0, 2):04}" if least == most and chance.random() < 0.7 else ""
    return chance.choice(
        (
            f"base_{least:07}",
            f"delta_{least:07}_{most:07}{statement}",
            f"delta_{least:07}_{most:07}{statement}",
            f"delete_delta_{least:07}_{most:07}{statement}",
        )
    )


def write_originals(folder: Path, chance: random.Random) -> None:
    """Write files from before the table became transactional, or none."""
    # Hive 2 expects one file per bucket: it does not see `000000_0_copy_1`.
    for name in ("000000_0", "000001_0")[: chance.choice((0, 2))]:
        folder.mkdir(exist_ok=True)
        count = chance.randint(1, 6)
        columns = {
            "a": pa.array([chance.randint(-9, 9) for _ in range(count)], pa.int32()),
            "b": pa.array([name] * count),
            "ts": pa.array([1_557_126_489_000_010] * count, pa.timestamp("us")),
            "d": pa.array([Decimal("1.20")] * count, pa.decimal128(10, 2)),
        }
        orc.write_table(pa.table(columns), folder / name)


def as_found(row: dict[str, Any]) -> str:
    """Return a row that Hive read as Spark shows it."""
    number = row["d"] if row["d"] is None else Decimal(row["d"]).quantize(Decimal("0.01"))
    # As `collect` returns it: in local time of this machine.
    time = row["ts"] and datetime.fromisoformat(row["ts"])
    return repr((row["a"], row["b"], time, number))


@pytest.mark.parametrize("seed", range(6))
def test_rows_are_those_that_hive_reads(
    spark: SparkSession, client: windrow.Client, folder: Path, seed: int
) -> None:
    name = f"history{seed}"
    chance = random.Random(seed)
    write_originals(folder / name, chance)
    history = History(table_of_hive(spark, folder / name), chance)
    history.go_on(9)
    client.register_table(name, str(folder / name), "orc", transactional="full")
    for highest in (history.highest, history.highest // 2 + 1):
        aborted = [one for one in history.aborted if one <= highest]
        ids = f"{name}:{highest}:{2**63 - 1}::{','.join(map(str, aborted))}"
        try:
            told = rows_of(history.table.read(valid(highest, aborted), history.buckets))
        except Py4JJavaError as error:
            if "Not enough history" not in str(error):
                raise
            with pytest.raises(RefreshFailedError, match="was compacted"):
                client.refresh(name, valid_write_ids=ids)
            continue
        client.refresh(name, valid_write_ids=ids)
        found = client.read(spark, name).select("a", "b", "ts", "d").collect()
        assert sorted(map(repr, map(tuple, found))) == sorted(as_found(row) for _, row in told), ids


def test_a_base_that_hive_2_compacted_is_not_taken_for_an_overwrite(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    table = table_of_hive(spark, folder / "merged")
    for transaction in (1, 2):
        table.write(transaction, 0, 0, f"insert\t\t{transaction}\tx\tnull\tnull")
    table.compact(valid(2), 1, True)
    table.clean(valid(2))
    client.register_table("merged", str(folder / "merged"), "orc", transactional="full")

    with pytest.raises(RefreshFailedError, match=r"base_0000002.*was compacted up to write id 2"):
        client.refresh("merged", valid_write_ids=f"merged:1:{2**63 - 1}::")

    client.refresh("merged", valid_write_ids=f"merged:2:{2**63 - 1}::")
    assert client.read(spark, "merged").count() == 2
