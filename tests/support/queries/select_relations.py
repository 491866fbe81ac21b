"""Relations and subqueries of whole SELECTs: what stands in FROM, and what conditions ask of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.support.queries.choices import Choices
from tests.support.queries.select_scopes import KEYS, Column, Expressions, Scope
from tests.support.tables.select_tables import Kept

JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")


@dataclass(frozen=True, slots=True)
class Query:
    """A query.

    Attributes:
        text: The query.
        columns: The names and kinds of its columns.
        is_open: Whether a limit may follow.
    """

    text: str
    columns: Sequence[tuple[str, str]]
    is_open: bool = False


def of_group(value: str, kind: str) -> str:
    """Return a value that does not depend on which of 0.0 and -0.0 stands for both."""
    return f"({value} + 0.0D)" if kind == "real" else value


class Relations(Expressions):
    """Draws relations and subqueries; queries are drawn elsewhere."""

    def __init__(
        self,
        choices: Choices,
        tables: Mapping[str, Kept],
        literals: Mapping[str, Sequence[str]],
    ) -> None:
        super().__init__(choices, literals)
        self._tables = tables
        self._weights = [(table.weight, name) for name, table in tables.items()]
        self._count = 0
        self._common: list[tuple[str, Query]] = []

    def _new(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def query(self, depth: int, kinds: Sequence[str] = ()) -> Query:
        """Return a query.

        Args:
            depth: How deep it may be.
            kinds: The kinds of its columns; any without.
        """
        raise NotImplementedError

    # --- parts of queries ---

    def _outputs(
        self, scope: Scope, depth: int, kinds: Sequence[str] = (), *, of_groups: bool = False
    ) -> tuple[list[tuple[str, str]], str]:
        output_kinds = kinds or [self.kind_in(scope) for _ in range(1 + self.choices.below(3))]
        columns, texts = [], []
        for kind in output_kinds:
            name = self._new("c")
            columns.append((name, kind))
            value = self.expression(kind, scope, depth)
            texts.append(f"{of_group(value, kind) if of_groups else value} AS {name}")
        return columns, ", ".join(texts)

    def _where(self, scope: Scope, depth: int) -> str:
        return f" WHERE {self.condition(scope, depth)}" if self.choices.chance(65) else ""

    def _aggregate(self, scope: Scope) -> tuple[str, str]:
        """Return an aggregate that needs no order of rows, and its kind."""
        way = self.choices.weighted(
            [
                (3, "count(*)"),
                (2, "count"),
                (4, "min"),
                (3, "sum"),
                (1, "avg"),
                (2, "distinct"),
                (1, "set"),
            ]
        )
        only = ""
        if self.choices.chance(10):
            self.note("FILTER of an aggregate")
            only = f" FILTER (WHERE {self.simple(scope, 0)})"
        if way == "count(*)":
            return f"count(*){only}", "int"
        if way in ("sum", "avg"):
            kind = self.kind_in(scope, ("int", "dec", "real"))
            column = self.column(kind, scope) or self.literal(kind)
            if way == "sum":
                return f"sum({column}){only}", kind
            # An average is no exact number, so that sums of them depend on the order of rows.
            return f"cast(avg({column}){only} AS string)", "text"
        kind = self.kind_in(scope)
        value = self.expression(kind, scope, 0)
        if way == "count":
            return f"count({value}){only}", "int"
        if way == "distinct":
            self.note("count of distinct values")
            return f"count(DISTINCT {value}){only}", "int"
        if way == "set":
            value = self.expression("text", scope, 0)
            return f"array_join(sort_array(collect_set({value}){only}), ',')", "text"
        function = self.choices.one_of(("min", "max"))
        return of_group(f"{function}({value}){only}", kind), kind

    # --- relations ---

    def base(self) -> tuple[str, Scope]:
        """Return a table with an alias."""
        table, name = self.choices.weighted(self._weights), self._new("a")
        columns = self._tables[table].columns
        return f"{{{table}}} {name}", [
            Column(f"{name}.{one}", kind) for one, kind in columns.items()
        ]

    def relation(self, depth: int) -> tuple[str, Scope]:
        """Return what stands in FROM, with its columns."""
        ways = [(6, "base")]
        if depth > 0:
            ways += [(3, "derived"), (6, "join"), (1, "values"), (1, "exploded"), (2, "lateral")]
            ways += [(1, "using")]
        way = self.choices.weighted(ways)
        if way == "derived":
            return self._derived(self.query(depth - 1))
        if way == "join":
            return self._join(depth)
        if way == "using":
            return self._using(depth)
        if way == "lateral":
            return self._lateral()
        if way == "values":
            self.note("VALUES")
            kinds = ("int", self.choices.one_of(("text", "day", "dec")))
            rows = (
                f"({', '.join(self.literal(kind) for kind in kinds)})"
                for _ in range(1 + self.choices.below(4))
            )
            name, names = self._new("a"), [self._new("c") for _ in kinds]
            columns = [
                Column(f"{name}.{one}", kind) for one, kind in zip(names, kinds, strict=True)
            ]
            return f"(VALUES {', '.join(rows)}) {name}({', '.join(names)})", columns
        source, scope = self.base()
        if way == "exploded":
            lists = [column.text for column in scope if column.kind == "list"]
            if lists:
                self.note("explode")
                name, one = self._new("a"), self._new("c")
                outer = self.choices.one_of(("", "OUTER "))
                source += f" LATERAL VIEW {outer}explode({lists[0]}) {name} AS {one}"
                return source, [*scope, Column(f"{name}.{one}", "int")]
        return source, scope

    def _derived(self, query: Query) -> tuple[str, Scope]:
        name = self._new("a")
        return f"({query.text}) {name}", [
            Column(f"{name}.{one}", kind) for one, kind in query.columns
        ]

    def _on(self, left: Scope, right: Scope) -> str:
        pairs = [
            (one.text, other.text)
            for one in left
            for other in right
            if one.kind == other.kind and one.kind in KEYS
        ]
        if not pairs:
            return "1 = 1"
        one, other = self.choices.one_of(pairs)
        text = f"{one} {self.choices.one_of(('=', '=', '=', '<=>'))} {other}"
        return f"{text} AND {self.simple([*left, *right], 0)}" if self.choices.chance(30) else text

    def _join(self, depth: int) -> tuple[str, Scope]:
        source, scope = self.relation(depth - 1)
        if self.choices.chance(8):
            self.note("CROSS JOIN")
            rows, name, one = self.choices.one_of((1, 2)), self._new("a"), self._new("c")
            kind = self.choices.one_of(("CROSS JOIN", ","))
            inner = f"(SELECT id AS {one} FROM range({rows}))"
            return f"{source} {kind} {inner} {name}", [*scope, Column(f"{name}.{one}", "int")]
        more, others = self.relation(depth - 1)
        join = self.choices.one_of(JOINS)
        self.note(join)
        on = self._on(scope, others)
        if depth > 1 and join == "JOIN" and self.choices.chance(8):
            self.note("subquery in ON")
            on += f" AND {self.subquery(scope, 0)}"
        columns = scope if join.endswith(("SEMI JOIN", "ANTI JOIN")) else [*scope, *others]
        if " JOIN " in more:
            # Joins are read from the left.
            more = f"({more})"
        return f"{source} {join} {more} ON {on}", columns

    def _using(self, depth: int) -> tuple[str, Scope]:
        key, kind = self._new("k"), self.choices.one_of(KEYS)
        sides, scope = [], [Column(key, kind)]
        for _ in range(2):
            source, inner = self.relation(depth - 1)
            name, columns = self._new("a"), self._outputs(inner, 0)
            value = self.expression(kind, inner, 0)
            where = self._where(inner, 0)
            sides.append(f"(SELECT {value} AS {key}, {columns[1]} FROM {source}{where}) {name}")
            scope += [Column(f"{name}.{one}", other) for one, other in columns[0]]
        join = self.choices.one_of(JOINS[:4])
        if self.choices.chance(40):
            self.note("NATURAL JOIN")
            return f"{sides[0]} NATURAL {join} {sides[1]}", scope
        self.note("JOIN USING")
        return f"{sides[0]} {join} {sides[1]} USING ({key})", scope

    def _lateral(self) -> tuple[str, Scope]:
        self.note("LATERAL")
        source, scope = self.base()
        inner, others = self.base()
        link = self._on(others, scope)
        name, one = self._new("a"), self._new("c")
        if self.choices.chance(50):
            text, kind = self._aggregate(others)
            outputs = f"{text} AS {one}"
        else:
            kind = self.kind_in(others)
            outputs = f"{self.expression(kind, others, 0)} AS {one}"
        join = self.choices.one_of((", LATERAL", " LEFT JOIN LATERAL"))
        on = " ON true" if "LEFT" in join else ""
        text = f"{source}{join} (SELECT {outputs} FROM {inner} WHERE {link}) {name}{on}"
        return text, [*scope, Column(f"{name}.{one}", kind)]

    # --- subqueries ---

    def _scalar(self, kind: str, scope: Scope, depth: int) -> str:
        """Return a scalar subquery, correlated with a scope unless that is empty."""
        if scope and self.choices.chance(50):
            inner, others = self.base()
            pairs = [
                f"{one.text} = {other.text}"
                for one in others
                for other in scope
                if one.kind == other.kind and one.kind in KEYS
            ]
            if pairs:
                self.note("correlated scalar subquery")
                return (
                    f"(SELECT {self._least(kind, others)} FROM {inner} WHERE "
                    f"{self.choices.one_of(pairs)}"
                    + (f" AND {self.simple(others, 0)})" if self.choices.chance(30) else ")")
                )
        self.note("scalar subquery")
        source, others = self.relation(depth)
        return f"(SELECT {self._least(kind, others)} FROM {source}{self._where(others, depth)})"

    def _least(self, kind: str, scope: Scope) -> str:
        function = self.choices.one_of(("max", "min"))
        return of_group(f"{function}({self.expression(kind, scope, 0)})", kind)

    def subquery(self, scope: Scope, depth: int) -> str:
        """Return a condition with a subquery."""
        way = self.choices.weighted([(3, "IN"), (3, "EXISTS"), (2, "scalar"), (1, "two")])
        kind = self.kind_in(scope, KEYS)
        if way == "scalar":
            value = self.expression(kind, scope, 0)
            sign = self.choices.one_of(("=", "<", ">=", "<>", "<=>"))
            return f"{value} {sign} {self._scalar(kind, scope, depth)}"
        negation = "NOT " if self.choices.chance(40) else ""
        source, others = self.relation(depth)
        where = self.condition(others, depth)
        is_correlated = self.choices.chance(50 if way == "EXISTS" else 15)
        if is_correlated:
            self.note(f"correlated {negation}{'EXISTS' if way == 'EXISTS' else 'IN'}")
            where = f"{self._on(others, scope)} AND ({where})"
        if way == "EXISTS":
            self.note(f"{negation}EXISTS")
            # Spark would limit all rows, not those of each outer row: to any one of them.
            limit = " LIMIT 1" if self.choices.chance(15) and not is_correlated else ""
            return f"{negation}EXISTS (SELECT 1 FROM {source} WHERE {where}{limit})"
        self.note(f"{negation}IN")
        kinds = [kind, self.kind_in(scope, KEYS)] if way == "two" else [kind]
        left = ", ".join(self.expression(one, scope, 0) for one in kinds)
        right = ", ".join(self.expression(one, others, 0) for one in kinds)
        left = f"({left})" if way == "two" else left
        return f"{left} {negation}IN (SELECT {right} FROM {source} WHERE {where})"
