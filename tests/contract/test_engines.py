"""Other engines read tables through the catalog, and get the rows that were written."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table

import windrow
from tests.programs.other_engines import row_texts
from tests.support.engines import asking
from tests.support.engines.cases import CASES, ON_SPARK, EngineCase, matrix
from tests.support.servers.coordinators import PLAIN, running
from tests.support.servers.trino import trino_server
from windrow_cli.engine_lines import Opening
from windrow_service.settings import Settings

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
CASE = {case.name: case for case in CASES}
FILTERS = {
    "ds IS NULL": [4],
    "c IS NULL": [3],
    "ds = '2026-11-01'": [1, 2],
    "n < 2": [1, 2, 5],
    "ds < '1582-01-01'": [5],
    "id = 4": [4],
    "more = 'added'": [4],
}
WRITTEN = ("partitioned", "iceberg")
DELETED_FROM = ("partitioned", "delta_vectors", "iceberg_vectors")
# Values of a column in the parts of tables.
PARTS = {
    ("partitioned", "id"): {
        "ds IS NULL": [4],
        "ds = '2026-11-01'": [1, 2],
        "n < 2": [1, 2, 5],
        "NOT n < 2 OR c='x'": [4, 5],
        "n>=-9 or n is null": [1, 2, 3, 4, 5],
        "c = 'none'": [],
    },
    ("insert_only", "v"): {
        "c LIKE 'a%'": [2, 3, 4],
        "c IS NULL": [6],
        "c <> 'x'": [2, 3, 4],
        "c = 'x'": [],
    },
    ("delta", "id"): {
        "ds < '1582-01-01'": [3],
        "n IS NULL OR n < 0": [3, 2**40],
        "c LIKE 'a%'": [1],
        "c IS NOT NULL": [1, 3, 2**40],
    },
    ("delta_elsewhere", "v"): {"p LIKE 'a%'": [1, 2], "p IS NULL": [3, 4], "p = 'wrong'": []},
    ("delta_vectors", "v"): {
        "p = 'x'": [1, 2, 2, 3, 3, 4, 4],
        "p IS NULL": [1, 1, 1, 2, 2, 3, 3, 4, 4],
    },
}
ALL_PARTS = [
    (table, column, condition, values)
    for (table, column), parts in PARTS.items()
    for condition, values in parts.items()
]


@dataclass(frozen=True, slots=True)
class Catalog:
    """A coordinator with the tables of all cases."""

    url: str
    folder: Path
    by_pyiceberg: RestCatalog

    def table(self, name: str) -> Table:
        return self.by_pyiceberg.load_table(f"t.{name}")


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    folder = tmp_path_factory.mktemp("engines")
    settings = Settings(state_dir=folder / "state", port=0, allowed_locations=(str(folder),))
    with running(settings) as url, windrow.connect(url) as client:
        for case in CASES:
            case.write(folder / case.name)
            name, home = f"t.{case.name}", folder / case.name
            partition = {"p": "string"} if case.partitions else None
            client.register_table(
                name,
                str(home),
                case.format,
                transactional=case.transactional,
                columns=case.columns,
                partition_columns=partition,
            )
            if case.partitions:
                client.set_partitions(name, case.partition_list(home))
            client.refresh(name, valid_write_ids=case.write_ids)
            if case.later:
                client.describe_for_engines(name)
                case.replace(home)
        by_pyiceberg = RestCatalog("w", uri=f"{url}/iceberg")
        yield Catalog(url, folder, by_pyiceberg)
        by_pyiceberg.close()


@pytest.fixture(scope="module")
def elsewhere(catalog: Catalog) -> dict[str, Any]:
    """Return what DuckDB and Polars's own planner answer."""
    sql = [f"SELECT * FROM w.t.{case.name}" for case in CASES]
    sql += [f"SELECT id FROM w.t.partitioned WHERE {condition}" for condition in FILTERS]
    sql += [
        f'SELECT {column} FROM w.t."{table}${condition}"'
        for table, column, condition, _ in ALL_PARTS
    ]
    sql += [f"DELETE FROM w.t.{name} WHERE true" for name in DELETED_FROM]
    sql += [f"INSERT INTO w.t.{name} SELECT * FROM w.t.{name}" for name in WRITTEN]
    questions = {"duckdb": sql, "polars": [f"t.{case.name}" for case in CASES]}
    return asking.answers_elsewhere(catalog.url, questions)


