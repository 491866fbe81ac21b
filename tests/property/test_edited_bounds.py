"""No filter loses a row of ORC, Delta or Iceberg, whichever bounds are missing or impossible."""

from __future__ import annotations

import itertools
import json
import math
import struct
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

import windrow
from tests.support.files.edited_bounds import Condition, conditions, contents, lost
from tests.support.files.orc_files import edit_statistics
from tests.support.laws import examples
from tests.support.servers import embedded
from tests.support.tables.delta_tables import DeltaLog, column, metadata, protocol
from tests.support.tables.iceberg import new_table
from tests.support.tables.iceberg_files import read_avro, write_avro

pytestmark = pytest.mark.slow

_numbers = itertools.count()
seldom = st.sampled_from([False, False, False, True])
# Smaller examples would take minutes to find, as each is a table.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("edited")


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[windrow.Client]:
    with embedded.client(folder / "state", allowed_locations=[str(folder)]) as client:
        yield client


def lost_in(
    client: windrow.Client,
    location: Path,
    table_format: Any,
    files: Mapping[str, pa.Table],
    asked: list[Condition],
) -> list[tuple[str, str]]:
    name = f"edited.{location.name}"
    client.register_table(name, str(location), table_format)
    client.refresh(name)
    return lost(client, name, files, asked)


# ORC

_ENDS = ("minimum", "maximum", "lower_bound", "upper_bound")


def _bounds(statistics: Any) -> Any:
    """Return the part of an ORC statistics message that has bounds; None if there is none."""
    for name in ("integers", "doubles", "strings", "decimals", "dates", "times"):
        if statistics.HasField(name):
            return getattr(statistics, name)
    return None


def _clear(*names: str) -> Callable[[Any], None]:
    def clear(statistics: Any) -> None:
        bounds = _bounds(statistics)
        for name in names:
            if bounds is not None and name in bounds.DESCRIPTOR.fields_by_name:
                bounds.ClearField(name)

    return clear


def _swap_orc(statistics: Any) -> None:
    bounds = _bounds(statistics)
    if bounds is not None and bounds.HasField("minimum") and bounds.HasField("maximum"):
        bounds.minimum, bounds.maximum = bounds.maximum, bounds.minimum


def _cut_orc(statistics: Any) -> None:
    """Cut texts as Java's writer does: the upper bound is raised."""
    if statistics.HasField("strings") and len(statistics.strings.maximum) > 1:
        low, high = statistics.strings.minimum, statistics.strings.maximum.decode()
        statistics.strings.Clear()
        statistics.strings.lower_bound = low.decode()[:1].encode()
        statistics.strings.upper_bound = chr(ord(high[0]) + 1).encode()


def _nan_orc(statistics: Any) -> None:
    if statistics.HasField("doubles"):
        statistics.doubles.minimum = statistics.doubles.maximum = math.nan


def _set(**fields: Any) -> Callable[[Any], None]:
    def change(statistics: Any) -> None:
        for name, value in fields.items():
            if value is None:
                statistics.ClearField(name)
            else:
                setattr(statistics, name, value)

    return change


def _no_values(statistics: Any) -> None:
    # A bound of NaN does not contradict the count of nulls.
    bounds = _bounds(statistics)
    if bounds is not None and bounds.minimum == bounds.minimum:
        statistics.value_count, statistics.has_null = 0, True


ORC_EDITS: dict[str, Callable[[Any], None]] = {
    "as written": lambda _: None,
    "missing": _clear(*_ENDS),
    "only the lower bound": _clear("maximum", "upper_bound"),
    "only the upper bound": _clear("minimum", "lower_bound"),
    "swapped": _swap_orc,
    "cut": _cut_orc,
    "NaN": _nan_orc,
    "no sum": _clear("sum"),
    "no count": _set(value_count=None),
    "no flag of nulls": _set(has_null=None),
    "no values, though there are bounds": _no_values,
    "too many values": _set(value_count=10**6),
    "a wrong flag of nulls": lambda statistics: _set(has_null=not statistics.has_null)(statistics),
}


ORC_COLUMNS = ("i", "f", "s", "n", "d", "y", "o")


@examples(2, deadline=None, phases=PHASES)
@given(
    files=st.lists(
        st.tuples(contents(ORC_COLUMNS), st.sampled_from(sorted(ORC_EDITS)), seldom),
        min_size=3,
        max_size=6,
    ),
    asked=conditions(ORC_COLUMNS),
)
def test_no_filter_loses_a_row_of_orc(
    client: windrow.Client,
    folder: Path,
    files: list[tuple[pa.Table, str, bool]],
    asked: list[Condition],
) -> None:
    location = folder / f"orc{next(_numbers)}"
    location.mkdir()
    for number, (rows, edit, rotated) in enumerate(files):
        path = location / f"{number}.orc"
        orc.write_table(rows, path, compression="uncompressed")
        edit_statistics(path, ORC_EDITS[edit], rotated=rotated)

    named = {f"{number}.orc": rows for number, (rows, _, _) in enumerate(files)}
    assert lost_in(client, location, "orc", named, asked) == [], [each[1:] for each in files]


