"""Histories of tables whose writers are killed, judged by porcupine, a checker of linearizability.

It is a library for Go, which is fetched on first use.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.support.faults.killed_drivers import notes_in
from tests.support.faults.kills import fought
from tests.support.servers.databases import server_url

_PROGRAM = Path(__file__).parent
_TIMEOUT_S = 600.0
# Outcomes of writes that may have taken effect, now or once somebody recovers them.
_UNKNOWN = ("CommitInterruptedError",)
_TABLES = {"parted": "with four partitions", "flat": "without partitions"}
_KILLS, _EACH = 60, 12

_SECTION = """## Histories of tables whose writers are killed

Two writers, a compaction and a reader work on each of two tables, through two replicas on one PostgreSQL.
{kills} of them were killed at random moments and steps. What the writers and readers were told, and
when, is judged by [porcupine](https://github.com/anishathalye/porcupine), a checker of linearizability:
there must be an order of all writes and reads in which whatever had ended comes before what began
afterwards, and each read sees exactly the rows of the writes before it.

| table | appends | overwrites | reads | writes that nobody knows the end of | linearizable |
|---|---|---|---|---|---|
"""


class NoCheckerError(Exception):
    """Go or the module cannot be had."""


def history_of(notes: Path) -> list[dict[str, Any]]:
    """Return the reads and writes of a table, as its drivers have noted them.

    Writes that were refused took no effect, and are left out. So are compactions, which change no rows,
    and reads whose files were replaced before they had been read.

    Args:
        notes: The folder of the notes.
    """
    all_notes = list(notes_in(notes))
    ends = {one["ended"]: one for one in all_notes if one.get("ended") is not None}
    history: list[dict[str, Any]] = []
    ids: list[int] = []
    for one in all_notes:
        if "snapshot" in one:
            # A reader leaves out what it has seen before; notes of one driver follow one another.
            ids = one.get("ids", ids)
            history.append({"kind": "read", "ids": ids, "call": one["began"], "return": one["at"]})
        elif "write_id" in one and one["kind"] != "compaction":
            end = ends.get(one["write_id"])
            outcome = "killed" if end is None else end["outcome"]
            kind = "append" if one["mode"] == "append" else "overwrite"
            if outcome in ("committed", "killed", *_UNKNOWN):
                returned = end["at"] if end is not None and outcome == "committed" else None
                history.append(
                    {"kind": kind, "rows": one["rows"], "call": one["at"], "return": returned}
                )
    return history


def histories(server: str, folder: Path, seed: int) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    """Kill drivers and replicas of two tables; return the number of kills, and the tables' histories.

    Args:
        server: URL of a PostgreSQL server.
        folder: An empty folder.
        seed: Decides what is killed when, as far as chance is in our hands.
    """
    figures = fought(server, folder, _KILLS, each=_EACH, seed=seed)
    return figures.kills.total(), {name: history_of(folder / f"{name}-notes") for name in _TABLES}


def section() -> str:
    """Return what the page about judges says of histories."""
    with server_url() as server, TemporaryDirectory() as folder:
        kills, by_table = histories(server, Path(folder), seed=1)
    text = _SECTION.format(kills=kills)
    for name, history in by_table.items():
        kinds = [one["kind"] for one in history]
        counts = [kinds.count(kind) for kind in ("append", "overwrite", "read")]
        counts.append(sum(one["return"] is None for one in history))
        try:
            word = {"Ok": "yes", "Illegal": "no"}.get(verdict(history), "not known")
        except NoCheckerError:
            word = "not judged: Go cannot be had"
        text += (
            f"| {_TABLES[name]} | "
            + " | ".join(f"{count:,}" for count in counts)
            + f" | {word} |\n"
        )
    return text


def verdict(history: Sequence[dict[str, Any]]) -> str:
    """Return whether a history is linearizable: `Ok`, `Illegal`, or `Unknown` after minutes.

    Raises:
        NoCheckerError: Go or the module cannot be had.
    """
    try:
        _go("mod", "download")
    except (FileNotFoundError, subprocess.SubprocessError) as error:
        raise NoCheckerError from error
    return _go("run", ".", asked=json.dumps(list(history))).strip()


def _go(*command: str, asked: str = "") -> str:
    result = subprocess.run(
        ["go", *command],
        cwd=_PROGRAM,
        input=asked,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=True,
    )
    return result.stdout
