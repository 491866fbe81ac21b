"""Originals, packs and rows that are masked, mixed: every engine returns what was written."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from anyio.from_thread import start_blocking_portal
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import ALWAYS_TRUE

import windrow
from tests.programs.other_engines import row_texts
from tests.support.engines import asking
from tests.support.engines.cases import ENGINES, ON_SPARK
from tests.support.laws import is_nightly
from tests.support.servers.coordinators import running
from tests.support.servers.trino import trino_server
from tests.support.tables.packs import pack_here
from windrow_cli.engine_lines import Opening
from windrow_service.bootstrap import open_services
from windrow_service.settings import Settings

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

_LONG_AGO_S = 1_700_000_000
_ODD = ("plain", "a b", "ü%=/x", "it's")
_DAY = date(2026, 11, 1)
_HOUR = datetime(2026, 11, 1, 9, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class Question:
    """A question about the rows of a table.

    Attributes:
        condition: What engines that know SQL are asked.
        keep: Whether a row is wanted, by its values.
        in_iceberg: The condition in the words of PyIceberg, if they are others.
    """

    condition: str
    keep: Callable[[dict[str, Any]], bool]
    in_iceberg: str = ""

    def sql(self, table: str, columns: str = "*") -> str:
        """Return it as SQL."""
        where = f" WHERE {self.condition}" if self.condition else ""
        return f"SELECT {columns} FROM w.{table}{where}"

    def to_pyiceberg(self, table: str) -> str:
        """Return it as PyIceberg takes it."""
        condition = self.in_iceberg or self.condition
        return f"{table} WHERE {condition}" if condition else table


@dataclass(frozen=True, slots=True)
class PackedTable:
    """A table whose history has packs.

    Attributes:
        name: Its name.
        partition: Its partition columns and their types.
        values: The partition values of a file, by its number.
        data: Its columns in a file, by its number and how often the file was written.
        questions: What engines are asked.
    """

    name: str
    partition: Mapping[str, str]
    values: Callable[[int], tuple[Any, ...]]
    data: Callable[[int, int], pa.Table]
    questions: tuple[Question, ...]


def _folder(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    # Hive escapes none but ASCII characters.
    return re.sub("[%=/:']", lambda one: f"%{ord(one[0]):02X}", str(value))


def _typed(number: int, version: int) -> pa.Table:
    first = 1_000 * number + version
    ids = [first, first + 1, first + 2]
    return pa.table(
        {
            "id": pa.array(ids),
            "small": pa.array([number, None, -number], pa.int32()),
            "text": pa.array([f"t{number}", None, f"{version} 'ü'"]),
            "price": pa.array([Decimal(number) / 4, Decimal(-1), None], pa.decimal128(12, 2)),
            "at": pa.array(
                [_HOUR + timedelta(hours=number), None, _HOUR], pa.timestamp("us", "UTC")
            ),
            "day": pa.array([_DAY, _DAY + timedelta(days=number), None]),
            "part": pa.array([number / 8, None, -0.5]),
        }
    )


def _nested(number: int, version: int) -> pa.Table:
    point = pa.struct([("x", pa.int64()), ("y", pa.string())])
    return pa.table(
        {
            "id": pa.array([number, number + version]),
            "point": pa.array([{"x": number, "y": None}, None], point),
            "list": pa.array([[number, None], []], pa.list_(pa.int64())),
        }
    )


def _evolved(number: int, version: int) -> pa.Table:
    """Return the rows of files of two layouts: the later ones have wider numbers, and a new column."""
    ids = [number, -number - version]
    if number % 2 == 0:
        return pa.table({"id": pa.array(ids, pa.int32())})
    return pa.table({"id": pa.array(ids), "more": pa.array([f"m{number}", None])})


_ID = Question("id >= 5000 AND id < 9002", lambda row: 5_000 <= row["id"] < 9_002)
_ALL = Question("", lambda row: True)
_EVERY = (
    PackedTable(
        "t.typed",
        {
            "ds": "date",
            "s": "string",
            "n": "int",
            "amount": "decimal(9,2)",
            "flag": "boolean",
            "hour": "timestamp_ntz",
        },
        lambda number: (
            _DAY + timedelta(days=number % 5),
            _ODD[number % 4],
            number % 3 - 1,
            Decimal(25 * (number % 6)).scaleb(-2),
            number % 2 == 0,
            datetime(2026, 11, 1, number % 24),  # noqa: DTZ001 - a local time
        ),
        _typed,
        (
            _ALL,
            _ID,
            Question(
                "ds = DATE '2026-11-03'",
                lambda row: row["ds"] == date(2026, 11, 3),
                "ds = '2026-11-03'",
            ),
            Question("s = 'a b'", lambda row: row["s"] == "a b"),
            Question("s <> 'ü%=/x' AND n < 1", lambda row: row["s"] != "ü%=/x" and row["n"] < 1),
            Question(
                "amount >= CAST('0.75' AS DECIMAL(9, 2))",
                lambda row: row["amount"] >= Decimal("0.75"),
                "amount >= 0.75",
            ),
            Question("flag = true AND id > 8000", lambda row: row["flag"] and row["id"] > 8_000),
            Question("text IS NULL AND n = 0", lambda row: row["text"] is None and row["n"] == 0),
            Question("s IN ('plain', 'a b')", lambda row: row["s"] in {"plain", "a b"}),
            Question("n = 77", lambda row: False),
        ),
    ),
    PackedTable("t.plain", {}, lambda number: (), _typed, (_ALL, _ID)),
    PackedTable(
        "t.evolved",
        {"s": "string"},
        lambda number: (_ODD[number % 4],),
        _evolved,
        (_ALL, Question("more = 'm5'", lambda row: row.get("more") == "m5")),
    ),
    PackedTable(
        "t.nested",
        {"n": "int"},
        lambda number: (number % 7,),
        _nested,
        (_ALL, Question("n = 3", lambda row: row["n"] == 3)),
    ),
)
# By day, some of them.
TABLES = _EVERY if is_nightly() else _EVERY[:3]


@dataclass(frozen=True, slots=True)
class Site:
    """A coordinator with these tables, each with packs, and without under another name.

    Attributes:
        url: The coordinator.
        folder: The tables' folder.
        files: The version of each file of each table, by its number.
    """

    url: str
    folder: Path
    files: dict[str, dict[int, int]] = field(default_factory=dict)

    def change(self, table: PackedTable, versions: Mapping[int, int | None]) -> None:
        """Write files of a table, or remove them, and refresh the table."""
        own = self.files.setdefault(table.name, {})
        for number, version in versions.items():
            values = zip(table.partition, table.values(number), strict=True)
            folders = [f"{name}={_folder(value)}" for name, value in values]
            path = self.folder.joinpath(table.name, *folders, f"f{number}.parquet")
            if version is None:
                path.unlink()
                del own[number]
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table.data(number, version), path)
            os.utime(path, (_LONG_AGO_S, _LONG_AGO_S + version))
            own[number] = version

    def rows(self, table: PackedTable, question: Question) -> list[str]:
        """Return what was written and is wanted."""
        found: list[dict[str, Any]] = []
        for number, version in self.files[table.name].items():
            values = dict(zip(table.partition, table.values(number), strict=True))
            found += [row | values for row in table.data(number, version).to_pylist()]
        names = list({name: None for row in found for name in row})
        own = [name for name in names if name not in table.partition]
        ordered = [*own, *table.partition]
        return row_texts([row.get(name) for name in ordered] for row in found if question.keep(row))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("packs")
    settings = Settings(state_dir=home / "state", port=0, allowed_locations=(str(home),))
    with running(settings) as url, windrow.connect(url) as client:
        site = Site(url, home / "tables")
        make(site, client)
        yield site


def make(site: Site, client: windrow.Client) -> None:
    """Write tables whose snapshots have files in packs, others, and rows in packs that are masked."""
    names = [table.name for table in TABLES]
    for table in TABLES:
        site.change(table, dict.fromkeys(range(24), 0))
        for name in (table.name, f"{table.name}_files"):
            location = str(site.folder / table.name)
            client.register_table(name, location, partition_columns=dict(table.partition))
    pack_here(client, *names)
    for table in TABLES:
        site.change(table, {2: None, 7: None, 12: 1, 13: 1, 24: 0, 25: 0, 26: 0, 27: 0})
    assert pack_here(client, *names) >= len(names)
    for table in TABLES:
        site.change(table, {3: 1, 25: None, 28: 0, 29: 0})
        for name in (table.name, f"{table.name}_files"):
            client.refresh(name)


def figures(site: Site, name: str) -> dict[str, int]:
    """Return the figures of a table's snapshot, as engines are told them."""
    with closing(RestCatalog("w", uri=f"{site.url}/iceberg")) as catalog:
        snapshot = catalog.load_table(name).current_snapshot()
        assert snapshot is not None
        assert snapshot.summary is not None
        return {
            key: int(snapshot.summary[key])
            for key in ("total-data-files", "total-position-deletes")
        }


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_tables_have_originals_packs_and_masks(site: Site, table: PackedTable) -> None:
    with_packs, without = figures(site, table.name), figures(site, f"{table.name}_files")

    assert 3 < with_packs["total-data-files"] < without["total-data-files"] == 27
    assert with_packs["total-position-deletes"] > 0
    assert without["total-position-deletes"] == 0