@pytest.fixture(scope="module")
def here(catalog: Catalog) -> dict[str, list[Any]]:
    """Return what PyIceberg and Polars answer."""
    names = [f"t.{case.name}" for case in CASES]
    return {
        engine: asking.answers_here(engine, catalog.url, names)
        for engine in ("PyIceberg", "Polars")
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", ["PyIceberg", "Polars"])
def test_every_engine_returns_the_rows_or_what_the_matrix_says(
    here: dict[str, list[Any]], engine: str
) -> None:
    require_answers(engine, here[engine])


# DuckDB reads tables by the lines of test_engine_lines.py every day.
@pytest.mark.nightly
def test_so_do_duckdb_and_polars_with_its_own_planner(elsewhere: dict[str, Any]) -> None:
    require_answers("DuckDB", elsewhere["duckdb"][: len(CASES)])
    require_answers("Polars, own planner", elsewhere["polars"])


@pytest.mark.nightly
@pytest.mark.parametrize("engine", ON_SPARK)
def test_so_do_spark_with_icebergs_runtime_and_sail(catalog: Catalog, engine: str) -> None:
    names = [f"t.{case.name}" for case in CASES]

    require_answers(engine, asking.answers_on_spark(engine, catalog.url, names))


@pytest.mark.nightly
def test_trino_does_so_too_and_changes_nothing(
    catalog: Catalog, tmp_path_factory: pytest.TempPathFactory
) -> None:
    printed = Opening(catalog.url, None, has_token=False).lines("trino")
    writable = printed.replace("iceberg.security=READ_ONLY", "")
    assert writable != printed
    with windrow.connect(catalog.url) as client:
        add(catalog.folder / "two", 0, 3)
        client.register_table("t.two", str(catalog.folder / "two"))
        first = client.refresh("t.two").snapshot
        assert first is not None
        add(catalog.folder / "two", 3, 2)
        client.refresh("t.two")
    old = catalog.folder / "iceberg" / "data" / "of-nobody"
    old.touch()
    os.utime(old, (0, 0))
    chosen = [("partitioned", "id", condition, ids) for condition, ids in FILTERS.items()]
    chosen += [one for one in ALL_PARTS if one[0] != "delta_vectors"]
    homes = [catalog.folder / name for name in WRITTEN]
    files = {path for home in homes for path in home.rglob("*")}
    refused = [
        *(f"INSERT INTO {place}.t.{name} TABLE w.t.{name}" for name in WRITTEN for place in "wx"),
        *(f"DELETE FROM {place}.t.partitioned WHERE id = 1" for place in "wx"),
        "ALTER TABLE w.t.iceberg EXECUTE remove_orphan_files(retention_threshold => '7d')",
    ]

    with trino_server(tmp_path_factory.mktemp("t") / "t", {"w": printed, "x": writable}) as trino:
        answers = iter(
            trino.answers(
                [
                    *(f"SELECT * FROM w.t.{case.name}" for case in CASES),
                    *(
                        re.sub(
                            r"'\d+-\d+-\d+'",
                            r"DATE \g<0>",
                            f"SELECT {column} FROM w.t.{table} WHERE {condition}",
                        )
                        for table, column, condition, _ in chosen
                    ),
                    f"SELECT id FROM w.t.two FOR VERSION AS OF BIGINT '{first.snapshot_id}'",
                    "SELECT id FROM w.t.two",
                    "SELECT * FROM w.t.\"partitioned$ds = '2026-11-01'\"",
                    *refused,
                ]
            )
        )

    require_answers("Trino", [next(answers) for _ in CASES])
    for table, _, condition, values in chosen:
        assert next(answers) == row_texts([(one,) for one in values]), (table, condition)
    assert next(answers) == row_texts([(0,), (1,), (2,)])
    assert next(answers) == row_texts([(0,), (1,), (2,), (3,), (4,)])
    # Trino has names of its own behind `$`.
    assert "does not exist" in next(answers)
    for statement, answer in zip(refused, answers, strict=True):
        words = 'scheme "read-only"' if " x." in statement else "Access Denied"
        assert words in answer, statement
    assert {path for home in homes for path in home.rglob("*")} == files


def require_answers(engine: str, answers: list[Any]) -> None:
    """Require what the matrix says about an engine of its answers for each case."""
    others = {}
    for case, answer in zip(CASES, answers, strict=True):
        words = case.trouble.get(engine)
        if case.refusal:
            # Sail says only the status.
            is_expected = case.refusal in str(answer) or (engine == "Sail" and "406" in str(answer))
        elif words is None:
            is_expected = answer == row_texts(case.rows)
        else:
            is_error = isinstance(answer, str)
            is_expected = answer != row_texts(case.rows) and is_error == words.startswith("error")
        if not is_expected:
            others[case.name] = str(answer)[:500]
    assert others == {}


def test_times_in_milliseconds_are_refused_to_clients_that_read_them_as_microseconds(
    catalog: Catalog,
) -> None:
    java = {"User-Agent": "Apache-HttpClient/5.5", "X-Client-Version": "Apache Iceberg 1.12.0 (x)"}

    def answer(table: str) -> httpx.Response:
        with httpx.Client(verify=PLAIN, headers=java) as http:
            return http.get(f"{catalog.url}/iceberg/v1/namespaces/t/tables/{table}")

    refusal = answer("milliseconds")
    assert refusal.status_code == 406
    assert "column 'v'" in refusal.json()["error"]["message"]
    assert answer("timestamp").status_code == 200


def test_the_documents_have_the_matrix() -> None:
    assert matrix() in (ROOT / "docs" / "how-to" / "engines.md").read_text(encoding="utf-8")


def test_conditions_choose_the_rows_that_they_are_true_for(catalog: Catalog) -> None:
    table = catalog.table("partitioned")

    for condition, ids in FILTERS.items():
        rows = table.scan(row_filter=condition).to_arrow()
        assert sorted(rows["id"].to_pylist()) == ids, condition


def test_parts_of_a_table_have_the_rows_of_the_partitions_that_are_named(
    catalog: Catalog,
) -> None:
    for table, column, condition, values in ALL_PARTS:
        part = catalog.table(f"{table}${condition}")
        assert sorted(part.scan().to_arrow()[column].to_pylist()) == values, (table, condition)


@pytest.mark.nightly
def test_duckdb_gets_the_rows_of_conditions_and_parts(elsewhere: dict[str, Any]) -> None:
    answers = iter(elsewhere["duckdb"][len(CASES) :])

    for condition, ids in FILTERS.items():
        assert next(answers) == row_texts([(one,) for one in ids]), condition
    for table, _, condition, values in ALL_PARTS:
        assert next(answers) == row_texts([(one,) for one in values]), (table, condition)


def test_parts_share_the_manifests_of_which_they_have_all_files(catalog: Catalog) -> None:
    def manifests(name: str) -> set[str]:
        table = catalog.table(name)
        snapshot = table.current_snapshot()
        assert snapshot is not None
        return {one.manifest_path for one in snapshot.manifests(table.io)}

    whole = manifests("partitioned")
    assert manifests("partitioned$n>=-9 or n is null") == whole
    part = manifests("partitioned$n=1")
    assert len(part) == 1
    assert not part & whole


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("partitioned$id = 1", "only partition columns"),
        ("partitioned$none = 1", "none"),
        ("partitioned$n = = 1", "n = = 1"),
        ("iceberg$day = 1", "no parts"),
    ],
)
def test_conditions_that_choose_no_partitions_are_refused(
    catalog: Catalog, name: str, words: str
) -> None:
    with httpx.Client(verify=PLAIN) as http:
        name = quote(name, safe="")
        answer = http.get(f"{catalog.url}/iceberg/v1/namespaces/t/tables/{name}")

    assert 400 <= answer.status_code < 500
    assert words in answer.json()["error"]["message"]


