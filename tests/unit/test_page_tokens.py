"""Page tokens continue one list of one caller, whatever the caller's name."""

from __future__ import annotations

import pytest
from itsdangerous import URLSafeSerializer

from windrow_service.api.page_tokens import PageTokens
from windrow_service.usecases.errors import PageTokenError


@pytest.mark.parametrize(
    ("caller", "listing", "other", "other_listing"),
    [
        ("corp/a:b", "c", "corp/a", "b:c"),
        ("corp/a", "plan:1", "corp/a:plan", "1"),
        ("corp/a:b", "c", "corp/a%3Ab", "c"),
        ("corp/a", "tables", "corp/b", "tables"),
        ("corp/a", "tables", "corp/a", "tokens"),
    ],
)
def test_a_token_is_refused_for_another_caller_or_list(
    caller: str, listing: str, other: str, other_listing: str
) -> None:
    tokens = PageTokens("key")
    token = tokens.of(caller).make(listing, "at")

    assert tokens.of(caller).read_text(listing, token) == "at"
    with pytest.raises(PageTokenError):
        tokens.of(other).read_text(other_listing, token)


def test_tokens_of_callers_with_plain_names_are_read_by_earlier_versions() -> None:
    # Replicas of two versions serve the pages of one list during an upgrade.
    token = PageTokens("key").of("etl@team.x").make("tables", "sales.events")

    earlier = URLSafeSerializer("key", salt="windrow-page:etl@team.x:tables")
    assert earlier.loads(token) == "sales.events"
