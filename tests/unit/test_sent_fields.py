"""This version and the one before understand each other, as both refuse fields they do not know."""

from __future__ import annotations

import pytest

from tests.support.api.sent_fields import recorded_fields, strict_models

RECORDED = recorded_fields()


@pytest.mark.parametrize("name", RECORDED)
def test_a_new_field_that_is_not_set_is_not_sent(name: str) -> None:
    nothing_set = strict_models()[name].model_construct()

    # Give a new field `exclude_if`: the version before refuses requests and answers that have it.
    assert set(nothing_set.model_dump()) <= set(RECORDED[name])


@pytest.mark.parametrize("name", RECORDED)
def test_whatever_the_version_before_sends_is_understood(name: str) -> None:
    fields = strict_models()[name].model_fields

    assert set(RECORDED[name]) <= fields.keys()
    new = fields.keys() - set(RECORDED[name])
    assert [field for field in new if fields[field].is_required()] == []
