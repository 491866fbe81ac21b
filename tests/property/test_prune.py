"""Laws of pruning and of binding, compared with an evaluator of single rows."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, note
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tests.support.laws import examples
from windrow_core.files.rows import inventory_schema
from windrow_core.models import FilterTree
from windrow_service.filters.bind import bind
from windrow_service.filters.tree import to_tree
from windrow_service.planner.pruning.bloom import bloom_filter
from windrow_service.planner.pruning.prune import prune, residuals
from windrow_service.planner.pruning.ranges import join_ranges, prune_manifests, range_of

Row = dict[str, Any]
Tree = dict[str, Any]
TREES: TypeAdapter[Any] = TypeAdapter(FilterTree)


# --- the evaluator ----------------------------------------------------------


def as_float(value: Any) -> tuple[bool, float]:
    """Return a key by which NaN is greater than everything and equal to itself."""
    number = float(value)
    return (True, 0.0) if math.isnan(number) else (False, number)


def as_single(value: float) -> float:
    single: float = struct.unpack("f", struct.pack("f", value))[0]
    return single


def as_fraction(value: Any) -> Fraction:
    return Fraction(repr(value) if isinstance(value, float) else str(value))


def as_instant(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    return datetime.fromisoformat(value.replace("Z", "+00:00"))


def as_bool(value: Any) -> bool:
    return value if isinstance(value, bool) else value.lower() == "true"


@dataclass(frozen=True)
class Kind:
    """A column type: values in rows, literals in filters, and their order."""

    type: pa.DataType
    values: list[Any]
    literals: list[Any]
    key: Callable[[Any], Any]


UTC = timezone.utc
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
KINDS = {
    "i": Kind(
        pa.int32(),
        [-(2**31), -1, 0, 1, 2, 3, 2**31 - 1],
        [-2, -1, 0, 1, 2, 3, 4, 0.5, 1.0, -0.5, 1.5, "2", 2**31, -(2**31), -(10**30), 1e300],
        as_fraction,
    ),
    "l": Kind(
        pa.int64(),
        [-(2**63), -1, 0, 1, 2**63 - 1],
        [-(2**63), 2**63 - 1, 0, 1, 2**53 + 1, -(2**63) - 1, 2**63, 1.5],
        as_fraction,
    ),
    "x": Kind(
        pa.float64(),
        [-math.inf, -1.5, -0.0, 0.0, 0.1, 1.0, 2.5, math.inf, math.nan],
        [-2, -1.5, 0, -0.0, 0.1, 0.3, 1, 2.5, "NaN", "Infinity", "-inf", "0.1"],
        as_float,
    ),
    "f": Kind(
        pa.float32(),
        [as_single(v) for v in (-1.5, -0.0, 0.0, 0.1, 1.0, math.nan)],
        [-1.5, 0, 0.1, as_single(0.1), 1, "NaN"],
        as_float,
    ),
    "s": Kind(
        pa.string(),
        ["", "a", "a\x00", "ab", "abc", "b", "é", "\uffff", "\U0010ffff"],
        ["", "a", "ab", "ac", "b", "é", "\uffff", "\U0010ffff", "zz"],
        lambda value: value.encode(),
    ),
    "y": Kind(
        pa.binary(),
        [b"", b"\x00", b"a", b"a\x00", b"\x7f", b"\x80", b"\xff\xff"],
        ["", "00", "61", "6100", "7F", "80", "ff", "FFFF", "123"],
        lambda value: (
            value if isinstance(value, bytes) else bytes.fromhex("0" * (len(value) % 2) + value)
        ),
    ),
    "d": Kind(
        pa.date32(),
        [date(1969, 12, 31), date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 4)],
        ["0001-01-01", "1969-12-31", "2026-01-01", "2026-01-02", "2026-01-03", "9999-12-31"],
        lambda value: value if isinstance(value, str) else value.isoformat(),
    ),
    "m": Kind(
        pa.decimal128(5, 2),
        [Decimal(text) for text in ("-999.99", "-0.01", "0.00", "1.00", "1.01", "999.99")],
        [-1, 0, 1, 1.01, "1.01", "1.010", "1.005", -0.005, "999.99", 1000, -1000, "1e9"],
        as_fraction,
    ),
    "b": Kind(pa.bool_(), [False, True], [False, True, "true", "False"], as_bool),
    "t": Kind(
        pa.timestamp("us", "UTC"),
        [NOON - timedelta(days=30_000), NOON, NOON + timedelta(microseconds=1)],
        ["2026-01-01T12:00:00Z", "2026-01-01 13:00:00.000001+01:00", "2027-01-01T00:00:00Z"],
        as_instant,
    ),
    "n": Kind(
        pa.timestamp("ms"),
        [datetime(1960, 1, 1), datetime(2026, 1, 1), datetime(2026, 1, 1, 0, 0, 1)],  # noqa: DTZ001
        ["1960-01-01", "2026-01-01T00:00:00.000001", "2026-01-01 00:00:01", "2026-02-01"],
        as_instant,
    ),
}
# A column without statistics; filters can only test whether it is null.
NESTED = "nested"


def evaluate(tree: Tree, row: Row) -> bool | None:
    """Return the value of a filter for one row as SQL defines it, None for NULL."""
    op = tree["op"]
    if op == "not":
        inner = evaluate(tree["arg"], row)
        return None if inner is None else not inner
    if op in ("and", "or"):
        answers = [evaluate(arg, row) for arg in tree["args"]]
        decisive = op == "or"
        if decisive in answers:
            return decisive
        return None if None in answers else not decisive
    value = row[tree["column"]]
    if op in ("is_null", "is_not_null"):
        return (value is None) == (op == "is_null")
    if op == "between":
        parts: list[Tree] = [
            {"op": "ge", "column": tree["column"], "value": tree["low"]},
            {"op": "le", "column": tree["column"], "value": tree["high"]},
        ]
        return evaluate({"op": "and", "args": parts}, row)
    if op == "in":
        alternatives: list[Tree] = [
            {"op": "eq", "column": tree["column"], "value": one} for one in tree["values"]
        ]
        return evaluate({"op": "or", "args": alternatives}, row)
    if value is None:
        return None
    if op == "starts_with":
        return bool(value.startswith(tree["prefix"]))
    if tree["value"] is None:
        return None
    key = KINDS[tree["column"][0]].key
    left, right = key(value), key(tree["value"])
    return bool(
        {
            "eq": left == right,
            "ne": left != right,
            "lt": left < right,
            "le": left <= right,
            "gt": left > right,
            "ge": left >= right,
        }[op]
    )


# --- random tables ----------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """Files as rows, and the inventory that describes them."""

    rows: list[list[Row]]
    files: pa.Table
    types: dict[str, pa.DataType]


def statistics(random: Random, kind: Kind, values: list[Any], sees_nan: bool) -> Any:
    """Return statistics that a writer might write: exact, partly missing, or too wide."""
    if random.random() < 0.1:
        return None
    null_count = None if random.random() < 0.15 else values.count(None)
    seen = [value for value in values if value is not None]
    numbers = [value for value in seen if value == value]
    if not numbers or (sees_nan and len(numbers) < len(seen)):
        return {"min": None, "max": None, "null_count": null_count}
    low, high = min(numbers, key=kind.key), max(numbers, key=kind.key)
    if random.random() < 0.2:
        wider = [value for value in kind.values if value == value]
        low = random.choice([v for v in wider if kind.key(v) <= kind.key(low)])
        high = random.choice([v for v in wider if kind.key(v) >= kind.key(high)])
    return {
        "min": None if random.random() < 0.1 else low,
        "max": None if random.random() < 0.1 else high,
        "null_count": null_count,
    }


def random_table(random: Random) -> Table:
    """Return up to six files of up to four rows, with a few data and partition columns."""
    data = random.sample(sorted(KINDS), random.randint(0, 3))
    partition = [f"{name}_p" for name in random.sample(sorted(KINDS), random.randint(0, 2))]
    types = {name: KINDS[name[0]].type for name in data + partition}
    types[NESTED] = pa.list_(pa.int8())
    schema = inventory_schema(
        pa.schema([(name, types[name]) for name in [*data, NESTED]]),
        pa.schema([(name, types[name]) for name in partition]),
        bloom := [name for name in data if random.random() < 0.5],
    )

    rows, records = [], []
    for number in range(random.randint(0, 6)):
        size = random.choice([0, 1, 1, 2, 2, 3, 4])
        folder = {name: random.choice([None, *KINDS[name[0]].values]) for name in partition}
        columns: dict[str, list[Any]] = {NESTED: random.choices([None, [1]], k=size)}
        for name in data:
            pool = random.sample([None, *KINDS[name].values], random.randint(1, 3))
            columns[name] = random.choices(pool, k=size)
        sees_nan = random.random() < 0.5
        rows.append(
            [{**folder, **{name: columns[name][at] for name in columns}} for at in range(size)]
        )
        records.append(
            {
                "path": f"f{number}",
                "size_bytes": 1,
                "mtime_ns": 1,
                "row_count": size,
                "hosts": [],
                "delete_count": 0,
                "delete_bytes": 0,
                "row_group_offsets": [4],
                "stats_see_nan": sees_nan,
                "partition": folder,
                "stats": {
                    name: statistics(random, KINDS[name], columns[name], sees_nan) for name in data
                },
                "bloom": {
                    name: random.choice(
                        [None, b"", *[bloom_filter(pa.array(columns[name], types[name]))] * 4]
                    )
                    for name in bloom
                },
            }
        )
    files = pa.Table.from_pylist(records, schema)
    at = random.randint(0, len(files))
    return Table(rows, pa.concat_tables([files.slice(0, at), files.slice(at)]), types)


def random_tree(random: Random, types: dict[str, pa.DataType], depth: int = 3) -> Tree:
    """Return a filter on some of these columns, as callers send it."""
    if depth and random.random() < 0.5:
        if random.random() < 0.3:
            return {"op": "not", "arg": random_tree(random, types, depth - 1)}
        args = [random_tree(random, types, depth - 1) for _ in range(random.randint(1, 3))]
        return {"op": random.choice(["and", "and", "or"]), "args": args}
    name = random.choice([*types, *(set(types) - {NESTED})])
    if name == NESTED or random.random() < 0.1:
        return {"op": random.choice(["is_null", "is_not_null"]), "column": name}
    kind = KINDS[name[0]]

    def literal() -> Any:
        return None if random.random() < 0.08 else random.choice(kind.literals)

    if name[0] == "s" and random.random() < 0.4:
        return {"op": "starts_with", "column": name, "prefix": random.choice(kind.literals)}
    op = random.choice(["eq", "ne", "lt", "le", "gt", "ge", "in", "in", "between"])
    if op == "in":
        return {
            "op": op,
            "column": name,
            "values": [literal() for _ in range(random.randint(1, 6))],
        }
    if op == "between":
        return {"op": op, "column": name, "low": literal(), "high": literal()}
    return {"op": op, "column": name, "value": literal()}


# --- laws -------------------------------------------------------------------

# A random number generator instead of Hypothesis' own choices, which favour trivial tables
# and would miss most faults.
RANDOMS = st.randoms(use_true_random=True)
ALL_TYPES = {name: kind.type for name, kind in KINDS.items()} | {NESTED: pa.list_(pa.int8())}


@examples(835)
@given(RANDOMS)
def test_no_file_with_a_matching_row_is_pruned_and_the_residual_filter_selects_the_same_rows(
    random: Random,
) -> None:
    table = random_table(random)
    tree = random_tree(random, table.types)
    expression = bind(TREES.validate_python(tree), table.types)
    note(f"{tree}\n{table.rows}\n{table.files.to_pylist()}")

    pruning = prune(table.files, expression)

    matches = [[evaluate(tree, row) is True for row in rows] for rows in table.rows]
    assert pruning.survives.shape == (len(table.rows),)
    assert sum(by.files for by in pruning.pruned.values()) == np.sum(~pruning.survives)
    assert all(pruning.survives[at] for at, found in enumerate(matches) if any(found))

    file = np.flatnonzero(pruning.survives)
    random.shuffle(file)
    inner = [at for at in range(1, len(file)) if random.random() < 0.5]
    offsets = np.array([0, *inner, len(file)] if len(file) else [0])
    residual, filters = residuals(pruning, file, offsets)

    assert len(residual) == len(offsets) - 1
    for group, at in enumerate(residual.tolist()):
        left = filters[at]
        for member in file[offsets[group] : offsets[group + 1]].tolist():
            for row, match in zip(table.rows[member], matches[member], strict=True):
                assert match == (left is None or evaluate(to_tree(left), row) is True)


@examples(335)
@given(RANDOMS)
def test_a_bound_filter_gives_each_row_the_same_value_as_the_filter(random: Random) -> None:
    tree = random_tree(random, ALL_TYPES)
    row = {name: random.choice([None, *kind.values]) for name, kind in KINDS.items()}
    row[NESTED] = random.choice([None, [1]])

    bound = to_tree(bind(TREES.validate_python(tree), ALL_TYPES))

    assert evaluate(bound, row) == evaluate(tree, row)


@examples(200)
@given(RANDOMS)
def test_an_expression_survives_a_round_trip_through_json(random: Random) -> None:
    tree = random_tree(random, ALL_TYPES)
    expression = bind(TREES.validate_python(tree), ALL_TYPES)

    again = bind(TREES.validate_json(json.dumps(to_tree(expression), allow_nan=False)), ALL_TYPES)

    assert again == expression


@examples(85)
@given(RANDOMS)
def test_the_order_of_the_files_does_not_change_what_is_pruned(random: Random) -> None:
    table = random_table(random)
    tree = random_tree(random, table.types)
    expression = bind(TREES.validate_python(tree), table.types)
    order = np.arange(len(table.rows))
    random.shuffle(order)

    straight = prune(table.files, expression)
    shuffled = prune(table.files.take(pa.array(order)), expression)

    kept = shuffled.survives
    assert (kept == straight.survives[order]).all()
    assert shuffled.pruned == straight.pruned
    assert (shuffled.open[kept] == straight.open[order][kept]).all()


@examples(265)
@given(RANDOMS)
def test_no_manifest_with_a_matching_row_is_pruned(random: Random) -> None:
    table = random_table(random)
    tree = random_tree(random, table.types)
    expression = bind(TREES.validate_python(tree), table.types)
    note(f"{tree}\n{table.rows}\n{table.files.to_pylist()}")
    edges = [0, *(at for at in range(1, len(table.rows)) if random.random() < 0.4)]
    if not table.rows:
        return

    pieces = list(zip(edges, [*edges[1:], len(table.rows)], strict=True))
    ranges = join_ranges([range_of(table.files.slice(at, end - at)) for at, end in pieces])
    kept, pruned = prune_manifests(ranges, expression)

    for (at, end), may_match in zip(pieces, kept.tolist(), strict=True):
        rows = [row for file in table.rows[at:end] for row in file]
        assert may_match or not any(evaluate(tree, row) is True for row in rows)
    assert pruned.files == sum(
        end - at
        for (at, end), may_match in zip(pieces, kept.tolist(), strict=True)
        if not may_match
    )


@examples(265)
@given(RANDOMS)
def test_a_limit_drops_files_only_if_the_others_hold_enough_matching_rows(
    random: Random,
) -> None:
    table = random_table(random)
    tree = random_tree(random, table.types)
    expression = bind(TREES.validate_python(tree), table.types)
    limit = random.randint(1, 6)

    all_of_it = prune(table.files, expression)
    limited = prune(table.files, expression, limit=limit)

    assert not (limited.survives & ~all_of_it.survives).any()
    matching = [
        sum(evaluate(tree, row) is True for row in rows)
        for rows, kept in zip(table.rows, limited.survives.tolist(), strict=True)
        if kept
    ]
    assert sum(matching) >= limit or (limited.survives == all_of_it.survives).all()
