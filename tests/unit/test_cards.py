"""What prompts and notebooks show of answers: short lines, and HTML without foreign code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from windrow import models
from windrow_calls.listing import Listing, Page
from windrow_calls.outcomes import Compaction, Warmth
from windrow_core.cards import MAX_LINE, SHOWN_ROWS, Bar, Card, Grid, Shown, ShownList, card_of
from windrow_service.api import examples

STORY = json.loads((Path(examples.__file__).parent / "examples.json").read_text())
HOSTILE = "<script>alert(1)</script>"
MODELS = {
    name: model
    for name in models.__all__
    if isinstance(model := getattr(models, name), type) and issubclass(model, Shown)
}


def answers_of(model: Any) -> Iterator[Any]:
    """Yield what a model makes of the answers in the story, with and without foreign code."""
    for part in parts_of_story():
        if part.keys() >= {
            name for name, field in model.model_fields.items() if field.is_required()
        }:
            try:
                yield model.model_validate(part)
            except ValidationError:
                continue


@cache
def parts_of_story() -> list[dict[str, Any]]:
    """Return the objects in the answers of the story, one of those with the same fields."""
    text = json.dumps([step.get("answer") for step in STORY])
    parts: dict[Any, dict[str, Any]] = {}
    for story in (text, text.replace("sales.", HOSTILE)):
        for part in parts_of(json.loads(story)):
            parts.setdefault((story is text, frozenset(part)), part)
    return list(parts.values())


def parts_of(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from parts_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from parts_of(inner)


@pytest.mark.parametrize("name", MODELS)
def test_an_answer_shows_itself_in_one_short_line_and_as_html(name: str) -> None:
    for answer in answers_of(MODELS[name]):
        assert 2 < len(repr(answer)) <= MAX_LINE
        assert "\n" not in repr(answer)
        assert "<script" not in answer._repr_html_()
        listing = Listing([Page([answer], True)], "answers")
        assert "<script" not in listing._repr_html_()


@pytest.mark.parametrize(
    "name",
    [
        *("TableInfo", "SnapshotInfo", "RefreshStatus", "Plan", "PlanExplanation", "WritePlan"),
        *("WriteRecord", "TableAdvice", "CompactionPlan", "TableCache", "NewToken", "PastPlan"),
    ],
)
def test_the_story_has_answers_with_cards_of_their_own(name: str) -> None:
    (answer, *_) = answers_of(MODELS[name])

    assert card_of.dispatch(type(answer)) is not card_of.dispatch(object)


def test_a_new_token_does_not_show_its_secret() -> None:
    token = models.NewToken(
        token_id="1",
        name="ana",
        scopes=["read"],
        grants=[],
        created_at=datetime(2026, 11, 1, tzinfo=timezone.utc),
        expires_at=None,
        revoked_at=None,
        token="wdr_secret",
    )

    assert "wdr_secret" not in repr(token) + str(token) + token._repr_html_()


def test_a_wide_table_shows_its_first_columns_and_how_many_more_there_are() -> None:
    columns = [models.Column(name=f"c{at}", type="bigint") for at in range(1_000)]
    snapshot = models.SnapshotInfo(
        snapshot_id=7,
        created_at=datetime(2026, 11, 1, tzinfo=timezone.utc),
        file_count=1_234,
        size_bytes=5 * 2**20,
        manifest_count=1,
        columns=columns,
        partition_columns=[],
    )

    assert repr(snapshot) == (
        "<Snapshot 7: files: 1,234; rows: unknown; size: 5 MB; made at: 2026-11-01 00:00:00 UTC>"
    )
    assert "and 980 more" in snapshot._repr_html_()


@pytest.mark.parametrize(
    ("count", "is_last", "title", "more"),
    [
        (0, True, "0 plans", ""),
        (1, True, "1 plan", ""),
        (SHOWN_ROWS, True, "20 plans", ""),
        (50, True, "50 plans", "and 30 more"),
        (50, False, "50 plans or more", "and 30 or more"),
        (SHOWN_ROWS, False, "20 plans or more", "and more"),
    ],
)
def test_a_listing_says_how_many_more_there_are(
    count: int, is_last: bool, title: str, more: str
) -> None:
    items = [models.Column(name=f"c{at}", type="int") for at in range(count)]
    pages = [Page(items, is_last), Page([], True)]
    listing = Listing(pages, "plans")

    html = listing._repr_html_()

    assert repr(listing) == f"<{title}>"
    assert more in html
    assert html.count("<tr>") == min(count, SHOWN_ROWS) + (count > 0)


def test_outcomes_of_jobs_name_what_was_left() -> None:
    done = Compaction(table="sales.events", left={"ds=1": f"damaged {HOSTILE}"})

    assert "left unchanged: 1 partition" in repr(done)
    assert "damaged &lt;script&gt;" in done._repr_html_()
    assert repr(Warmth(table="sales.events", rule=None)).startswith("<Warming of sales.events")


def test_a_line_and_cells_are_cut() -> None:
    card = Card("title", [("name", "x" * 10_000)], [Grid(("column",), [["y" * 10_000]])])

    assert len(card.line()) == MAX_LINE
    assert len(card.html()) < 14_000


def test_a_grid_leaves_out_columns_without_text_and_bars_of_nothing() -> None:
    grid = Grid(("write", "tasks>", ""), [["a", "", Bar(0.5)], ["b", "", Bar(0)]])

    html = Card("title", grids=[grid]).html()

    assert "tasks" not in html
    assert html.count("<td") == 4
    assert html.count("<i ") == 1


def test_a_list_of_objects_is_a_list() -> None:
    items = ShownList([1, 2], "numbers")

    assert items == [1, 2]
    assert isinstance(items, list)
    assert repr(items) == "<2 numbers>"


@pytest.mark.parametrize(
    ("noun", "first_words"),
    [
        ("tables", "1 table"),
        ("policies", "1 policy"),
        ("batches", "1 batch"),
        ("caches", "1 cache"),
    ],
)
def test_a_list_of_one_item_is_named_in_the_singular(noun: str, first_words: str) -> None:
    assert card_of(ShownList([1], noun)).title == first_words
    assert card_of(Listing(iter([Page([1], True)]), noun)).title == first_words
