"""Laws of reading SQL text."""

from __future__ import annotations

import json
import re
from typing import Any

import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from sqlglot import exp

from tests.support.laws import examples
from windrow_core.filter_text import filter_text
from windrow_core.models import Comparison, FilterTree, Junction, Not
from windrow_service.filters.errors import InvalidFilterError
from windrow_service.filters.sql import parse_sql

Tree = dict[str, Any]
TREES: TypeAdapter[Any] = TypeAdapter(FilterTree)

SYMBOLS = {
    "eq": ["=", "=="],
    "ne": ["<>", "!="],
    "lt": ["<"],
    "le": ["<="],
    "gt": [">"],
    "ge": [">="],
}
FLIPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
NAMES = st.sampled_from(["a", "ds", "date", "timestamp", "show", "Größe", "two words", "a`b", "or"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
LEAVES: st.SearchStrategy[Tree] = st.one_of(
    st.fixed_dictionaries(
        {"op": st.sampled_from(sorted(SYMBOLS)), "column": NAMES, "value": SCALARS}
    ),
    st.fixed_dictionaries(
        {"op": st.just("in"), "column": NAMES, "values": st.lists(SCALARS, min_size=1, max_size=3)}
    ),
    st.fixed_dictionaries(
        {"op": st.just("between"), "column": NAMES, "low": SCALARS, "high": SCALARS}
    ),
    st.fixed_dictionaries({"op": st.sampled_from(["is_null", "is_not_null"]), "column": NAMES}),
    st.fixed_dictionaries({"op": st.just("starts_with"), "column": NAMES, "prefix": TEXT}),
)
ALL_TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.fixed_dictionaries({"op": st.just("not"), "arg": inner})
        | st.fixed_dictionaries(
            {
                "op": st.sampled_from(["and", "or"]),
                "args": st.lists(inner, min_size=2, max_size=3),
            }
        )
    ),
    max_leaves=8,
)


