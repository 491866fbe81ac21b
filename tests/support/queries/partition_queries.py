"""Conditions and queries in SQL on a partitioned table, drawn from a grammar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.support.tables.partition_schemes import DATA, Scheme

Texts = st.SearchStrategy[str]

_KIND_OF = {
    **dict.fromkeys(("smallint", "int", "bigint", "decimal(6,2)", "float", "double"), "number"),
    "string": "text",
    "date": "day",
    "timestamp": "time",
    "timestamp_ntz": "time",
    "boolean": "flag",
    "binary": "bytes",
}
_LITERALS: Mapping[str, Sequence[str]] = {
    "number": ("0", "1", "7", "-3", "12", "1.5", "0.5D", "9000000000", "8", "2025", "-0.0D", "100"),
    "text": (
        "'a'",
        "'A'",
        "'01'",
        "'1'",
        "'é'",
        "' '",
        "''",
        "'2025-08'",
        "'x y'",
        "'a%b'",
        "'a/b'",
    ),
    "day": ("DATE'2025-08-01'", "DATE'2025-01-01'", "DATE'1970-01-01'", "DATE'9999-12-31'"),
    "time": (
        "TIMESTAMP'2025-11-02 01:30:00'",
        "TIMESTAMP_NTZ'2025-11-02 01:30:00'",
        "TIMESTAMP'2025-08-01 00:00:00Z'",
        "TIMESTAMP'2025-03-09 02:00:00'",
        "TIMESTAMP'1970-01-01 00:00:00Z'",
    ),
    "flag": ("true", "false"),
    "bytes": ("X'61'", "X''", "X'C3A9'", "X'FF'"),
}
_SIGNS = ("=", "=", "<>", "<", "<=", ">", ">=", "<=>")
# Functions that never fail, with the kinds of what they take and return.
_FUNCTIONS: Sequence[tuple[str, str, Sequence[str]]] = (
    ("number", "year({})", ("day",)),
    ("number", "year({})", ("time",)),
    ("number", "month({})", ("day",)),
    ("number", "dayofmonth({})", ("time",)),
    ("number", "hour({})", ("time",)),
    ("number", "dayofweek({})", ("day",)),
    ("number", "length({})", ("text",)),
    ("number", "instr({}, 'a')", ("text",)),
    ("number", "abs({})", ("number",)),
    ("number", "({} % 3)", ("number",)),
    ("number", "pmod({}, 4)", ("number",)),
    ("number", "try_cast({} AS int)", ("text",)),
    ("number", "coalesce({}, 7)", ("number",)),
    ("number", "nvl({}, {})", ("number", "number")),
    ("number", "if({}, {}, 1)", ("condition", "number")),
    ("number", "CASE WHEN {} THEN 1 WHEN {} THEN 0 END", ("condition", "condition")),
    ("number", "datediff({}, {})", ("day", "day")),
    ("number", "pmod(hash({}), 5)", ("any",)),
    ("number", "greatest({}, 5)", ("number",)),
    ("text", "upper({})", ("text",)),
    ("text", "trim({})", ("text",)),
    ("text", "substr({}, 1, 2)", ("text",)),
    ("text", "substr({}, -1)", ("text",)),
    ("text", "left({}, 7)", ("text",)),
    ("text", "concat({}, '-', {})", ("text", "any")),
    ("text", "date_format({}, 'yyyy-MM')", ("day",)),
    ("text", "date_format({}, 'yyyy-MM-dd HH')", ("time",)),
    ("text", "cast({} AS string)", ("any",)),
    ("text", "coalesce({}, {})", ("text", "text")),
    ("text", "nvl({}, 'a')", ("text",)),
    ("text", "lpad({}, 3, '0')", ("text",)),
    ("text", "regexp_replace({}, '[0-9]', '')", ("text",)),
    ("text", "CASE WHEN {} THEN {} ELSE 'a' END", ("condition", "text")),
    ("day", "cast({} AS date)", ("time",)),
    ("day", "date_add({}, 1)", ("day",)),
    ("day", "trunc({}, 'MM')", ("day",)),
    ("day", "last_day({})", ("day",)),
    ("day", "coalesce({}, DATE'2025-08-01')", ("day",)),
    ("day", "try_cast({} AS date)", ("text",)),
    ("day", "if({}, {}, {})", ("condition", "day", "day")),
    ("time", "date_trunc('month', {})", ("time",)),
    ("time", "date_trunc('day', {})", ("time",)),
    ("time", "cast({} AS timestamp)", ("day",)),
    ("time", "nvl({}, TIMESTAMP'2025-08-01 00:00:00Z')", ("time",)),
    ("time", "({} + INTERVAL 1 HOUR)", ("time",)),
    ("bytes", "cast({} AS binary)", ("text",)),
    ("bytes", "substr({}, 2)", ("bytes",)),
    ("number", "length({})", ("bytes",)),
    ("text", "hex({})", ("bytes",)),
    ("flag", "coalesce({}, false)", ("flag",)),
    ("flag", "startswith({}, 'a')", ("text",)),
)
# Functions that fail for some values in ANSI mode.
_RISKY: Sequence[tuple[str, str, Sequence[str]]] = (
    ("number", "cast({} AS int)", ("text",)),
    ("number", "cast({} AS int)", ("number",)),
    ("number", "cast({} AS double)", ("text",)),
    ("number", "({} * 2147483647)", ("number",)),
    ("number", "(10 / {})", ("number",)),
    ("day", "cast({} AS date)", ("text",)),
    ("day", "to_date({}, 'yyyy-MM')", ("text",)),
    ("time", "cast({} AS timestamp)", ("text",)),
    ("flag", "cast({} AS boolean)", ("text",)),
    ("number", "element_at(array(1, 2), length({}))", ("text",)),
)
_ALWAYS = ("true", "1 = 1", "rand() < 2", "coalesce(NULL, true)")
_NEVER = ("false", "1 = 0", "NULL", "rand() > 2", "year(DATE'2025-01-01') = 2024")
_OF_NULL = ("IS NULL", "IS NOT NULL", "<=> NULL")


def quoted(name: str) -> str:
    """Return a column's name as SQL has it."""
    return f"`{name}`"