# Delta

DELTA_TYPES = {
    "i": "long",
    "f": "double",
    "s": "string",
    "n": "decimal(9,2)",
    "d": "decimal(38,2)",
    "y": "date",
    "t": "timestamp",
}
Stats = dict[str, Any]


def _delta_stats(rows: pa.Table) -> Stats:
    """Return what a writer states of a file, with NaN left out of the bounds."""
    stats: Stats = {"numRecords": len(rows), "minValues": {}, "maxValues": {}, "nullCount": {}}
    for name in rows.column_names:
        values = rows[name].drop_null().to_pylist()
        stats["nullCount"][name] = rows[name].null_count
        ordered = sorted(
            (value for value in values if value == value),
            key=lambda value: value.encode() if isinstance(value, str) else value,
        )
        if ordered:
            stats["minValues"][name] = _in_json(ordered[0])
            stats["maxValues"][name] = _in_json(ordered[-1])
    return stats


def _in_json(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if hasattr(value, "microsecond"):
        # Cut to milliseconds.
        return f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1_000:03}Z"
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return "Infinity" if value == math.inf else value


def _swap_delta(stats: Stats) -> None:
    stats["minValues"], stats["maxValues"] = stats["maxValues"], stats["minValues"]


def _pop(*names: str) -> Callable[[Stats], None]:
    def pop(stats: Stats) -> None:
        for name in names:
            stats.pop(name)

    return pop


def _each(part: str, change: Callable[[Any], Any]) -> Callable[[Stats], None]:
    def changed(stats: Stats) -> None:
        stats[part] = {name: change(value) for name, value in stats[part].items()}

    return changed


def _cut_delta(stats: Stats) -> None:
    """Cut texts as Spark does: a mark is put behind the upper bound."""
    for part, end in (("minValues", ""), ("maxValues", "\ufffd")):
        text = stats[part].get("s", "")
        if len(text) > 1:
            stats[part]["s"] = text[:1] + end


def _nan_delta(stats: Stats) -> None:
    for part in ("minValues", "maxValues"):
        if "f" in stats[part]:
            stats[part]["f"] = "NaN"


DELTA_EDITS: dict[str, Callable[[Stats], None]] = {
    "as written": lambda _: None,
    "no bounds": _pop("minValues", "maxValues"),
    "only the lower bounds": _pop("maxValues"),
    "only the upper bounds": _pop("minValues"),
    "swapped": _swap_delta,
    "cut": _cut_delta,
    "NaN": _nan_delta,
    "null as bounds": _each("maxValues", lambda _: None),
    "objects as bounds": _each("maxValues", lambda value: {"value": value}),
    "other types": _each("minValues", lambda value: [value]),
    "numbers as text": _each("minValues", str),
    "no counts of nulls": _pop("nullCount"),
    "negative counts of nulls": _each("nullCount", lambda _: -1),
    "too many nulls": _each("nullCount", lambda count: count + 10),
    "no values, though there are bounds": lambda stats: stats["nullCount"].update(
        {
            name: stats["numRecords"]
            for name, bound in stats["minValues"].items()
            if bound != "Infinity"
        }
    ),
    "no rows": _pop("numRecords"),
    "negative rows": lambda stats: stats.update(numRecords=-1),
    "nothing": lambda stats: stats.clear(),
}


