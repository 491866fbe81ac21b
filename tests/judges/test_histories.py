"""What readers see while writers and replicas are killed is what they would see one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.judges.histories import NoCheckerError, histories, verdict

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

History = list[dict[str, Any]]


def judged(history: History) -> str:
    try:
        return verdict(history)
    except NoCheckerError:
        pytest.skip("Go, or its module porcupine, cannot be had")


def test_histories_of_killed_drivers_and_replicas_are_linearizable(
    postgresql_server: str, tmp_path: Path
) -> None:
    _, by_table = histories(postgresql_server, tmp_path, seed=7)

    for history in by_table.values():
        reads = [one for one in history if one["kind"] == "read"]
        assert len(reads) > 5
        assert len(history) - len(reads) > 5
        assert judged(history) == "Ok"
        # The checker has looked: with any row of the last look lost, it says so.
        last = max(reads, key=lambda one: one["return"])
        last["ids"] = last["ids"][1:]
        assert judged(history) == "Illegal"


def _write(ids: list[int], call: float, end: float | None, kind: str = "append") -> dict[str, Any]:
    return {"kind": kind, "rows": {"p=0": ids}, "call": call, "return": end}


def _read(ids: list[int], call: float, end: float) -> dict[str, Any]:
    return {"kind": "read", "ids": ids, "call": call, "return": end}


@pytest.mark.parametrize(
    ("history", "outcome"),
    [
        ([_write([1], 0, 1), _write([2], 2, 3), _read([1, 2], 4, 5)], "Ok"),
        # At the same time, either comes first.
        ([_write([1], 0, 9), _read([], 1, 2), _read([1], 3, 4)], "Ok"),
        ([_write([1], 0, None), _read([], 1, 2), _read([1], 3, 4)], "Ok"),
        ([_write([1], 0, None), _read([], 1, 2)], "Ok"),
        ([_write([1], 0, 1), _write([2], 2, None, "overwrite"), _read([2], 3, 4)], "Ok"),
        # Lost, stale, gone again, doubled, of nobody, half of a write.
        ([_write([1], 0, 1), _write([2], 2, 3), _read([2], 4, 5)], "Illegal"),
        ([_write([1], 0, 1), _write([2], 2, 3), _read([1], 4, 5)], "Illegal"),
        ([_write([1], 0, None), _read([1], 1, 2), _read([], 3, 4)], "Illegal"),
        ([_write([1], 0, 1), _read([1, 1], 2, 3)], "Illegal"),
        ([_write([1], 0, 1), _read([1, 9], 2, 3)], "Illegal"),
        ([_write([1, 2], 0, None), _read([1], 1, 2)], "Illegal"),
        ([_write([1], 0, 1), _write([2], 2, 3, "overwrite"), _read([1, 2], 4, 5)], "Illegal"),
    ],
)
def test_lost_rows_and_stale_reads_are_found(history: History, outcome: str) -> None:
    assert judged(history) == outcome
