"""Transactional tables that Hive's own classes wrote: Hive, too, says what is in them."""

from __future__ import annotations

import random
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tests.support.hive_acid import table_of_hive, valid
from windrow.files.acid.choosing import AcidFolderError, choose
from windrow.files.acid.names import folder_of
from windrow.files.acid.write_ids import WriteIds


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