@dataclass(frozen=True)
class Grammar:
    """Conditions on the columns of a table.

    Attributes:
        scheme: The table.
        risky: Whether functions that fail for some values in ANSI mode are among them.
    """

    scheme: Scheme
    risky: bool = False

    def conditions(self, depth: int = 2) -> Texts:
        """Return conditions; a depth of 0 has columns and literals alone."""
        kinds = st.sampled_from(["number", "text", "day", "time"])
        partitions = st.sampled_from(list(self.scheme.types))
        simple = (
            self._comparisons_of_partitions(depth),
            self._comparisons_of_partitions(depth),
            self._comparisons_of_partitions(depth),
            self._comparisons_of_partitions(depth),
            kinds.flatmap(lambda kind: self._comparisons(kind, depth)),
            st.builds("{} {}".format, partitions.map(quoted), st.sampled_from(_OF_NULL)),
        )
        if depth == 0:
            return st.one_of(*simple)
        inner = self.conditions(depth - 1)
        return st.one_of(
            *simple,
            self._kind("flag", depth - 1),
            st.builds("({} AND {})".format, inner, inner),
            st.builds("({} OR {})".format, inner, inner),
            st.builds("NOT ({})".format, inner),
            st.builds("({} AND {})".format, inner, st.sampled_from([*_ALWAYS, *_NEVER])),
            st.builds("({} OR {})".format, inner, st.sampled_from([*_NEVER, *_ALWAYS])),
            st.sampled_from([*_ALWAYS, *_NEVER]),
        )

    def _comparisons_of_partitions(self, depth: int) -> Texts:
        """Return conditions that begin with a partition column of the table, or a function of it."""
        return st.sampled_from(list(self.scheme.types.items())).flatmap(
            lambda item: self._beginning_with(quoted(item[0]), _KIND_OF[item[1]], depth)
        )

    def _beginning_with(self, column: str, kind: str, depth: int) -> Texts:
        uses = [
            (result, st.just(text.replace("{}", column, 1)), takes[1:])
            for result, text, takes in self._functions()
            if takes[0] in (kind, "any")
        ]
        calls = st.sampled_from(uses).flatmap(
            lambda use: self._compared(use[0], self._filled(use[1], use[2], depth - 1), 0)
        )
        plain = self._compared(kind, st.just(column), depth - 1)
        return st.one_of(calls, calls, plain) if depth else plain

    def _comparisons(self, kind: str, depth: int) -> Texts:
        return self._compared(kind, self._kind(kind, depth), depth)

    def _compared(self, kind: str, left: Texts, depth: int) -> Texts:
        right = self._kind(kind, max(0, depth))
        literal = st.sampled_from([*_LITERALS[kind], *self._literals_of_partitions(kind)])
        lists = st.lists(literal | literal | st.just("NULL"), min_size=1, max_size=14)
        ways = [
            st.builds("{} {} {}".format, left, st.sampled_from(_SIGNS), literal),
            st.builds("{} {} {}".format, left, st.sampled_from(_SIGNS), right),
            st.builds("{} IN ({})".format, left, lists.map(", ".join)),
            st.builds("{} NOT IN ({})".format, left, lists.map(", ".join)),
            st.builds("{} BETWEEN {} AND {}".format, left, literal, literal),
            st.builds("({}) IS NULL".format, left),
            st.builds("({}) IS NOT NULL".format, left),
        ]
        if kind == "text":
            patterns = ("a%", "%b", "_", "%", "2025-08%", "a\\\\%%", "a\\\\_", "", "%0_")
            ways.append(st.builds("{} LIKE '{}'".format, left, st.sampled_from(patterns)))
            ways.append(st.builds("{} RLIKE '^[a0]'".format, left))
        if kind == "day":
            texts = st.sampled_from(["2025-08-01", "2025-8-1", "1969-12-31"])
            ways.append(st.builds("{} {} '{}'".format, left, st.sampled_from(_SIGNS), texts))
        return st.one_of(*ways)

    def _literals_of_partitions(self, kind: str) -> list[str]:
        """Return some partition values of a kind as literals, so that conditions hold for some."""
        return [
            literal
            for name, type_ in self.scheme.types.items()
            if _KIND_OF[type_] == kind
            for value in self.scheme.values(name)[:4]
            if (literal := _literal(type_, value))
        ]

    def _kind(self, kind: str, depth: int) -> Texts:
        columns = [*self.scheme.types.items(), *list(DATA.items())[:4]]
        if kind == "condition":
            return self.conditions(0) if depth < 1 else self.conditions(depth - 1)
        if kind == "any":
            return st.sampled_from([quoted(name) for name, _ in columns])
        mine = [quoted(name) for name, type_ in columns if _KIND_OF[type_] == kind]
        literals = st.sampled_from(_LITERALS[kind])
        leaves = st.sampled_from(mine) | literals if mine else literals
        if depth < 1:
            return leaves
        functions = [one for one in self._functions() if one[0] == kind]
        calls = st.sampled_from(functions).flatmap(
            lambda use: self._filled(st.just(use[1]), use[2], depth - 1)
        )
        return st.one_of(leaves, calls)

    def _filled(self, text: Texts, kinds: Sequence[str], depth: int) -> Texts:
        """Return a text with an expression of the next kind in each place that is open."""
        arguments = st.tuples(*(self._kind(kind, depth) for kind in kinds))
        return st.builds(_fill, text, arguments)

    def _functions(self) -> Sequence[tuple[str, str, Sequence[str]]]:
        return [*_FUNCTIONS, *_RISKY, *_RISKY] if self.risky else _FUNCTIONS


