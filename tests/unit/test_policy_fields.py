"""The form of a policy: its texts say what the policy says, and come back as the same policy."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_core.models import EffectivePolicy, PolicyDefinition
from windrow_core.models.field_texts import POLICY_FIELDS, help_of, share_of
from windrow_core.models.policy_cards import policy_text
from windrow_service.api.dashboard.policy_fields import (
    RefusedFieldError,
    definition_from,
    texts_of,
)
from windrow_service.usecases.upkeep.overview import HourFigures, thinned

FULL = PolicyDefinition(
    enabled=False,
    target_file_size=256 * 2**20,
    min_files=3,
    min_gain=0.5,
    reads_per_day=12.0,
    min_age_seconds=5_400,
    windows=["22:00-06:00", "12:00-13:00 Europe/Berlin"],
    max_share=0.25,
    filter="ds >= '2026-11-01'",
    exempt_folders=["ds=2026-11-02", "ds=2026-11-03/h=1"],
    readers_may_see_both=True,
    pack=True,
    pack_max_bytes=2**30,
    pack_rights_are_stated=True,
)


def form_of(definition: PolicyDefinition) -> dict[str, str]:
    return {"enabled": "yes" if definition.enabled else "no", **texts_of(definition)}


def test_every_field_of_a_policy_is_in_its_form_or_kept() -> None:
    assert definition_from(form_of(FULL), PolicyDefinition()) == FULL
    assert definition_from(form_of(FULL), FULL) == FULL
    assert definition_from({"enabled": "yes"}, FULL) == PolicyDefinition()
    assert policy_text(EffectivePolicy()) == "everything by default"
    names = {"enabled", *(field.name for field in POLICY_FIELDS)}
    assert names == PolicyDefinition.model_fields.keys() == EffectivePolicy.model_fields.keys()


def test_a_filter_that_is_a_tree_stays_one_unless_its_text_is_changed() -> None:
    tree = {"op": "eq", "column": "ds", "value": "2026-11-01"}
    policy = PolicyDefinition.model_validate({"filter": tree})
    form = form_of(policy)

    same = definition_from(form | {"min_files": "4"}, policy)
    changed = definition_from(form | {"filter": "ds = '2026-11-02'"}, policy)

    assert form["filter"] == "ds = '2026-11-01'"
    assert (same.filter, same.min_files) == (policy.filter, 4)
    assert changed.filter == "ds = '2026-11-02'"


@pytest.mark.parametrize(
    ("form", "name", "reason"),
    [
        ({"target_file_size": "big"}, "target_file_size", "bytes from 1"),
        ({"min_files": "2.5"}, "min_files", "'2.5' is not a whole number"),
        ({"min_files": "1"}, "min_files", "a whole number from 2"),
        ({"min_gain": "nan"}, "min_gain", "'nan' is not a number"),
        ({"min_age_seconds": "soon"}, "min_age_seconds", "'soon' is not a duration"),
        ({"windows": "at night"}, "windows", "pattern"),
        ({"max_share": "120"}, "max_share", "such as 25%"),
    ],
)
def test_a_text_that_cannot_be_used_names_its_field_and_says_why(
    form: Mapping[str, str], name: str, reason: str
) -> None:
    with pytest.raises(RefusedFieldError) as error:
        definition_from(form, PolicyDefinition())

    assert error.value.name == name
    assert reason in str(error.value)


@pytest.mark.parametrize("text", ["0", "25", "0%", "101%", "-1%", "all"])
def test_a_text_that_is_no_share_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="such as 25%"):
        share_of(text)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("target_file_size", "Target size of a file, such as 256MB; 128MB by default."),
        ("windows", "at any time by default; repeatable."),
        ("min_age_seconds", "; 15m by default."),
        ("keep_zone", "such as Europe/Berlin; UTC by default."),
    ],
)
def test_people_are_told_of_texts_and_not_of_json(name: str, words: str) -> None:
    assert help_of(name, PolicyDefinition.model_fields[name]).endswith(words)


@given(count=st.integers(0, 200), most=st.integers(1, 80))
def test_thinned_hours_are_few_in_order_and_end_with_the_last(count: int, most: int) -> None:
    hours = [
        HourFigures(
            began_at=datetime(2026, 11, 1, tzinfo=timezone.utc),
            tables=at,
            files=0,
            size_bytes=0,
            excess_files=0,
            plans=0,
        )
        for at in range(count)
    ]

    numbers = [one.tables for one in thinned(hours, most)]

    assert len(numbers) <= most
    assert numbers == sorted(set(numbers))
    assert numbers[-1:] == [count - 1][: min(count, 1)]
    assert count <= most or len(numbers) > most / 2
