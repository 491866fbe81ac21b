"""Packing as work of maintenance: what rounds decide, what workers do, and what has no room."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import windrow
from tests.support.servers import embedded
from tests.support.servers.coordinators import wait_until
from tests.support.tables.packs import (
    pack_here,
    publish_new_packs,
    published_now,
    write_small_files,
)
from windrow_core.models import ClaimUpdate, MaintenanceReceipt, WorkOutcome
from windrow_jobs.maintain import maintain
from windrow_service.inventory.listing import relisting
from windrow_service.usecases.maintenance import packing, partitions
from windrow_tables.executor import files

pytestmark = pytest.mark.slow

EAGER: dict[str, Any] = {
    "pack": True,
    "min_age_seconds": 0,
    "min_gain": 0.0,
    "reads_per_day": 100.0,
}
TABLE = "s.t"
# A listing tells nothing of files that had changed just before it.
_MARGIN_S = 2.1


@pytest.fixture
def client(tmp_path: Path) -> Iterator[windrow.Client]:
    """A coordinator with a table of 60 small files in 7 partitions."""
    write_small_files(tmp_path / "t")
    with embedded.client(tmp_path / "state", [str(tmp_path)]) as client:
        client.register_table(TABLE, str(tmp_path / "t"))
        time.sleep(_MARGIN_S)
        client.refresh(TABLE)
        yield client


def decided(client: windrow.Client) -> dict[str, MaintenanceReceipt]:
    client.decide_maintenance()
    return {one.reason: one for one in client.receipts(TABLE)}


def rows_of(client: windrow.Client) -> pa.Table:
    return client.scan(TABLE).to_table().sort_by("id")


def no_spark() -> Any:
    raise AssertionError("packing needs no Spark")


def published(client: windrow.Client) -> list[Any]:
    return [one for one in client.list_packs(TABLE) if one.state == "published"]


def test_a_worker_without_spark_packs_what_a_policy_says(client: windrow.Client) -> None:
    expected = rows_of(client)
    client.set_policy(TABLE, **EAGER)

    waiting = decided(client)["waiting"]
    total = maintain(no_spark, client, without_spark=True)
    after = decided(client)

    assert waiting.prediction is not None
    assert (waiting.prediction.files, waiting.prediction.partitions) == (60, 7)
    assert "60 files (" in waiting.text
    assert "in 7 partitions would be read from packs: " in waiting.text
    assert (total.done, total.files_packed, total.files_before) == (1, 60, 0)
    (pack,) = published(client)
    assert pack.source_count == 60
    done = after["done"]
    assert done.outcome is not None
    assert (done.outcome.files_before, done.outcome.files_after) == (60, 1)
    assert done.outcome.core_seconds > 0
    assert "60 files (" in done.text
    assert after["nothing_small"].text == (
        "nothing to do: too few small files are outside of packs"
    )
    scan = client.scan(TABLE)
    assert scan.plan.packs
    assert scan.to_table().sort_by("id").equals(expected)


def test_rewrites_wait_for_a_worker_with_spark(client: windrow.Client) -> None:
    client.set_policy(TABLE, **EAGER | {"pack": False})
    client.decide_maintenance()

    assert client.claim_work("w", without_spark=True) is None
    item = client.claim_work("w")

    assert item is not None
    assert item.packing is None
    client.update_claim(item.claim_id, ClaimUpdate(state="done", outcome=WorkOutcome()))


REASONS: list[tuple[dict[str, Any], str, str]] = [
    ({"enabled": False}, "off", "its policy is off"),
    ({"filter": "k = 1"}, "nothing_small", "too few small files"),
    ({"filter": "id = 1"}, "unfit", "cannot choose what to pack: use partition columns"),
    ({"exempt_folders": ["k=0", "k=1"]}, "nothing_small", "too few small files"),
    ({"reads_per_day": 0.0}, "unread", "nobody reads its part outside of packs"),
    ({"min_gain": 1e6}, "not_worth", "the policy asks for 1e+06"),
    ({"pack_max_bytes": 10}, "pack_full", "--pack-max-bytes"),
]


def test_what_is_not_packed_has_a_reason_in_words(client: windrow.Client) -> None:
    usual = EAGER | {"enabled": True, "filter": None, "exempt_folders": None}
    for fields, reason, text in REASONS:
        client.set_policy(TABLE, **usual | fields)

        receipt = decided(client)[reason]

        assert receipt.state == "left_alone"
        assert text in receipt.text


def test_partitions_that_are_written_to_wait(client: windrow.Client, tmp_path: Path) -> None:
    for path in (tmp_path / "t" / "k=0").iterdir():
        path.touch()
    time.sleep(_MARGIN_S)
    client.refresh(TABLE)
    client.set_policy(TABLE, **EAGER | {"min_age_seconds": 3_600})

    waiting = decided(client)["waiting"]
    maintain(no_spark, client, without_spark=True)

    assert waiting.prediction is not None
    assert waiting.prediction.files == 60 - 9
    assert sum(one.source_count for one in published(client)) == 60 - 9


def test_packs_beyond_the_bytes_of_a_policy_are_withdrawn(client: windrow.Client) -> None:
    assert pack_here(client, TABLE) == 1
    client.set_policy(TABLE, **EAGER | {"pack_max_bytes": 10})

    client.decide_maintenance()

    (pack,) = client.list_packs(TABLE)
    assert pack.state != "published"
    assert pack.withdrawn_because is not None
    assert "other packs save more" in pack.withdrawn_because


def test_packs_stay_until_those_that_take_their_room_are_there(
    client: windrow.Client, tmp_path: Path
) -> None:
    (old,), _ = publish_new_packs(client, TABLE)
    # They save more reading for their bytes.
    write_small_files(tmp_path / "t", 200, first=1_000, rows=1)
    time.sleep(_MARGIN_S)
    client.refresh(TABLE)
    client.set_policy(TABLE, **EAGER | {"pack_max_bytes": 2 * old.size_bytes})

    assert "waiting" in decided(client)
    assert [one.pack_id for one in published(client)] == [old.pack_id]
    maintain(no_spark, client, without_spark=True)
    counts = {one.source_count: one.size_bytes for one in published(client)}
    assert counts.keys() == {60, 200}
    client.set_policy(TABLE, **EAGER | {"pack_max_bytes": sum(counts.values()) - 1})
    client.decide_maintenance()

    assert [one.source_count for one in published(client)] == [200]


def test_a_pack_that_is_too_large_leaves_its_room_to_others(
    client: windrow.Client, tmp_path: Path
) -> None:
    (large,), _ = publish_new_packs(client, TABLE)
    write_small_files(tmp_path / "t", 4, first=1_000)
    (small,), _ = publish_new_packs(client, TABLE)
    client.set_policy(TABLE, **EAGER | {"pack_max_bytes": large.size_bytes - 1})

    client.decide_maintenance()

    assert [one.pack_id for one in published(client)] == [small.pack_id]


def test_tables_with_more_partitions_than_are_remembered_are_maintained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "_MAX_FOLDERS", 5)
    monkeypatch.setattr(partitions, "_MAX_REWRITES", 5)
    with embedded.client(tmp_path / "state", [str(tmp_path)]) as client:
        for name, count in (("s.small", 3), (TABLE, 7)):
            for at in range(count):
                write_small_files(tmp_path / name / f"j={at}", 49)
            client.register_table(name, str(tmp_path / name))
            client.refresh(name)
        client.set_policy("*", **EAGER | {"pack": False})
        assert decided(client)["waiting"].prediction is not None
        client.set_policy("*", **EAGER)

        waiting = decided(client)["waiting"]

    assert waiting.prediction is not None
    assert waiting.prediction.partitions == 7 * 7


def make_packs_of_four(
    client: windrow.Client, location: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> list[int]:
    """Make a pack of 60 files and then some of four; return how many sources each has."""
    # Otherwise each pack waits for two seconds.
    monkeypatch.setattr(relisting, "_MARGIN_NS", 0)
    monkeypatch.setattr(files, "TICK_S", 0.0)
    counts = []
    for number in range(count + 1):
        if number:
            write_small_files(location, 4, first=56 + 4 * number)
            client.refresh(TABLE)
        (pack,), left = published_now(client, TABLE)
        assert not left
        counts.append(pack.source_count)
    return counts


def test_an_exempt_folder_whose_files_are_packed_anew_exempts_no_other(
    client: windrow.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_packs_of_four(client, tmp_path / "t", monkeypatch, 16)
    write_small_files(tmp_path / "t", 70, first=700)
    client.refresh(TABLE)
    client.set_policy(TABLE, **EAGER | {"exempt_folders": ["k=0"]})

    waiting = decided(client)["waiting"]

    assert waiting.prediction is not None
    # Sixteen packs are packed anew, with the files of that folder that they have.
    assert waiting.prediction.files == 16 * 4 + 70 - 10


def test_many_packs_of_a_kind_become_one(
    client: windrow.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = make_packs_of_four(client, tmp_path / "t", monkeypatch, 17)

    # The seventeenth of four files finds sixteen others.
    assert counts == [60, *[4] * 16, 17 * 4]
    assert rows_of(client)["id"].to_pylist() == list(range(128 * 40))
    # They stand for no file any more.
    wait_until(lambda: [one.source_count for one in published(client)] == [68, 60])
