"""What came of cases that others have published, and the section of the page about them.

    WINDROW_CHECKOUTS=FOLDER python -m tests.judges.verdicts

runs all judges whose repositories are checked out in a folder. It notes in `verdicts.json` what came
of them, and writes the last section of docs/reference/judges.md.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

_NOTES = Path(__file__).with_suffix(".json")
_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "judges.md"
_MOST = 90
KINDS = (
    "equal",
    "refused",
    "refused by both",
    "read by Windrow alone",
    "misread by the judge",
    "not applicable",
    "other",
)
_HEAD = """
## What other projects publish

The tests and tables of other projects, at the commits that had them in August 2026. *Equal* are the
rows that the judge reads, or that its test expects; *refused* is what Windrow alone refuses, by name.
Nothing may be *other*. The repositories are not kept here:
`WINDROW_CHECKOUTS=FOLDER .venv/bin/python -m tests.judges.verdicts` runs those that are checked out
in a folder, and so do nightly tests.

"""


@dataclass(frozen=True)
class Verdict:
    """What came of a case.

    Attributes:
        case: Its name.
        kind: One of `KINDS`.
        detail: Why, or what differs.
    """

    case: str
    kind: str
    detail: str = ""


def checkout_of(name: str) -> Path:
    """Return where a repository is checked out; the test is skipped if it is nowhere."""
    folder = Path(os.environ.get("WINDROW_CHECKOUTS", "/nowhere"), name)
    if not folder.is_dir():
        pytest.skip(f"WINDROW_CHECKOUTS names no folder with a checkout of {name}")
    return folder


def counted(verdicts: Iterable[Verdict]) -> dict[str, dict[str, int]]:
    """Return how many verdicts there are, by their kind and by reason."""
    found: dict[str, Counter[str]] = {}
    for one in verdicts:
        found.setdefault(one.kind, Counter())[_reason(one.detail)] += 1
    return {kind: dict(found[kind].most_common()) for kind in KINDS if kind in found}


def _reason(detail: str) -> str:
    """Return a message without the names in it."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"|/\S+|[0-9]{2,}", "…", " ".join(detail.split()))
    text = re.sub(r"…(, …)+", "…", text).replace("|", "/")
    text = re.sub(r"^it has no snapshot, since its last refresh failed: ", "", text)
    return text if len(text) <= _MOST else text[:_MOST].rsplit(" ", 1)[0] + " …"


def note(label: str, verdicts: Iterable[Verdict]) -> None:
    """Note what came of a judge's cases, for the page."""
    notes = json.loads(_NOTES.read_text()) if _NOTES.exists() else {}
    today = datetime.now(timezone.utc).date()
    notes[label] = {"date": str(today), "counts": counted(verdicts)}
    _NOTES.write_text(json.dumps(notes, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


def section() -> str:
    """Return the section of the page about all judges that have been noted."""
    notes = json.loads(_NOTES.read_text())
    text = _HEAD + "| judge | last run | cases | " + " | ".join(KINDS) + " |\n"
    text += "|---" * (len(KINDS) + 3) + "|\n"
    for label, noted in notes.items():
        sums = [sum(noted["counts"].get(kind, {}).values()) for kind in KINDS]
        cells = [noted["date"], f"{sum(sums):,}", *(f"{one:,}" for one in sums)]
        text += f"| {label} | " + " | ".join(cells) + " |\n"
    text += "\n| judge | verdict | reason | cases |\n|---|---|---|---|\n"
    for label, noted in notes.items():
        for kind in KINDS[1:]:
            for reason, count in noted["counts"].get(kind, {}).items():
                text += f"| {label} | {kind} | {reason} | {count:,} |\n"
    return text


def main() -> None:
    """Run all judges whose repositories are there."""
    from tests.judges import delta_tables, duckdb_iceberg

    for module in (duckdb_iceberg, delta_tables):
        for name, label in module.JUDGES.items():
            try:
                checkout = checkout_of(name)
            except pytest.skip.Exception as error:
                sys.stdout.write(f"{label}: {error}\n")
                continue
            with TemporaryDirectory() as folder:
                verdicts = module.verdicts(checkout, Path(folder))
            note(label, verdicts)
            sys.stdout.write(f"{label}: {Counter(one.kind for one in verdicts)}\n")
            sys.stdout.writelines(f"  {one}\n" for one in verdicts if one.kind == "other")
    others = _PAGE.read_text(encoding="utf-8").partition(_HEAD.splitlines()[1])[0]
    _PAGE.write_text(f"{others.rstrip()}\n{section()}", encoding="utf-8")


if __name__ == "__main__":
    main()
