"""Numbers and their nouns: `1 file`, `2 files`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.golden.files import GOLDENS

ROOT = Path(__file__).parents[2]
# A number in an f-string, followed by a plural. `count_text` and `{files:file}` do better; the
# numbers here are limits and the like, which are never 1. They only fall.
_PLURALS = re.compile(r"\{[^{}]+:,\} (?:[a-z-]+ ){0,2}[a-z]{2,}s\b")
_CEILINGS = {"core": 9, "client": 2, "service": 70, "spark": 8, "spark_jobs": 1}
_NOUNS = (
    "attempts|batches|buckets|columns|commits|days|errors|files|folders|footers|groups|hours|keys|"
    "manifests|partitions|plans|reads|requests|rows|rules|slots|snapshots|splits|tables|tasks|"
    "times|tokens|workers|writes"
)


@pytest.mark.parametrize("package", _CEILINGS)
def test_numbers_that_may_be_one_have_a_noun_that_agrees(package: str) -> None:
    plurals = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for match in _PLURALS.finditer(path.read_text("utf-8"))
    ]

    assert len(plurals) <= _CEILINGS[package], "\n".join(plurals)


@pytest.mark.parametrize("name", GOLDENS)
def test_nothing_that_the_product_says_counts_one_of_many(name: str) -> None:
    said = GOLDENS[name].path.read_text("utf-8")

    assert not re.findall(rf"(?<![\w.,=-])1 (?:[a-z]+ )?(?:{_NOUNS})\b", said)