@examples(2, deadline=None, phases=PHASES)
@given(
    files=st.lists(
        st.tuples(contents(sorted(DELTA_TYPES)), st.sampled_from(sorted(DELTA_EDITS)), seldom),
        min_size=3,
        max_size=6,
    ),
    asked=conditions(sorted(DELTA_TYPES)),
)
def test_no_filter_loses_a_row_of_delta(
    client: windrow.Client,
    folder: Path,
    files: list[tuple[pa.Table, str, bool]],
    asked: list[Condition],
) -> None:
    log = DeltaLog(folder / f"delta{next(_numbers)}")
    log.commit(protocol(), metadata([column(*each) for each in DELTA_TYPES.items()]))
    actions = []
    for number, (rows, edit, is_damaged) in enumerate(files):
        stats = _delta_stats(rows)
        DELTA_EDITS[edit](stats)
        text = json.dumps(stats)
        actions.append(
            log.write_file(
                f"{number}.parquet", rows, stats=text[: len(text) // 2] if is_damaged else text
            )
        )
    log.commit(*actions)

    named = {f"{number}.parquet": rows for number, (rows, _, _) in enumerate(files)}
    assert lost_in(client, log.folder, "delta", named, asked) == [], [each[1:] for each in files]


# Iceberg

Pairs = dict[str, dict[int, Any] | None]
ICEBERG_COLUMNS = ("i", "f", "s", "n", "d", "y", "t", "o")
LOWER, UPPER, NULLS, NANS, VALUES = (
    "lower_bounds",
    "upper_bounds",
    "null_value_counts",
    "nan_value_counts",
    "value_counts",
)


def _without(*names: str) -> Callable[[Pairs], None]:
    def drop(file: Pairs) -> None:
        for name in names:
            file[name] = None

    return drop


def _changed(names: tuple[str, ...], change: Callable[[Any], Any]) -> Callable[[Pairs], None]:
    def changed(file: Pairs) -> None:
        for name in names:
            file[name] = {key: change(value) for key, value in (file[name] or {}).items()}

    return changed


def _resized(name: str, change: Callable[[bytes], bytes]) -> Callable[[Pairs], None]:
    """Change the bounds of types whose values have one length; others may have any."""
    sized = {ICEBERG_COLUMNS.index(column) + 1 for column in "ifyto"}

    def changed(file: Pairs) -> None:
        bounds = (file[name] or {}).items()
        file[name] = {key: change(value) if key in sized else value for key, value in bounds}

    return changed


def _swap_iceberg(file: Pairs) -> None:
    file[LOWER], file[UPPER] = file[UPPER], file[LOWER]


def _nan_iceberg(file: Pairs) -> None:
    at = ICEBERG_COLUMNS.index("f") + 1
    for name in (LOWER, UPPER):
        file[name] = {**(file[name] or {}), at: struct.pack("<d", math.nan)}


def _cut_iceberg(file: Pairs) -> None:
    """Cut texts as writers do: the last character of the upper bound is raised."""
    at = ICEBERG_COLUMNS.index("s") + 1
    low, high = ((file[name] or {}).get(at, b"").decode() for name in (LOWER, UPPER))
    if len(high) > 1:
        file[LOWER] = {**(file[LOWER] or {}), at: low[:1].encode()}
        file[UPPER] = {**(file[UPPER] or {}), at: chr(ord(high[0]) + 1).encode()}


ICEBERG_EDITS: dict[str, Callable[[Pairs], None]] = {
    "as written": lambda _: None,
    "no bounds": _without(LOWER, UPPER),
    "only the lower bounds": _without(UPPER),
    "only the upper bounds": _without(LOWER),
    "swapped": _swap_iceberg,
    "cut": _cut_iceberg,
    "NaN": _nan_iceberg,
    "of another length": _resized(LOWER, lambda bound: bound + b"\0\0\0"),
    "without bytes": _resized(UPPER, lambda bound: b""),
    "no counts of nulls": _without(NULLS),
    "no counts of NaN": _without(NANS),
    "no counts": _without(NULLS, NANS, VALUES),
    "negative counts": _changed((NULLS, NANS, VALUES), lambda _: -1),
    "too many nulls": _changed((NULLS,), lambda count: count + 10),
    "no values, though there are bounds": lambda file: file.update(
        {
            NULLS: {
                key: (file[VALUES] or {})[key]
                for key, bound in (file[LOWER] or {}).items()
                if key != ICEBERG_COLUMNS.index("f") + 1
            }
        }
    ),
}


def edit_iceberg(table: Path, edits: Mapping[str, str]) -> None:
    """Change the entries of all manifests of a table in place.

    Args:
        table: Its folder.
        edits: The edit of each data file, by its name.
    """
    lists = sorted(table.glob("metadata/snap-*.avro"))
    for path in sorted(table.glob("metadata/*.avro")):
        if path in lists:
            continue
        schema, head, records = read_avro(path)
        for record in records:
            file = record["data_file"]
            parts = (LOWER, UPPER, NULLS, NANS, VALUES)
            pairs: Pairs = {
                name: {one["key"]: one["value"] for one in file[name] or []} for name in parts
            }
            ICEBERG_EDITS[edits[file["file_path"].rpartition("/")[2]]](pairs)
            for name, each in pairs.items():
                listed = [{"key": key, "value": one} for key, one in (each or {}).items()]
                file[name] = listed or None
        write_avro(path, schema, head, records)
    for path in lists:
        schema, head, records = read_avro(path)
        for record in records:
            manifest = Path(record["manifest_path"].removeprefix("file://"))
            record["manifest_length"] = manifest.stat().st_size
        write_avro(path, schema, head, records)


@examples(2, deadline=None, phases=PHASES)
@given(
    files=st.lists(
        st.tuples(contents(ICEBERG_COLUMNS), st.sampled_from(sorted(ICEBERG_EDITS))),
        min_size=2,
        max_size=4,
    ),
    asked=conditions(ICEBERG_COLUMNS),
)
def test_no_filter_loses_a_row_of_iceberg(
    client: windrow.Client,
    folder: Path,
    files: list[tuple[pa.Table, str]],
    asked: list[Condition],
) -> None:
    made, location = new_table(folder / f"iceberg{next(_numbers)}", files[0][0].schema)
    named: dict[str, pa.Table] = {}
    edits: dict[str, str] = {}
    for rows, edit in files:
        made.append(rows)
        new = {Path(task.file.file_path).name for task in made.scan().plan_files()} - set(named)
        (name,) = new
        named[name], edits[name] = rows, edit
    edit_iceberg(Path(location), edits)

    name = f"edited.iceberg{next(_numbers)}"
    client.register_table(name, location, "iceberg")
    client.refresh(name)
    assert lost(client, name, named, asked) == [], edits
