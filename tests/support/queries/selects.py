"""Whole SELECTs, drawn from a grammar so that Spark's rules determine their rows.

Nothing in them depends on the order in which rows are read: rows are limited in a total order,
counted after a limit, or, by the outermost query alone, compared with all rows; windows have a total
order; sums of floats are exact. An expression that fails for some values is evaluated on all rows of
the outermost query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.support.queries.choices import Choices
from tests.support.queries.select_relations import JOINS, Query, Relations, of_group
from tests.support.queries.select_scopes import KEYS, RISKY, Column, Scope
from tests.support.tables.select_tables import Kept

_HINTS = ("BROADCAST", "MERGE", "SHUFFLE_HASH", "SHUFFLE_REPLICATE_NL")
_SETS = ("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Select:
    """A query with the tables as `{name}`.

    Attributes:
        text: The query.
        without_limit: The same without its limit, if the limit may take any rows.
        limit: How many rows it returns at most, if it may take any.
        offset: How many rows it leaves out before.
        ordered: Whether its rows have an order.
        features: How often each feature is used.
    """

    text: str
    without_limit: str = ""
    limit: int | None = None
    offset: int = 0
    ordered: bool = False
    features: Mapping[str, int] = field(default_factory=dict)


def select(
    choices: Choices, tables: Mapping[str, Kept], literals: Mapping[str, Sequence[str]]
) -> Select:
    """Draw a query."""
    return _Grammar(choices, tables, literals).whole()


class _Grammar(Relations):
    # --- the outermost query ---

    def whole(self) -> Select:
        """Return a whole query."""
        way = self.choices.weighted([(4, "plain"), (4, "limit"), (2, "ordered"), (1, "risky")])
        if way == "risky":
            return self._whole(self._risky().text)
        query = self.query(2)
        if way == "limit":
            self.note("limit of any rows")
            limit = self.choices.one_of((3, 1, 2, 7, 20, 100))
            offset = self.choices.one_of((0, 0, 0, 1, 5))
            text = query.text if query.is_open else f"SELECT * FROM ({query.text})"
            text += f" LIMIT {limit}" + (f" OFFSET {offset}" if offset else "")
            return self._whole(text, without_limit=query.text, limit=limit, offset=offset)
        if way == "ordered":
            self.note("order of all rows")
            name = self._new("a")
            order = self._total([Column(f"{name}.{one}", kind) for one, kind in query.columns])
            return self._whole(
                f"SELECT * FROM ({query.text}) {name} ORDER BY {order}", ordered=True
            )
        return self._whole(query.text)

    def _whole(self, text: str, **more: object) -> Select:
        return Select(text=text, features=self.features, **more)  # type: ignore[arg-type]

    def _risky(self) -> Query:
        self.note("expression that may fail")
        source, scope = self.relation(1)
        function = self.choices.one_of(RISKY)
        risky = self.filled(function, scope, 0)
        name = self._new("c")
        where = self._where(scope, 1)
        if function[0] == "int" and self.choices.chance(30):
            return Query(f"SELECT max({risky}) AS {name} FROM {source}{where}", [(name, "int")])
        columns, text = self._outputs(scope, 0)
        outputs = ", ".join([*([text] if text else []), f"{risky} AS {name}"])
        return Query(f"SELECT {outputs} FROM {source}{where}", [*columns, (name, function[0])])

    # --- queries ---

    def query(self, depth: int, kinds: Sequence[str] = ()) -> Query:
        """Return a query.

        Args:
            depth: How deep it may be.
            kinds: The kinds of its columns; any without.
        """
        ways = [(6, self._plain)]
        if depth:
            ways += [
                (4, self._grouped),
                (3, self._windowed),
                (3, self._set),
                (3, self._topmost),
                (2, self._counted),
                (2, self._named),
                (1, self._setsof_groups),
                (1, self._first_of_each),
            ]
        way = self.choices.weighted(ways)
        if way == self._plain or not kinds:
            return way(depth, kinds)
        inner = way(depth, ())
        name = self._new("a")
        scope = [Column(f"{name}.{one}", kind) for one, kind in inner.columns]
        columns, text = self._outputs(scope, 1, kinds)
        return Query(f"SELECT {text} FROM ({inner.text}) {name}", columns)

    def _plain(self, depth: int, kinds: Sequence[str]) -> Query:
        source, scope = self.relation(depth)
        distinct = self.choices.chance(12)
        columns, text = self._outputs(scope, 1, kinds, of_groups=distinct)
        if not kinds and depth and self.choices.chance(12):
            self.note("scalar subquery in the outputs")
            kind = self.choices.one_of(("int", "text", "day"))
            name = self._new("c")
            columns.append((name, kind))
            text += f", {self._scalar(kind, scope, depth - 1)} AS {name}"
        if distinct:
            self.note("DISTINCT")
        hint = ""
        if " JOIN " in source and self.choices.chance(20):
            self.note("hint of a join")
            hint = f"/*+ {self.choices.one_of(_HINTS)}({scope[0].text.split('.')[0]}) */ "
        where = self._where(scope, max(1, depth))
        return Query(
            f"SELECT {hint}{'DISTINCT ' * distinct}{text} FROM {source}{where}",
            columns,
            is_open=True,
        )

    def _grouped(self, depth: int, kinds: Sequence[str]) -> Query:
        self.note("GROUP BY")
        source, scope = self.relation(depth - 1)
        keys, columns, texts = [], [], []
        for _ in range(self.choices.below(3)):
            kind = self.kind_in(scope)
            keys.append(of_group(self.expression(kind, scope, 1), kind))
            columns.append((self._new("c"), kind))
            texts.append(f"{keys[-1]} AS {columns[-1][0]}")
        for _ in range(1 + self.choices.below(2)):
            text, kind = self._aggregate(scope)
            columns.append((self._new("c"), kind))
            texts.append(f"{text} AS {columns[-1][0]}")
        where = self._where(scope, depth - 1)
        # Numbers would be places of outputs.
        keys = [f"({key})" for key in keys]
        by = f" GROUP BY {', '.join(keys)}" if keys else ""
        having = ""
        if self.choices.chance(30):
            self.note("HAVING")
            text, kind = self._aggregate(scope)
            having = f" HAVING {self._compared(text, kind, scope, depth)}"
        return Query(f"SELECT {', '.join(texts)} FROM {source}{where}{by}{having}", columns, True)

    def _compared(self, text: str, kind: str, scope: Scope, depth: int) -> str:
        sign = self.choices.one_of(("<>", "<=", ">", ">="))
        if depth > 1 and self.choices.chance(25):
            self.note("subquery in HAVING")
            return f"{text} {sign} {self._scalar(kind, (), 0)}"
        return f"{text} {sign} {self.literal(kind)}"

    def _setsof_groups(self, depth: int, kinds: Sequence[str]) -> Query:
        source, scope = self.relation(depth - 1)
        there = [column for column in scope if column.kind in (*KEYS, "flag")]
        if not there:
            return self._grouped(depth, kinds)
        keys = [self.choices.one_of(there) for _ in range(2)]
        names = [self._new("c") for _ in keys]
        one, other = (key.text for key in keys)
        by = self.choices.one_of(
            (
                f"ROLLUP ({one}, {other})",
                f"CUBE ({one}, {other})",
                f"GROUPING SETS (({one}, {other}), ({other}), ())",
                f"GROUPING SETS (({one}), ({one}, {other}))",
            )
        )
        self.note(by.split(" (")[0])
        text, kind = self._aggregate(scope)
        total, place = self._new("c"), self._new("c")
        return Query(
            f"SELECT {one} AS {names[0]}, {other} AS {names[1]}, {text} AS {total}, "
            f"cast(grouping_id() AS int) AS {place} FROM {source}{self._where(scope, depth - 1)} "
            f"GROUP BY {by}",
            [*zip(names, (key.kind for key in keys), strict=True), (total, kind), (place, "int")],
        )

    def _total(self, scope: Scope) -> str:
        """Return a total order of rows, by all columns; it begins with any of them."""
        columns = list(scope)
        first = self.choices.below(len(columns))
        parts = []
        for column in columns[first:] + columns[:first]:
            # 0.0 and -0.0 have no order.
            text = f"cast({column.text} AS string)" if column.kind == "real" else column.text
            ways = (" ", " DESC ", " NULLS LAST", " DESC NULLS FIRST")
            parts.append(f"{text}{self.choices.one_of(ways).rstrip()}")
        return ", ".join(parts)

    def _windowed(self, depth: int, kinds: Sequence[str]) -> Query:
        self.note("window")
        source, scope = self.relation(depth - 1)
        columns, outputs = self._outputs(scope, 1)
        texts = [outputs]
        for _ in range(1 + self.choices.below(2)):
            text, kind = self._window(scope)
            columns.append((self._new("c"), kind))
            texts.append(f"{text} AS {columns[-1][0]}")
        return Query(
            f"SELECT {', '.join(texts)} FROM {source}{self._where(scope, depth - 1)}", columns
        )

    def _window(self, scope: Scope) -> tuple[str, str]:
        by = self.kind_in(scope, KEYS)
        partition = (
            f"PARTITION BY {self.expression(by, scope, 0)} " if self.choices.chance(70) else ""
        )
        total = f"{partition}ORDER BY {self._total(scope)}"
        kind = self.kind_in(scope)
        value = self.expression(kind, scope, 0)
        frame = self.choices.one_of(
            ("1 PRECEDING AND CURRENT ROW", "UNBOUNDED PRECEDING AND 1 FOLLOWING")
        )
        most = of_group(f"max({value}) OVER ({total} ROWS BETWEEN {frame})", kind)
        some = f"{partition}ORDER BY {self.expression(by, scope, 0)}"
        ways = (
            (f"row_number() OVER ({total})", "int"),
            (f"rank() OVER ({some})", "int"),
            (f"dense_rank() OVER ({some} DESC)", "int"),
            (f"ntile(3) OVER ({total})", "int"),
            (f"lag({value}) OVER ({total})", kind),
            (f"lead({value}, 2) OVER ({total})", kind),
            (f"first_value({value}) OVER ({total})", kind),
            (most, kind),
            (f"count({value}) OVER ({partition})", "int"),
            (f"count(*) OVER ({some})", "int"),
        )
        return self.choices.one_of(ways)

    def _first_of_each(self, depth: int, kinds: Sequence[str]) -> Query:
        self.note("first rows of each group")
        inner = self._windowed(depth, ())
        name = self._new("a")
        scope = [Column(f"{name}.{one}", kind) for one, kind in inner.columns]
        numbers = [column for column in scope if column.kind == "int"] or [Column("1", "int")]
        columns, text = self._outputs(scope, 0)
        limit = f"{numbers[-1].text} <= {1 + self.choices.below(3)}"
        return Query(f"SELECT {text} FROM ({inner.text}) {name} WHERE {limit}", columns)

    def _set(self, depth: int, kinds: Sequence[str]) -> Query:
        first = self.query(depth - 1)
        has_floats = any(kind == "real" for _, kind in first.columns)
        operation = "UNION ALL" if has_floats else self.choices.one_of(_SETS)
        self.note(operation)
        second = self.query(depth - 1, [kind for _, kind in first.columns])
        return Query(f"({first.text}) {operation} ({second.text})", first.columns)

    def _topmost(self, depth: int, kinds: Sequence[str]) -> Query:
        self.note("first rows in an order")
        inner = self.query(depth - 1)
        name = self._new("a")
        order = self._total([Column(f"{name}.{one}", kind) for one, kind in inner.columns])
        offset = f" OFFSET {self.choices.one_of((1, 4))}" if self.choices.chance(25) else ""
        limit = self.choices.one_of((3, 1, 2, 5, 12))
        return Query(
            f"SELECT * FROM ({inner.text}) {name} ORDER BY {order} LIMIT {limit}{offset}",
            inner.columns,
        )

    def _counted(self, depth: int, kinds: Sequence[str]) -> Query:
        self.note("limit of any rows, counted")
        inner = self.query(depth - 1)
        name = self._new("c")
        offset = f" OFFSET {self.choices.one_of((1, 4))}" if self.choices.chance(25) else ""
        limit = self.choices.one_of((7, 1, 3, 20, 0))
        text = inner.text if inner.is_open else f"SELECT * FROM ({inner.text})"
        return Query(
            f"SELECT count(*) AS {name} FROM ({text} LIMIT {limit}{offset})", [(name, "int")]
        )

    def _named(self, depth: int, kinds: Sequence[str]) -> Query:
        self.note("CTE used twice")
        name = self._new("n")
        common = self.query(depth - 1)
        one, other = self._new("a"), self._new("a")
        scopes = [
            [Column(f"{alias}.{text}", kind) for text, kind in common.columns]
            for alias in (one, other)
        ]
        begin = f"WITH {name} AS ({common.text}) "
        way = self.choices.one_of(("join", "union", "subquery"))
        columns, text = self._outputs(scopes[0], 1)
        if way == "join":
            on = self._on(scopes[0], scopes[1])
            join = self.choices.one_of(JOINS)
            return Query(
                f"{begin}SELECT {text} FROM {name} {one} {join} {name} {other} ON {on}", columns
            )
        if way == "union":
            _, more = self._outputs(scopes[1], 1, [kind for _, kind in columns])
            return Query(
                f"{begin}SELECT {text} FROM {name} {one}{self._where(scopes[0], 0)} UNION ALL "
                f"SELECT {more} FROM {name} {other}",
                columns,
            )
        kind = self.kind_in(scopes[0])
        left, right = (self.expression(kind, scope, 0) for scope in scopes)
        return Query(
            f"{begin}SELECT {text} FROM {name} {one} WHERE {left} IN "
            f"(SELECT {right} FROM {name} {other}{self._where(scopes[1], 0)})",
            columns,
        )
