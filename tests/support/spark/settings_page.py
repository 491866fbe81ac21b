"""The lists of docs/reference/settings-of-spark.md."""

from __future__ import annotations

import re
from pathlib import Path

_PAGE = Path(__file__).parents[3] / "docs" / "reference" / "settings-of-spark.md"
FOLLOWED, REFUSED, WITHOUT_EFFECT = "Followed on all ways", "Refused", "Without effect on rows"


def listed(part: str) -> list[str]:
    """Return the settings in the tables of a part of the page."""
    (text,) = re.findall(rf"^## {part}\n(.*?)(?=^## |\Z)", _PAGE.read_text(), re.M | re.S)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return re.findall(r"`((?:spark|avro|mapreduce|orc|hive)\.[\w.]+)`", "\n".join(rows))
