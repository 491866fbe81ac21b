"""Names of unnamed rules: equal filters get equal names, different filters different ones."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from windrow_calls.cache_rules import plain, rule_name
from windrow_core.models import CACHE_RULE_PATTERN, CacheRuleDefinition

WORDS = st.sampled_from(
    ["ds", "country", "x", "AND", "OR", "NOT", "IN", "IS NULL", "DATE", "5", "1.5e3", "-7"]
)
SYMBOLS = st.sampled_from(["=", "<", ">=", "<>", "(", ")", ",", "-"])
QUOTED = st.builds(
    lambda quote, text: quote + text + quote,
    st.sampled_from("'\"`"),
    st.text(st.sampled_from("ab -*/\n5\t"), max_size=8),
)
TOKENS = st.lists(st.one_of(WORDS, SYMBOLS, QUOTED), min_size=1, max_size=12)
SPACE = st.lists(
    st.sampled_from([" ", "\n", "\t", " -- it's a `comment`\n", "/* 'or \n this */"]), min_size=1
).map("".join)


@st.composite
def same_filters(draw: st.DrawFn) -> tuple[str, str]:
    """Draw two texts with the same tokens, but different spaces and comments between them."""
    tokens = draw(TOKENS)
    texts = ["".join(draw(SPACE) + token for token in tokens) for _ in range(2)]
    return texts[0], texts[1] + draw(SPACE)


@given(same_filters())
@example(("ds>='a'AND x=1", " ds >= 'a' AND -- both\n x = 1"))
def test_spaces_and_comments_do_not_change_the_name(texts: tuple[str, str]) -> None:
    first, second = texts

    assert rule_name(first) == rule_name(second)


@given(TOKENS, TOKENS)
def test_other_tokens_change_the_normalized_text(first: list[str], second: list[str]) -> None:
    joined, other = " ".join(first), " ".join(second)

    # Texts that differ only in whitespace may have the same tokens, such as `a=` and `a =`.
    if re.sub(r"\s", "", joined) != re.sub(r"\s", "", other):
        assert plain(joined) != plain(other)


@given(st.text(max_size=50))
def test_the_name_of_any_text_is_a_valid_rule_name(text: str) -> None:
    assert re.fullmatch(CACHE_RULE_PATTERN, rule_name(text))
    assert rule_name(text) == rule_name(text)


def test_the_order_of_keys_in_a_tree_does_not_matter() -> None:
    trees = (
        {"op": "in", "column": "ds", "values": ["a", 5]},
        {"values": ["a", 5], "column": "ds", "op": "in"},
        {"values": [5, "a"], "column": "ds", "op": "in"},
    )
    names = [rule_name(CacheRuleDefinition.model_validate({"filter": t}).filter) for t in trees]

    assert names[0] == names[1] != names[2]


def test_names_of_filters_stay_stable() -> None:
    # Rules are stored by name: another name would make a second rule of the same filter.
    assert rule_name("ds >= '2026-11-01'") == "rule-64a3424fa0de"
