"""Statements about caches survive a round trip, and no text causes a crash."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from windrow_calls.cache_sql import CacheStatement, parse_cache_sql
from windrow_calls.errors import CacheSqlError

FIRST = "abzAZ019_"
PART = st.builds(
    lambda first, rest: first + rest, st.sampled_from(FIRST), st.text(FIRST + "-", max_size=6)
)
TABLE = st.lists(PART, min_size=1, max_size=3)
SPACE = st.sampled_from([" ", "\n\t", " /* CACHE; */ ", " -- it's\n"])
KEYWORDS = {"cache": ("CACHE", "TABLE"), "drop": ("DROP", "CACHE"), "show": ("SHOW", "CACHE")}
MIDDLE = ["AND", "(", ")", "/* c */", "-- d\n", "WHERE", "`x y`", "'a;b'", "é", ">="]
FILTER = st.lists(st.sampled_from(MIDDLE), max_size=5).map(lambda some: " ".join(["a", *some, "5"]))
FRAGMENTS = [
    *("CACHE", "TABLE", "DROP", "SHOW", "WHERE", "LAZY", "OPTIONS", "AS", "IF", "EXISTS", "CLEAR"),
    *("t", "`", "'", '"', ".", ";", "(", ")", "--", "/*", "*/", "/*+", "@", "$", "1", "1e", "X'0'"),
    *("\\", "\0", "\ud800", "{{", "}}", "{%", ":", "é"),
]


@given(
    st.sampled_from(["cache", "drop", "show"]),
    TABLE,
    FILTER,
    st.lists(SPACE, min_size=6),
    st.data(),
)
def test_a_statement_survives_a_round_trip(
    action: str, parts: list[str], filter: str, spaces: list[str], data: st.DataObject
) -> None:
    cased = data.draw(st.sampled_from([str.upper, str.lower, str.title]))
    dot = data.draw(st.sampled_from([".", " . "]))
    words = [*map(cased, KEYWORDS[action]), dot.join(f"`{part}`" for part in parts)]
    if action != "show":
        words += [cased("where"), filter]
    text = "".join(space + word for space, word in zip(spaces, words, strict=False))

    read = parse_cache_sql(text + data.draw(st.sampled_from(["", ";", " ; -- and\n;"])))

    of = None if action == "show" else filter
    assert read == CacheStatement(read.action, ".".join(parts), of)
    assert read.action == action


@given(st.text(max_size=30) | st.lists(st.sampled_from(FRAGMENTS), max_size=8).map(" ".join))
def test_any_text_is_parsed_or_refused_in_one_line(text: str) -> None:
    message = "a statement"
    try:
        parse_cache_sql(text)
    except CacheSqlError as error:
        message = str(error)

    assert message
    assert "\n" not in message