@pytest.mark.parametrize(
    "engine",
    [*ENGINES, *(pytest.param(one, marks=pytest.mark.nightly) for one in (*ON_SPARK, "Trino"))],
)
def test_every_engine_returns_what_was_written(site: Site, engine: str, tmp_path: Path) -> None:
    asked = [
        (name, table, question)
        for table in TABLES
        for question in table.questions
        for name in (table.name, f"{table.name}_files")
    ]

    answers = answers_of(site, engine, [(name, one) for name, _, one in asked], tmp_path)

    wrong = {
        f"{name} {question.condition}": difference(answer, site.rows(table, question))
        for (name, table, question), answer in zip(asked, answers, strict=True)
        if answer != site.rows(table, question)
        # It finds no file whose folder has odd characters, and says so.
        and not (engine == "Sail" and "s" in table.partition and isinstance(answer, str))
    }
    assert wrong == {}


def difference(answer: Any, rows: list[str]) -> str:
    """Return an error, or the rows that are too many or missing."""
    if isinstance(answer, str):
        return answer[:300]
    more, missing = Counter(answer) - Counter(rows), Counter(rows) - Counter(answer)
    return f"too many: {list(more)[:2]}, missing: {list(missing)[:2]}"


def answers_of(
    site: Site, engine: str, asked: list[tuple[str, Question]], folder: Path
) -> list[Any]:
    sql = [question.sql(name) for name, question in asked]
    answers: list[Any]
    if engine == "Trino":
        lines = Opening(site.url, None, has_token=False).lines("trino")
        with trino_server(folder / "trino", {"w": lines}) as trino:
            answers = trino.answers(sql)
    elif engine in ON_SPARK:
        answers = asking.answers_on_spark(engine, site.url, sql)
    elif engine in {"DuckDB", "Polars, own planner"}:
        own = "duckdb" if engine == "DuckDB" else "polars"
        answers = asking.answers_elsewhere(site.url, {own: sql})[own]
    else:
        if engine == "PyIceberg":
            sql = [question.to_pyiceberg(name) for name, question in asked]
        answers = asking.answers_here(engine, site.url, sql)
    return answers