def _fill(text: str, parts: Sequence[str]) -> str:
    for part in parts:
        text = text.replace("{}", part, 1)
    return text


def _literal(type_: str, value: Any) -> str | None:
    if value is None:
        return None
    if type_ in ("smallint", "int", "bigint", "decimal(6,2)"):
        return str(value)
    if type_ in ("float", "double"):
        return f"{type_}('{value}')"
    if type_ == "binary":
        return f"X'{value.hex()}'"
    if type_ == "boolean":
        return str(value).lower()
    text = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'" if type_ == "string" else f"{type_.upper()}'{text}'"


# --- whole queries ----------------------------------------------------------

# `{t}` is the table, `{small}` the other one, `{p}` and `{q}` are partition columns, `{k}` and `{l}`
# the small table's keys of the same values, `{c}` is a condition on the table. Aliases of the table
# are `t`, so that conditions need no prefix: no column of the small table has a name of its columns.
JOINS = (
    "SELECT id, word FROM {t} t JOIN {small} ON {p} = {k} WHERE chosen",
    "SELECT id, word FROM {t} t JOIN {small} ON {p} = {k} AND {q} = {l} WHERE chosen AND {c}",
    "SELECT id, word FROM {small} JOIN {t} t ON {p} <=> {k} WHERE chosen",
    "SELECT id, word FROM {t} t LEFT JOIN {small} ON {p} = {k} AND chosen WHERE {c}",
    "SELECT id, word FROM (SELECT * FROM {small} WHERE chosen) LEFT JOIN {t} t ON {p} = {k}",
    "SELECT id, word FROM (SELECT * FROM {t} WHERE {c}) t FULL JOIN {small} ON {q} = {l}",
    "SELECT id FROM {t} t LEFT SEMI JOIN {small} ON {p} = {k} AND chosen WHERE {c}",
    "SELECT id FROM {t} t LEFT ANTI JOIN {small} ON {p} = {k} AND chosen WHERE {c}",
    "SELECT id, word FROM {t} t JOIN {small} ON upper(cast({p} AS string)) = "
    "upper(cast({k} AS string)) WHERE word = 'w0'",
    "SELECT id, word FROM {t} t JOIN {small} ON {p} >= {k} WHERE word IN ('w0', 'w1')",
    "SELECT word, count(*), max(id) FROM {t} t JOIN {small} ON {p} = {k} WHERE word = 'w1' "
    "GROUP BY word",
    "SELECT /*+ MERGE(t) */ id, word FROM {t} t JOIN {small} ON {p} = {k} WHERE word < 'w2'",
    "SELECT /*+ BROADCAST(t) */ id, word FROM {t} t JOIN {small} ON {p} = {k} WHERE chosen",
    "SELECT a.id, b.id FROM {t} a JOIN {t} b ON a.{p} = b.{p} AND a.id < b.id WHERE b.id % 3 = 0",
    "SELECT a.id, b.id FROM (SELECT * FROM {t} WHERE {c}) a JOIN {t} b ON a.{p} <=> b.{p}",
)
# The same by keys that are columns of files: `v = number`, `s = text` and `d = day` of the small table.
JOINS_OF_FILES = (
    "SELECT id, word FROM {t} t JOIN {small} ON v = number WHERE chosen",
    "SELECT id, word FROM {t} t JOIN {small} ON s = text AND {p} = {k} WHERE chosen",
    "SELECT id, word FROM {t} t RIGHT JOIN (SELECT * FROM {small} WHERE chosen) ON d = day AND {c}",
    "SELECT id, word FROM (SELECT * FROM {small} WHERE chosen) LEFT JOIN {t} t ON s = text",
    "SELECT id, word FROM {t} t LEFT JOIN {small} ON v = number AND chosen WHERE {c}",
    "SELECT id FROM {t} t LEFT SEMI JOIN {small} ON v = number AND word < 'w3' WHERE {c}",
    "SELECT id FROM {t} t LEFT ANTI JOIN {small} ON v = number AND chosen",
    "SELECT id FROM {t} WHERE d IN (SELECT day FROM {small} WHERE chosen) OR {c}",
    "SELECT id FROM {t} WHERE (v, s) IN (SELECT number, text FROM {small} WHERE chosen)",
    "SELECT a.id, b.id FROM {t} a JOIN {t} b ON a.s = b.s JOIN {small} ON b.v = number WHERE chosen",
    "SELECT a.id, word FROM {t} a LEFT JOIN {t} b ON a.id = b.id + 1 JOIN {small} ON b.v = number "
    "WHERE chosen",
    "SELECT key, r, word FROM (SELECT v AS key, rank() OVER (ORDER BY id) AS r FROM {t}) "
    "JOIN {small} ON key = number WHERE chosen",
    "SELECT key, word FROM (SELECT v AS key, s AS v FROM {t} WHERE {c}) JOIN {small} "
    "ON key = number WHERE chosen",
    "SELECT id, word FROM (SELECT * FROM {t} ORDER BY id LIMIT 5) JOIN {small} ON v = number "
    "WHERE chosen",
    "SELECT key, n, word FROM (SELECT s AS key, count(*) AS n FROM {t} GROUP BY s) "
    "JOIN {small} ON key = text WHERE chosen",
    "SELECT id, word FROM (SELECT id, v FROM {t} WHERE {c} UNION ALL SELECT v, id FROM {t}) "
    "JOIN {small} ON v = number WHERE chosen",
)
SUBQUERIES = (
    "SELECT id FROM {t} WHERE {p} = (SELECT max({k}) FROM {small} WHERE chosen)",
    "SELECT id FROM {t} WHERE {p} >= (SELECT min({k}) FROM {small}) AND {c}",
    "SELECT id FROM {t} WHERE {p} = (SELECT max({p}) FROM {t})",
    "SELECT id FROM {t} WHERE {p} = (SELECT max({k}) FROM {small} WHERE word = 'none')",
    "SELECT id FROM {t} WHERE {p} <=> (SELECT {k} FROM {small} WHERE word = 'w0') OR {c}",
    "SELECT id FROM {t} WHERE {p} IN (SELECT {k} FROM {small} WHERE chosen)",
    "SELECT id FROM {t} WHERE {p} IN (SELECT {k} FROM {small}) AND {c}",
    "SELECT id FROM {t} WHERE {p} NOT IN (SELECT {k} FROM {small} WHERE {k} IS NOT NULL)",
    "SELECT id FROM {t} WHERE {p} NOT IN (SELECT {k} FROM {small})",
    "SELECT id FROM {t} WHERE ({p}, {q}) IN (SELECT {k}, {l} FROM {small} WHERE chosen)",
    "SELECT id FROM {t} t WHERE EXISTS (SELECT 1 FROM {small} WHERE {k} = {p} AND chosen)",
    "SELECT id FROM {t} t WHERE NOT EXISTS (SELECT 1 FROM {small} WHERE {k} = {p}) AND {c}",
    "SELECT id, (SELECT count(*) FROM {small} WHERE {k} = {p}) FROM {t} t WHERE {c}",
    "SELECT id FROM {t} WHERE {p} BETWEEN (SELECT min({k}) FROM {small} WHERE chosen) AND "
    "(SELECT max({k}) FROM {small} WHERE chosen)",
)
SHAPES = (
    "SELECT id, {p} FROM {t} WHERE {c} UNION ALL SELECT id, {p} FROM {t} WHERE {p} IS NULL",
    "SELECT {p} FROM {t} WHERE {c} UNION SELECT {p} FROM {t} WHERE id > 2",
    "SELECT id FROM {t} EXCEPT SELECT id FROM {t} WHERE {c}",
    "WITH m AS (SELECT {p} AS g, count(*) AS n FROM {t} WHERE {c} GROUP BY {p}) "
    "SELECT a.g, b.n FROM m a JOIN m b ON a.g <=> b.g",
    "WITH m AS (SELECT * FROM {t} WHERE {c}) SELECT id FROM m UNION ALL SELECT max(id) FROM m",
    "SELECT min({p}), max({p}), count({p}), count(DISTINCT {p}), count(*) FROM {t} WHERE {c}",
    "SELECT min({p}), max({q}), count(*), count(DISTINCT {p}) FROM {t}",
    "SELECT {p}, {q}, count(*), sum(v) FROM {t} WHERE {c} GROUP BY GROUPING SETS (({p}), ({q}), ())",
    "SELECT DISTINCT {p} FROM {t} WHERE {c}",
    "SELECT {p}, count(DISTINCT v) FROM {t} GROUP BY {p} HAVING count(*) > 2",
    "SELECT id, rank() OVER (PARTITION BY {p} ORDER BY id) FROM {t} WHERE {c}",
    "SELECT id FROM (SELECT *, row_number() OVER (PARTITION BY {p} ORDER BY id) AS r FROM {t}) "
    "WHERE r = 1 AND {c}",
    "SELECT id, {p} FROM {t} WHERE {c} ORDER BY id LIMIT 3",
    "SELECT id FROM {t} WHERE {c} ORDER BY id DESC LIMIT 2 OFFSET 1",
    "SELECT max({p}) FROM (SELECT {p} FROM {t} ORDER BY {p} NULLS FIRST LIMIT 2)",
    "SELECT count(*) FROM (SELECT * FROM {t} WHERE {c} LIMIT 4)",
    "SELECT count(*) FROM (SELECT * FROM {t} LIMIT 0)",
    "SELECT id FROM (SELECT id, concat(cast({p} AS string), '/', cast({q} AS string)) AS text "
    "FROM {t}) WHERE text LIKE '%1%'",
    "SELECT id, {p}, {q} FROM (SELECT *, {p} AS other FROM {t}) WHERE other <=> {p} AND {c}",
)
TEMPLATES = JOINS + JOINS_OF_FILES + SUBQUERIES + SHAPES


@st.composite
def queries(draw: st.DrawFn, scheme: Scheme, templates: Sequence[str] = TEMPLATES) -> str:
    """Draw a query with `{t}` and `{small}` in the places of the two tables."""
    names = list(scheme.types)
    template = draw(st.sampled_from(templates))
    first, second = draw(st.sampled_from([(one, two) for one in names for two in names]))
    condition = draw(Grammar(scheme).conditions(1))
    return template.format(
        t="{t}",
        small="{small}",
        p=quoted(first),
        q=quoted(second),
        k=f"k{names.index(first)}",
        l=f"k{names.index(second)}",
        c=condition,
    )
