"""Read a filter from SQL text.

The grammar is our own: it is small, and each error must point at its token:

    or         = and ("OR" and)*
    and        = not ("AND" not)*
    not        = ("NOT" | "!") not | predicate
    predicate  = operand (comparison operand | ["NOT"] in | ["NOT"] between
                          | ["NOT"] like | "IS" ["NOT"] "NULL")?
    operand    = "(" or ")" | column | literal
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from pydantic import ValidationError

from windrow_core.models import (
    Between,
    Comparison,
    FilterTree,
    In,
    IsNull,
    Junction,
    Not,
    StartsWith,
)
from windrow_service.filters.errors import InvalidFilterError, quote
from windrow_service.filters.limits import (
    MAX_DEPTH,
    MAX_NODES,
    check_size,
    too_deep,
    too_many_nodes,
)
from windrow_service.filters.parsed import LiteralKind, Name, ParsedFilter, Position, Value
from windrow_service.filters.tokens import REST, Cursor
from windrow_service.filters.values import number

_ONLY_PREFIX = "only LIKE 'prefix%' can be planned; apply the rest with DataFrame.filter"


def like(pattern: Value, escape: Value | None, text: str) -> tuple[str, bool]:
    r"""Return the text that a pattern begins with, and whether more text may follow.

    After the escape character, which is `\` by default, `_` and `%` are literal.

    Args:
        pattern: The pattern.
        escape: The value after ESCAPE.
        text: The whole filter.
    """
    if pattern.kind != "text" or not isinstance(pattern.value, str):
        raise InvalidFilterError("LIKE needs a pattern in quotes", text, pattern.offset)
    mark = "\\" if escape is None else escape.value
    if not isinstance(mark, str) or len(mark) != 1:
        raise InvalidFilterError(
            "ESCAPE needs one character in quotes", text, (escape or pattern).offset
        )
    kept = []
    rest = iter(pattern.value)
    for character in rest:
        if character == mark:
            escaped = next(rest, "")
            if escaped not in {mark, "_", "%"}:
                raise InvalidFilterError(
                    f"in LIKE, {mark} must be followed by _, % or itself: double it",
                    text,
                    pattern.offset,
                )
            kept.append(escaped)
        elif character == "%":
            if set(rest) <= {"%"}:
                return "".join(kept), True
            raise InvalidFilterError(_ONLY_PREFIX, text, pattern.offset)
        elif character == "_":
            raise InvalidFilterError(_ONLY_PREFIX, text, pattern.offset)
        else:
            kept.append(character)
    return "".join(kept), False


_Operator: TypeAlias = Literal["eq", "ne", "lt", "le", "gt", "ge"]
_Operand: TypeAlias = Name | Value

_OPERATORS: dict[str, _Operator] = {
    "=": "eq",
    "==": "eq",
    "<>": "ne",
    "!=": "ne",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
}
_FLIPPED: dict[_Operator, _Operator] = {
    "eq": "eq",
    "ne": "ne",
    "lt": "gt",
    "le": "ge",
    "gt": "lt",
    "ge": "le",
}
_TYPED: dict[str, LiteralKind] = {
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_NTZ": "timestamp",
    "TIMESTAMP_LTZ": "timestamp",
}
_NO_NAMES = frozenset(
    {"AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "IS", "CASE", "EXISTS"}
    | {"SELECT", "NULL", "TRUE", "FALSE"}
)
_MAX_VALUES = 10_000
_ONLY_CASTS = f"only CAST('…' AS DATE) and AS TIMESTAMP can be planned; {REST}"


def parse_sql(text: str, *, max_nodes: int = MAX_NODES, max_depth: int = MAX_DEPTH) -> ParsedFilter:
    """Read a filter from SQL text, as Spark writes it.

    Args:
        text: A condition on columns and literals.
        max_nodes: Most nodes of the tree.
        max_depth: Most levels of the tree, and of parentheses.
    """
    try:
        parsed = _Parser(text, max_nodes, max_depth).parse()
        check_size(parsed.tree, max_nodes, max_depth)
    except RecursionError:
        raise InvalidFilterError(too_deep(max_depth), text) from None
    except ValidationError as error:
        raise InvalidFilterError(error.errors()[0]["msg"], text) from None
    return parsed


class _Parser:
    """One pass over the tokens of one text."""

    def __init__(self, text: str, max_nodes: int, max_depth: int) -> None:
        self._cursor = Cursor(text)
        self._max_nodes = max_nodes
        self._max_depth = max_depth
        self._depth = 0
        self._positions: list[Position] = []

    def parse(self) -> ParsedFilter:
        if self._cursor.at_end():
            self._cursor.fail("the filter is empty: leave it out to read every row", 0)
        tree = self._condition(self._or())
        if not self._cursor.at_end():
            self._cursor.unexpected()
        return ParsedFilter(tree, self._cursor.text, tuple(self._positions))

    # --- conditions -------------------------------------------------------------

    def _or(self) -> FilterTree | _Operand:
        first = self._and()
        if self._cursor.symbol != "OR":
            return first
        args = [self._condition(first)]
        while self._cursor.accept("OR"):
            args.append(self._condition(self._and()))
        return Junction(op="or", args=args)

    def _and(self) -> FilterTree | _Operand:
        first = self._not()
        if self._cursor.symbol != "AND":
            return first
        args = [self._condition(first)]
        while self._cursor.accept("AND"):
            args.append(self._condition(self._not()))
        return Junction(op="and", args=args)

    def _not(self) -> FilterTree | _Operand:
        if self._cursor.symbol not in ("NOT", "!"):
            return self._predicate()
        self._enter()
        tree = Not(op="not", arg=self._condition(self._not()))
        self._depth -= 1
        return tree

    def _predicate(self) -> FilterTree | _Operand:
        left = self._operand_or_condition()
        if not isinstance(left, (Name, Value)):
            return left
        operator = _OPERATORS.get(self._cursor.symbol)
        if operator is not None:
            return self._comparison(left, operator)
        if self._cursor.accept("IS"):
            return self._is_null(left)
        negated = self._cursor.accept("NOT")
        tree: FilterTree
        if self._cursor.accept("IN"):
            tree = self._in(self._column(left))
        elif self._cursor.accept("BETWEEN"):
            tree = self._between(self._column(left))
        elif self._cursor.accept("LIKE"):
            tree = self._like(self._column(left))
        elif negated:
            self._cursor.unexpected()
        else:
            return left
        return Not(op="not", arg=tree) if negated else tree

    def _comparison(self, left: _Operand, operator: _Operator) -> FilterTree:
        at = self._cursor.offset
        self._cursor.step()
        right = self._operand()
        if isinstance(left, Name) and isinstance(right, Value):
            return self._compare(operator, left, right)
        if isinstance(left, Value) and isinstance(right, Name):
            return self._compare(_FLIPPED[operator], right, left)
        what = "columns" if isinstance(left, Name) else "values"
        self._cursor.fail(
            f"two {what} are compared, but only a column and a value can be planned; {REST}", at
        )

    def _compare(self, operator: _Operator, name: Name, value: Value) -> FilterTree:
        self._note(name, value)
        return Comparison(op=operator, column=name.text, value=value.value)

    def _is_null(self, left: _Operand) -> FilterTree:
        negated = self._cursor.accept("NOT")
        if not self._cursor.accept("NULL"):
            self._cursor.fail(f"only IS NULL and IS NOT NULL can be planned; {REST}")
        name = self._column(left)
        self._note(name)
        return IsNull(op="is_not_null" if negated else "is_null", column=name.text)

    def _in(self, name: Name) -> FilterTree:
        self._cursor.expect("(")
        if self._cursor.symbol == ")":
            self._cursor.fail("IN needs at least one value")
        if self._cursor.symbol == "SELECT":
            self._cursor.fail(f"a subquery cannot be planned; {REST}")
        values = [self._value()]
        while self._cursor.accept(","):
            if len(values) == _MAX_VALUES:
                self._cursor.fail(
                    f"IN may have at most {_MAX_VALUES:,} values: use a join for more"
                )
            values.append(self._value())
        self._cursor.expect(")")
        self._note(name, *values)
        return In(op="in", column=name.text, values=[value.value for value in values])

    def _between(self, name: Name) -> FilterTree:
        low = self._value()
        self._cursor.expect("AND")
        high = self._value()
        self._note(name, low, high)
        return Between(op="between", column=name.text, low=low.value, high=high.value)

    def _like(self, name: Name) -> FilterTree:
        pattern = self._value()
        escape = self._value() if self._cursor.accept("ESCAPE") else None
        text, is_prefix = like(pattern, escape, self._cursor.text)
        self._note(name, pattern)
        if is_prefix:
            return StartsWith(op="starts_with", column=name.text, prefix=text)
        return Comparison(op="eq", column=name.text, value=text)

    def _condition(self, node: FilterTree | _Operand) -> FilterTree:
        if not isinstance(node, (Name, Value)):
            return node
        if not self._cursor.at_end() and self._cursor.symbol not in ("AND", "OR", ")"):
            self._cursor.unexpected()
        if isinstance(node, Name):
            self._cursor.fail(
                f"{quote(node.text)} is not a condition: compare it, for example with = TRUE",
                node.offset,
            )
        self._cursor.fail("a value is not a condition: compare a column with it", node.offset)

    # --- operands ---------------------------------------------------------------

    def _operand_or_condition(self) -> FilterTree | _Operand:
        if self._cursor.symbol == "(":
            self._enter()
            inner = self._or()
            self._cursor.expect(")")
            self._depth -= 1
            return inner
        value = self._literal()
        return self._name() if value is None else value

    def _operand(self) -> _Operand:
        at = self._cursor.offset
        operand = self._operand_or_condition()
        if not isinstance(operand, (Name, Value)):
            self._cursor.fail(f"a condition cannot be compared; {REST}", at)
        return operand

    def _value(self) -> Value:
        operand = self._operand()
        if isinstance(operand, Name):
            self._cursor.fail(f"expected a literal value, found a column; {REST}", operand.offset)
        return operand

    def _column(self, operand: _Operand) -> Name:
        if isinstance(operand, Value):
            self._cursor.fail("expected a column on the left", operand.offset)
        return operand

    def _literal(self) -> Value | None:
        at = self._cursor.offset
        if self._cursor.string is not None:
            return self._string("text", at)
        if (digits := self._cursor.hex_string) is not None:
            self._cursor.step()
            return Value("binary", digits, at)
        if self._cursor.number is not None or self._cursor.symbol in ("-", "+", "."):
            return self._number()
        word = self._cursor.word
        if word in ("TRUE", "FALSE", "NULL"):
            self._cursor.step()
            return (
                Value("null", None, at) if word == "NULL" else Value("boolean", word == "TRUE", at)
            )
        if word in _TYPED and self._cursor.precedes_string():
            self._cursor.step()
            return self._string(_TYPED[word], at)
        if word == "CAST" and self._cursor.precedes("("):
            return self._cast()
        return None

    def _string(self, kind: LiteralKind, at: int) -> Value:
        text = self._cursor.string
        self._cursor.step()
        if self._cursor.string is not None:
            self._cursor.fail("two strings follow each other: write a quote inside a string as \\'")
        return Value(kind, text, at)

    def _cast(self) -> Value:
        at = self._cursor.offset
        self._cursor.step()
        self._cursor.expect("(")
        text = self._cursor.string
        if text is None:
            self._cursor.fail(_ONLY_CASTS)
        self._cursor.step()
        self._cursor.expect("AS")
        kind = _TYPED.get(self._cursor.word)
        if kind is None:
            self._cursor.fail(_ONLY_CASTS)
        self._cursor.step()
        self._cursor.expect(")")
        return Value(kind, text, at)

    def _number(self) -> Value:
        at = self._cursor.offset
        sign = self._cursor.symbol if self._cursor.symbol in ("-", "+") else ""
        if sign:
            self._cursor.step()
        point = "." if self._cursor.accept(".") else ""
        digits, begin = self._cursor.number, self._cursor.offset
        if digits is None:
            self._cursor.fail(f"expected a literal number; {REST}")
        if date := re.compile(r"\d{4}-\d{1,2}-\d{1,2}[\w:.]*").match(self._cursor.text, at):
            self._cursor.fail(f"put a date or time in quotes: '{date[0]}'", at)
        value = number(sign + point + digits)
        if value is None:
            self._cursor.fail(f"{quote(digits)} is not a number")
        self._cursor.step()
        # The tokens of a suffix, such as the L of 5L, have the offset of the number itself.
        if self._cursor.offset == begin:
            self._cursor.fail("write the number without a suffix")
        if "e" in digits.lower():
            return Value("double", value, at)
        return Value("number", value, at, len((point + digits).partition(".")[2]))

    def _name(self) -> Name:
        at = self._cursor.offset
        name = self._cursor.name
        if name is None or self._cursor.word in _NO_NAMES:
            self._cursor.unexpected()
        self._cursor.step()
        if self._cursor.symbol == "(":
            self._cursor.fail(f"the function {name[:60]}() cannot be planned; {REST}", at)
        if self._cursor.symbol == ".":
            self._cursor.fail(
                "a qualified name or a nested field cannot be planned: use the column name alone, "
                "in backticks if it contains a dot"
            )
        if not name:
            self._cursor.fail("the name is empty", at)
        return Name(name, at)

    # --- bookkeeping ------------------------------------------------------------

    def _enter(self) -> None:
        """Step over an opening token, one level deeper."""
        self._depth += 1
        if self._depth > self._max_depth:
            self._cursor.fail(too_deep(self._max_depth))
        self._cursor.step()

    def _note(self, name: Name, *values: Value) -> None:
        """Record the positions of the parts of a condition."""
        self._positions.append(Position(name.offset, values))
        if len(self._positions) > self._max_nodes:
            self._cursor.fail(too_many_nodes(self._max_nodes), name.offset)