def pyiceberg_rows(
    catalog: RestCatalog, name: str, condition: str = "", snapshot_id: int | None = None
) -> list[str]:
    table = catalog.load_table(name)
    scan = table.scan(row_filter=condition or ALWAYS_TRUE, snapshot_id=snapshot_id)
    return row_texts(tuple(row.values()) for row in scan.to_arrow().to_pylist())


@pytest.fixture
def catalog(site: Site) -> Iterator[RestCatalog]:
    with closing(RestCatalog("w", uri=f"{site.url}/iceberg")) as catalog:
        yield catalog


@pytest.fixture
def client(site: Site) -> Iterator[windrow.Client]:
    with windrow.connect(site.url) as client:
        yield client


# The coordinator plans no scans by other partition values for PyIceberg, which misreads them.
@pytest.mark.parametrize("table", TABLES[1:], ids=lambda table: table.name)
def test_plans_of_the_coordinator_return_the_same_rows(site: Site, table: PackedTable) -> None:
    options = {"scan-planning-mode": "server"}
    with closing(RestCatalog("w", uri=f"{site.url}/iceberg", **options)) as catalog:
        for question in table.questions:
            condition = question.in_iceberg or question.condition

            assert pyiceberg_rows(catalog, table.name, condition) == site.rows(table, question)


def test_parts_have_their_rows_alone(site: Site, catalog: RestCatalog) -> None:
    table = TABLES[0]
    of_a_day = Question("", lambda row: row["ds"] == date(2026, 11, 3) and row["n"] < 1)

    assert pyiceberg_rows(catalog, f"{table.name}$ds='2026-11-03' and n<1") == site.rows(
        table, of_a_day
    )


def test_counts_leave_out_masked_rows(site: Site, catalog: RestCatalog) -> None:
    asked = [(table, question) for table in TABLES for question in table.questions]
    counts = [len(site.rows(table, question)) for table, question in asked]
    sql = [question.sql(table.name, "count(*)") for table, question in asked]

    answers = asking.answers_elsewhere(site.url, {"duckdb": sql, "polars": sql})

    expected = [[str([count])] for count in counts]
    assert answers == {"duckdb": expected, "polars": expected}
    by_pyiceberg = [catalog.load_table(table.name).scan().count() for table in TABLES]
    assert by_pyiceberg == [len(site.rows(table, _ALL)) for table in TABLES]


