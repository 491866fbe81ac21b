"""Each record of a decision has one form, and one row in the index of its area."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
RECORDS = {path.name: path.read_text() for path in sorted(FOLDER.glob("0*.md"))}
INDEX = (FOLDER / "README.md").read_text()
_LINK = r"\[\d{4}\]\((\d{4}-[\w-]+\.md)\)"
_BLOCK = re.compile(
    r"# (?P<number>\d{4}): (?P<title>.+)\n\n"
    rf"- Status: (?P<status>accepted|(?:amended|superseded) by {_LINK}: .+)\n"
    r"- Date: \d{4}-\d\d-\d\d\n"
    r"- Area: (?P<area>.+)\n"
    rf"(?:- (?:Amends|Supersedes): (?P<amends>{_LINK}(?:, {_LINK})*)\n)?"
    r"\n## Context\n"
)
_SECTIONS = ["Context", "Decision", "Consequences", "Rejected", "Enforced by"]


def _block(record: str) -> re.Match[str]:
    block = _BLOCK.match(RECORDS[record])
    assert block, f"{record} begins otherwise than docs/decisions/README.md says"
    return block


@pytest.mark.parametrize("record", RECORDS)
def test_a_record_has_the_block_and_the_sections_in_order(record: str) -> None:
    number = _block(record)["number"]
    sections = re.findall(r"^## (.+)$", RECORDS[record], re.M)

    assert number == record[:4]
    assert sections == [name for name in _SECTIONS if name in sections]
    assert set(_SECTIONS[:3]) <= set(sections)


@pytest.mark.parametrize("record", RECORDS)
def test_a_record_is_in_the_index_of_its_area(record: str) -> None:
    block = _block(record)
    area = INDEX.partition(f"\n## {block['area']}\n")[2].partition("\n## ")[0]

    rows = re.findall(rf"^\| \[{record[:4]}\]\({record}\) \| (.+?) \| .+ \| (.+?) \|$", area, re.M)
    # The index leaves out what the later records change.
    status = re.sub(rf"({_LINK}): [^;]+", r"\1", block["status"]).replace("; ", ", ")

    assert rows == [(block["title"], status)]


def test_the_index_names_no_record_that_is_gone_and_numbers_are_given_once() -> None:
    rows = re.findall(rf"^\| {_LINK}", INDEX, re.M)

    assert sorted(rows) == [*RECORDS]
    assert len({record[:4] for record in RECORDS}) == len(RECORDS)


def test_a_record_that_is_amended_and_the_one_that_amends_it_name_each_other() -> None:
    amended = {(old, new) for old in RECORDS for new in re.findall(_LINK, _block(old)["status"])}
    amends = {
        (old, new) for new in RECORDS for old in re.findall(_LINK, _block(new)["amends"] or "")
    }

    assert amended == amends
    assert all(old < new for old, new in amended)
