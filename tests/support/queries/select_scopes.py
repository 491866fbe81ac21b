"""Expressions and conditions on the columns that a part of a query sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.support.queries.choices import Choices

# Kinds of values that queries return and compare.
KINDS = ("int", "text", "day", "time", "dec", "real", "local", "flag")
# Kinds whose equal values are few enough, and no more than some rows each.
KEYS = ("int", "text", "day", "dec", "time", "local")


@dataclass(frozen=True, slots=True)
class Column:
    """A column in the scope of an expression: how it is written, and its kind of values."""

    text: str
    kind: str


Scope = Sequence[Column]

# Functions that never fail and need no order of rows: what they return and take.
_FUNCTIONS: Sequence[tuple[str, str, tuple[str, ...]]] = (
    ("int", "({} + 1L)", ("int",)),
    ("int", "({} % 3)", ("int",)),
    ("int", "coalesce({}, 7)", ("int",)),
    ("int", "if({}, {}, 1)", ("condition", "int")),
    ("int", "CASE WHEN {} THEN 1 WHEN {} THEN 0 END", ("condition", "condition")),
    ("int", "length({})", ("text",)),
    ("int", "try_cast({} AS int)", ("text",)),
    ("int", "year({})", ("day",)),
    ("int", "dayofweek({})", ("day",)),
    ("int", "hour({})", ("time",)),
    ("int", "datediff({}, {})", ("day", "day")),
    ("int", "cast(sign({}) AS int)", ("dec",)),
    ("text", "upper({})", ("text",)),
    ("text", "substr({}, 1, 1)", ("text",)),
    ("text", "concat({}, '-', {})", ("text", "text")),
    ("text", "cast({} AS string)", ("int",)),
    ("text", "cast({} AS string)", ("real",)),
    ("text", "cast({} AS string)", ("dec",)),
    ("text", "cast({} AS string)", ("day",)),
    ("text", "coalesce({}, 'a')", ("text",)),
    ("text", "nullif({}, 'a')", ("text",)),
    ("text", "date_format({}, 'yyyy-MM-dd HH')", ("time",)),
    ("day", "date_add({}, 1)", ("day",)),
    ("day", "trunc({}, 'MM')", ("day",)),
    ("day", "cast({} AS date)", ("time",)),
    ("day", "if({}, {}, {})", ("condition", "day", "day")),
    ("time", "date_trunc('day', {})", ("time",)),
    ("time", "({} + INTERVAL 1 HOUR)", ("time",)),
    ("time", "cast({} AS timestamp)", ("day",)),
    ("local", "({} - INTERVAL 1 DAY)", ("local",)),
    ("dec", "({} + 1)", ("dec",)),
    ("dec", "abs({})", ("dec",)),
    ("dec", "cast({} AS decimal(10,2))", ("int",)),
    ("real", "abs({})", ("real",)),
    ("real", "(- {})", ("real",)),
    ("real", "coalesce({}, 0.5D)", ("real",)),
    ("real", "nanvl({}, 0.25D)", ("real",)),
    ("real", "cast({} AS double)", ("int",)),
    ("flag", "coalesce({}, false)", ("flag",)),
    ("flag", "({} > 1)", ("int",)),
    ("flag", "startswith({}, 'a')", ("text",)),
    ("flag", "isnan({})", ("real",)),
    ("flag", "({} <=> {})", ("text", "text")),
)
# Parts of nested columns.
_NESTED: Sequence[tuple[str, str, str]] = (
    ("int", "{}.a", "struct"),
    ("text", "{}.b", "struct"),
    ("int", "size({})", "list"),
    ("int", "get({}, 0)", "list"),
    ("flag", "array_contains({}, 7)", "list"),
)
# Functions that fail for some values in ANSI mode.
RISKY: Sequence[tuple[str, str, tuple[str, ...]]] = (
    ("int", "cast({} AS int)", ("text",)),
    ("int", "cast({} AS int)", ("real",)),
    ("int", "({} * 2147483647)", ("int",)),
    ("int", "cast({} AS tinyint)", ("int",)),
    ("real", "(1 / {})", ("int",)),
    ("dec", "cast({} AS decimal(3,2))", ("dec",)),
    ("day", "cast({} AS date)", ("text",)),
    ("flag", "cast({} AS boolean)", ("text",)),
    ("int", "array(1, 2)[{}]", ("int",)),
)
_SIGNS = ("=", "=", "<>", "<", "<=", ">", ">=", "<=>")
_PATTERNS = ("a%", "%b", "_", "%", "a\\\\%%", "", "2025-%")


class Expressions:
    """Draws expressions and conditions; what a condition asks of other tables is drawn elsewhere.

    Attributes:
        choices: Where choices come from.
        features: How often each feature has been used.
    """

    def __init__(self, choices: Choices, literals: Mapping[str, Sequence[str]]) -> None:
        self.choices = choices
        self.features: Counter[str] = Counter()
        self._literals = literals

    def subquery(self, scope: Scope, depth: int) -> str:
        """Return a condition with a subquery."""
        raise NotImplementedError

    def note(self, feature: str) -> None:
        """Count the use of a feature."""
        self.features[feature] += 1

    def literal(self, kind: str) -> str:
        """Return a literal, mostly one that occurs in the tables."""
        if kind == "flag":
            return self.choices.one_of(("true", "false"))
        if self.choices.chance(4):
            return "NULL"
        return self.choices.one_of(self._literals[kind])

    def column(self, kind: str, scope: Scope) -> str | None:
        """Return a column of a kind, if there is one."""
        mine = [column.text for column in scope if column.kind == kind]
        return self.choices.one_of(mine) if mine else None

    def expression(self, kind: str, scope: Scope, depth: int) -> str:
        """Return an expression of a kind."""
        column = self.column(kind, scope)
        if depth and self.choices.chance(35):
            nested = [
                (template, other.text)
                for result, template, outer_kind in _NESTED
                for other in scope
                if result == kind and other.kind == outer_kind
            ]
            if nested and self.choices.chance(50):
                self.note("nested column")
                template, text = self.choices.one_of(nested)
                return template.format(text)
            fits = [one for one in _FUNCTIONS if one[0] == kind]
            return self.filled(self.choices.one_of(fits), scope, depth - 1)
        return column or self.literal(kind)

    def filled(self, function: tuple[str, str, tuple[str, ...]], scope: Scope, depth: int) -> str:
        """Return a function of drawn arguments."""
        _, template, takes = function
        arguments = (
            self.simple(scope, 0) if kind == "condition" else self.expression(kind, scope, depth)
            for kind in takes
        )
        return template.format(*arguments)

    def kind_in(self, scope: Scope, kinds: Sequence[str] = KINDS) -> str:
        """Return a kind of which there is a column, if possible."""
        there = [column.kind for column in scope if column.kind in kinds]
        return self.choices.one_of(there or kinds)

    def condition(self, scope: Scope, depth: int) -> str:
        """Return a condition, perhaps with subqueries."""
        way = self.choices.weighted(
            [(5, "simple"), (2, "AND"), (2, "OR"), (1, "NOT"), (7 if depth else 0, "subquery")]
        )
        if way == "subquery":
            return self.subquery(scope, depth - 1)
        one = self._part(scope, depth)
        if way == "simple":
            return one
        if way == "NOT":
            return f"NOT ({one})"
        other = self._part(scope, depth)
        if way == "OR" and "SELECT" in one + other:
            self.note("subquery inside OR")
        return f"{one} {way} {other}"

    def _part(self, scope: Scope, depth: int) -> str:
        """Return a condition that can be a part of another one."""
        if not depth or self.choices.chance(50):
            return self.simple(scope, 1)
        # Parentheses take Spark's parser long, so there are few.
        if self.choices.chance(50):
            return self.subquery(scope, depth - 1)
        return f"({self.condition(scope, depth - 1)})"

    def simple(self, scope: Scope, depth: int) -> str:
        """Return a condition on columns alone."""
        kind = self.kind_in(scope)
        left = self.expression(kind, scope, depth)
        ways = [(5, "literal"), (2, "other"), (2, "in"), (1, "between"), (2, "null"), (1, "true")]
        if kind == "text":
            ways.append((2, "like"))
        if kind == "int" and depth:
            ways.append((1, "python"))
        way = self.choices.weighted(ways)
        negation = "NOT " if self.choices.chance(30) else ""
        if way == "literal":
            sign = self.choices.one_of(_SIGNS)
            return f"{left} {sign} {self.literal(kind)}"
        if way == "other":
            return f"{left} {self.choices.one_of(_SIGNS)} {self.expression(kind, scope, depth)}"
        if way == "in":
            count = 1 + self.choices.below(4)
            return f"{left} {negation}IN ({', '.join(self.literal(kind) for _ in range(count))})"
        if way == "between":
            return f"{left} {negation}BETWEEN {self.literal(kind)} AND {self.literal(kind)}"
        if way == "null":
            return f"{left} IS {negation}NULL"
        if way == "like":
            return f"{left} {negation}LIKE '{self.choices.one_of(_PATTERNS)}'"
        if way == "python" and self.choices.chance(50):
            self.note("function of Python")
            return f"is_odd({left})"
        return self.choices.weighted(
            [(3, "true"), (2, "1 = 1"), (1, "false"), (1, "cast(NULL AS boolean)")]
        )