def new_table(site: Site, client: windrow.Client, name: str) -> PackedTable:
    """Return a table of 24 files in packs."""
    table = replace(TABLES[0], name=name)
    site.change(table, dict.fromkeys(range(24), 0))
    client.register_table(name, str(site.folder / name), partition_columns=dict(table.partition))
    pack_here(client, name)
    return table


def test_older_snapshots_have_the_files_that_they_had(
    site: Site, client: windrow.Client, catalog: RestCatalog
) -> None:
    table = new_table(site, client, "t.older")
    first, before = catalog.load_table(table.name).current_snapshot(), site.rows(table, _ALL)
    site.change(table, {24: 0})
    client.refresh(table.name)

    assert first is not None
    assert pyiceberg_rows(catalog, table.name, snapshot_id=first.snapshot_id) == before
    assert pyiceberg_rows(catalog, table.name) == site.rows(table, _ALL) != before
    older, newest = catalog.load_table(table.name).snapshots()
    assert older.summary is not None
    assert newest.summary is not None
    assert int(older.summary["total-data-files"]) == 24
    assert int(newest.summary["total-data-files"]) == 2


def test_metadata_that_names_a_withdrawn_pack_can_be_read_until_the_pack_is_removed(
    site: Site, client: windrow.Client, catalog: RestCatalog
) -> None:
    table = new_table(site, client, "t.withdrawn")
    loaded, rows = catalog.load_table(table.name), site.rows(table, _ALL)
    for pack in client.list_packs(table.name):
        client.withdraw_pack(table.name, pack.pack_id)

    again = catalog.load_table(table.name)

    def read(one: Any) -> list[str]:
        return row_texts(tuple(row.values()) for row in one.scan().to_arrow().to_pylist())

    assert read(again) == read(loaded) == rows
    files = [len(list(one.scan().plan_files())) for one in (loaded, again)]
    assert files == [1, 24]


def test_packs_of_which_no_file_is_left_are_not_named(
    site: Site, client: windrow.Client, catalog: RestCatalog
) -> None:
    table = new_table(site, client, "t.replaced")
    site.change(table, dict.fromkeys(range(24), 1))
    client.refresh(table.name)

    assert pyiceberg_rows(catalog, table.name) == site.rows(table, _ALL)


def test_a_packed_table_without_any_file_left_is_empty(
    site: Site, client: windrow.Client, catalog: RestCatalog
) -> None:
    table = new_table(site, client, "t.emptied")
    site.change(table, dict.fromkeys(range(24)))
    client.refresh(table.name)

    assert pyiceberg_rows(catalog, table.name) == []


def test_cleaning_keeps_what_engines_are_told_of_packs_and_no_more(tmp_path: Path) -> None:
    settings = Settings(state_dir=tmp_path / "state", port=0, allowed_locations=(str(tmp_path),))
    made = settings.state_dir / "engines"

    def names() -> set[str]:
        return {one.name for one in made.rglob("*") if one.suffix in {".avro", ".json", ".parquet"}}

    def clean(*, describes: bool) -> None:
        async def work() -> None:
            async with open_services(settings) as services:
                describe = services.engines.describe
                assert describe is not None
                if describes:
                    await describe("t.cleaned", all_snapshots=True)
                for path in made.rglob("*"):
                    os.utime(path, (_LONG_AGO_S, _LONG_AGO_S))
                before.update(names())
                await describe.clean()

        with start_blocking_portal() as portal:
            portal.call(work)

    before: set[str] = set()
    with running(settings) as url, windrow.connect(url) as client:
        site = Site(url, tmp_path / "tables")
        table = new_table(site, client, "t.cleaned")
        site.change(table, {2: None, 24: 0})
        client.refresh(table.name)
    clean(describes=True)

    assert {one for one in before - names() if not one.endswith(".metadata.json")} == set()
    of_packs = {one for one in names() if one.startswith("packs-")}
    # Of the packs, of masked rows, and those rows.
    assert len(of_packs) == 3
    with running(settings) as url, windrow.connect(url) as client:
        (pack,) = client.list_packs("t.cleaned")
        client.withdraw_pack("t.cleaned", pack.pack_id)
    clean(describes=False)
    assert not of_packs & names()