class Writer:
    """Writes a tree as SQL in one of many possible ways."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def pick(self, *ways: str) -> str:
        return self._draw(st.sampled_from(ways))

    def word(self, word: str) -> str:
        space = self.pick(" ", "\n", " /* AND */ ", "\t")
        return space + self.pick(word, word.lower()) + space

    def name(self, name: str) -> str:
        if name in ("two words", "a`b", "or"):
            return "`" + name.replace("`", "``") + "`"
        return self.pick(name, f"`{name}`")

    def scalar(self, value: Any) -> str:
        if value is None or isinstance(value, bool):
            word = "NULL" if value is None else str(value).upper()
            return self.pick(word, word.lower())
        if isinstance(value, str):
            return self.quoted(value.replace("\\", "\\\\"))
        number = repr(value)
        return self.pick(number, f"({number})") if number.startswith("-") else number

    def quoted(self, escaped: str) -> str:
        quote = self.pick("'", '"')
        return quote + escaped.replace(quote, "\\" + quote) + quote

    def write(self, tree: Tree) -> str:
        text = self.bare(tree)
        return f"( {text})" if self.pick("", "", "(") else text

    def bare(self, tree: Tree) -> str:
        op = tree["op"]
        if op in ("and", "or"):
            return self.word(op.upper()).join(f"({self.bare(arg)})" for arg in tree["args"])
        if op == "not":
            return self.pick("NOT ", "! ", "not") + f"({self.bare(tree['arg'])})"
        name = self.name(tree["column"])
        if op == "is_null":
            return name + self.word("IS") + "NULL"
        if op == "is_not_null":
            return name + self.word("IS") + "NOT null"
        if op == "in":
            return f"{name}{self.word('IN')}({', '.join(map(self.scalar, tree['values']))})"
        if op == "between":
            low, high = self.scalar(tree["low"]), self.scalar(tree["high"])
            return f"{name}{self.word('BETWEEN')}{low}{self.word('AND')}{high}"
        if op == "starts_with":
            # Escaped once for LIKE and once more for the string literal.
            pattern = re.sub(r"([\\%_])", r"\\\1", tree["prefix"]) + "%"
            escaped = pattern.replace("\\", "\\\\")
            return name + self.word("LIKE") + self.quoted(escaped)
        value = self.scalar(tree["value"])
        if self.pick("straight", "flipped") == "flipped":
            return f"{value} {self.pick(*SYMBOLS[FLIPPED[op]])} {name}"
        return f"{name} {self.pick(*SYMBOLS[op])} {value}"


@examples(200)
@given(ALL_TREES, st.data())
def test_a_tree_written_as_sql_is_read_as_the_same_tree(tree: Tree, data: st.DataObject) -> None:
    text = Writer(data.draw).write(tree)

    parsed = parse_sql(text)

    assert parsed.tree == TREES.validate_python(tree)


@examples(100)
@given(ALL_TREES)
def test_a_tree_as_people_read_it_is_the_same_tree(tree: Tree) -> None:
    model = TREES.validate_python(tree)

    texts = {filter_text(tree), filter_text(model), filter_text(json.dumps(tree))}

    assert [parse_sql(text).tree for text in texts] == [model]


def truth(tree: Any, row: dict[int, bool]) -> bool:
    if isinstance(tree, Comparison):
        assert isinstance(tree.value, int)
        return row[tree.value]
    if isinstance(tree, Not):
        return not truth(tree.arg, row)
    assert isinstance(tree, Junction)
    return (all if tree.op == "and" else any)(truth(arg, row) for arg in tree.args)


def truth_by_sqlglot(node: exp.Expression, row: dict[int, bool]) -> bool:
    if isinstance(node, exp.And):
        return truth_by_sqlglot(node.left, row) and truth_by_sqlglot(node.right, row)
    if isinstance(node, exp.Or):
        return truth_by_sqlglot(node.left, row) or truth_by_sqlglot(node.right, row)
    if isinstance(node, exp.Not):
        return not truth_by_sqlglot(node.this, row)
    if isinstance(node, exp.Paren):
        return truth_by_sqlglot(node.this, row)
    assert isinstance(node, exp.EQ)
    return row[int(node.right.this)]


@examples(100)
@given(st.data())
def test_precedence_of_and_or_not_is_that_of_sqlglot(data: st.DataObject) -> None:
    parts = st.recursive(
        st.integers(0, 4).map(lambda number: f"x = {number}"),
        lambda inner: (
            inner.map(lambda text: f"NOT {text}")
            | inner.map(lambda text: f"({text})")
            | st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(" ".join)
        ),
        max_leaves=8,
    )
    text = data.draw(parts)
    ours, theirs = parse_sql(text).tree, sqlglot.parse_one(text, dialect="spark")

    for bits in range(32):
        row = {number: bool(bits >> number & 1) for number in range(5)}
        assert truth(ours, row) == truth_by_sqlglot(theirs, row)


# fmt: off
PIECES = [
    "a", "b", "`c`", "(", ")", ",", ".", "1", "2.5", "-", "+", "'", "''", "'x'", '"', "=", "<>",
    "<=>", "<", "AND", "OR", "NOT", "IN", "IS", "NULL", "LIKE", "BETWEEN", "TRUE", "DATE", "CAST",
    "AS", "ESCAPE", "CASE", "SELECT", ";", "::", "[", "]", "{", "}", "/*", "*/", "--", "\n", "%",
    "é", "日", "\\", "!", "?", ":", "$", "@", "1e", "0x1", "r'x'", "5L",
]
# fmt: on


def read(text: str) -> FilterTree | InvalidFilterError:
    try:
        return parse_sql(text).tree
    except InvalidFilterError as error:
        return error


@examples(500)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join) | st.text(max_size=30))
def test_any_text_is_parsed_or_refused_with_a_position(text: str) -> None:
    answer = read(text)

    if isinstance(answer, InvalidFilterError):
        assert answer.offset is not None
        assert 0 <= answer.offset <= len(text)
        assert answer.line is not None
        assert answer.line <= text.count("\n") + 1
        assert str(answer).endswith("^")
    else:
        json.dumps(TREES.dump_python(answer))