def test_pyiceberg_needs_the_partition_columns_of_a_condition_among_the_selected_ones(
    catalog: Catalog,
) -> None:
    # Once it does not, docs/how-to/engines.md need not say so.
    table = catalog.table("partitioned")

    def ids(*selected: str) -> list[int]:
        rows = table.scan(row_filter="ds = '2026-11-01'", selected_fields=selected).to_arrow()
        return sorted(rows["id"].to_pylist())

    assert ids("id", "ds") == [1, 2]
    assert ids("id") == []


@pytest.mark.parametrize(
    ("condition", "paths"),
    [
        ("id = 4", ["ds=__HIVE_DEFAULT_PARTITION__/n=2/c=x/f"]),
        (
            "ds = '2026-11-02'",
            ["ds=2026-11-02/n=__HIVE_DEFAULT_PARTITION__/c=__HIVE_DEFAULT_PARTITION__/f"],
        ),
        ("more = 'zzz'", []),
        ("more IS NOT NULL", ["ds=__HIVE_DEFAULT_PARTITION__/n=2/c=x/f"]),
    ],
)
def test_manifests_say_which_files_cannot_match(
    catalog: Catalog, condition: str, paths: list[str]
) -> None:
    tasks = catalog.table("partitioned").scan(row_filter=condition).plan_files()

    home = catalog.folder / "partitioned"
    assert [task.file.file_path for task in tasks] == [str(home / path) for path in paths]


def test_manifests_say_that_null_partitions_hold_nothing_but_null(catalog: Catalog) -> None:
    # Iceberg's library would keep their files for `n < 2`, and Trino return their rows.
    table = catalog.table("partitioned")
    (task,) = table.scan(row_filter="n IS NULL").plan_files()
    ids = {name: table.schema().find_field(name).field_id for name in ("ds", "n", "c")}

    counts, nulls = task.file.value_counts, task.file.null_value_counts

    assert {name: nulls.get(key) for name, key in ids.items()} == {"ds": None, "n": 1, "c": 1}
    assert {name: counts.get(key) for name, key in ids.items()} == {"ds": None, "n": 1, "c": 1}


@pytest.mark.parametrize("name", ["partitioned", "delta_vectors", "iceberg"])
def test_pyiceberg_inspects_a_table(catalog: Catalog, name: str) -> None:
    inspect = catalog.table(name).inspect
    names = ("entries", "files", "data_files", "all_files", "partitions", "manifests")

    counts = {one: getattr(inspect, one)().num_rows for one in names}

    assert counts["entries"] >= counts["files"] >= counts["data_files"] > 1


def test_nothing_is_written_below_a_table(catalog: Catalog) -> None:
    case: EngineCase = CASE["partitioned"]
    catalog.table("partitioned").scan().to_arrow()

    home = catalog.folder / "partitioned"
    files = {path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()}
    assert files == set(case.files)


@pytest.mark.filterwarnings("ignore")
def test_engines_that_write_fail_before_they_leave_files_below_a_table(catalog: Catalog) -> None:
    for name in WRITTEN:
        home, table = catalog.folder / name, catalog.table(name)
        files = set(home.rglob("*"))

        with pytest.raises(ValueError, match="read-only"):
            table.append(table.scan(limit=1).to_arrow())

        assert set(home.rglob("*")) == files


@pytest.mark.nightly
def test_duckdb_fails_to_write_and_says_where_it_would_have_written(
    elsewhere: dict[str, Any],
) -> None:
    for answer in elsewhere["duckdb"][-len(WRITTEN) :]:
        assert "read-only://write-with-windrow" in answer


@pytest.mark.nightly
def test_engines_that_delete_fail_before_they_leave_files_below_a_table(
    catalog: Catalog, elsewhere: dict[str, Any]
) -> None:
    end = -len(WRITTEN)
    answers = elsewhere["duckdb"][end - len(DELETED_FROM) : end]

    for name, answer in zip(DELETED_FROM, answers, strict=True):
        assert "'write.delete.mode'" in answer
        assert not list((catalog.folder / name).rglob("*-deletes.*"))


def add(folder: Path, first: int, count: int) -> None:
    for number in range(first, first + count):
        file = folder / f"day={number % 7}" / f"{number}"
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": pa.array([number])}), file)


def test_a_refresh_adds_a_snapshot_whose_manifests_are_mostly_those_before(
    catalog: Catalog,
) -> None:
    folder = catalog.folder / "grown"
    add(folder, 0, 300)
    with windrow.connect(catalog.url) as client:
        client.register_table("t.grown", str(folder))
        client.refresh("t.grown")
        before = catalog.table("grown")
        add(folder, 300, 100)
        client.refresh("t.grown")
        after = catalog.table("grown")
        metadata = catalog.folder / "state" / "engines" / str(after.metadata.table_uuid)
        manifests = {path.name for path in metadata.glob("*.avro") if "snap" not in path.name}

        old, new = after.metadata.snapshots
        assert old == before.current_snapshot()
        assert len(manifests) <= 1 + 2
        assert after.scan().to_arrow().num_rows == 400
        assert after.scan(snapshot_id=old.snapshot_id).to_arrow().num_rows == 300
        assert len(after.history()) == 2
        assert new.parent_snapshot_id == old.snapshot_id

        fields = {field.name: field.field_id for field in after.schema().fields}
        pq.write_table(pa.table({"a": [1], "id": [1000]}), folder / "day=1" / "z")
        client.refresh("t.grown")
        evolved = catalog.table("grown")
        ids = {field.name: field.field_id for field in evolved.schema().fields}
        assert ids.items() > fields.items()
        assert "a" not in evolved.scan(snapshot_id=old.snapshot_id).to_arrow().column_names
