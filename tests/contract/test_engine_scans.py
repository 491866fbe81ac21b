"""Scans that the catalog plans for engines: their files, their pages, and who may see them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from functools import partial, reduce
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg import expressions as ice
from pyiceberg.expressions import visitors
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.puffin import PuffinFile
from pyiceberg.typedef import Record

import windrow
from tests.support.engines.filters import Filters, conditions_on, filters_of
from tests.support.engines.iceberg_runtime import check_same_rows
from tests.support.engines.scan_sites import PLAN, TASKS, ScanSite, scan_site
from tests.support.laws import examples, is_nightly
from tests.support.tables.delta_tables import (
    DeltaLog,
    column,
    inline_vector,
    metadata,
    protocol,
    write_vectors,
)

pytestmark = pytest.mark.slow

_MOST_TASKS = 20
KINDS = ("a", "b", "ab")
NUMBERS = (0, 1, 2)
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "name": pa.string(),
        "day": pa.date32(),
        "at": pa.timestamp("us", tz="UTC"),
        "price": pa.decimal128(9, 2),
        "share": pa.float64(),
    }
)
_DAY = date(2026, 11, 1)
_AT = datetime(2026, 11, 1, 12, tzinfo=timezone.utc)


def rows_of(number: int) -> dict[str, list[Any]]:
    """Return the only row of a file."""
    is_null = number % 7 == 3
    return {
        "id": [number],
        "name": [None if is_null else f"name-{number % 5}"],
        "day": [None if is_null else _DAY.replace(day=1 + number % 28)],
        "at": [_AT.replace(minute=number % 60)],
        "price": [Decimal(number).scaleb(-1).quantize(Decimal("0.01"))],
        "share": [float("nan") if is_null else number / 4],
    }


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScanSite]:
    folder = tmp_path_factory.mktemp("scans")
    for number in range(63):
        kind, n = KINDS[number % 3], NUMBERS[number // 3 % 3]
        path = folder / "many" / f"kind={kind}" / f"n={n}" / f"{number:02}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(rows_of(number), SCHEMA), path)
    for day in ("2026-11-01", "__HIVE_DEFAULT_PARTITION__"):
        path = folder / "days" / f"ds={day}" / "f.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.table({"id": [1, 2]}), path)
    for kind in ("a", "__HIVE_DEFAULT_PARTITION__"):
        path = folder / "nulls" / f"kind={kind}" / "f.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.table({"id": [1, 2]}), path)
    write_deleted(folder / "deleted")
    with scan_site(folder, _MOST_TASKS) as one:
        with windrow.connect(one.url, token=one.admin) as client:
            for name in ("many", "days", "nulls"):
                client.register_table(
                    f"mine.{name}",
                    str(folder / name),
                    bloom_columns=["id"] if name == "many" else (),
                )
                client.refresh(f"mine.{name}")
            client.register_table("mine.deleted", str(folder / "deleted"), "delta")
            client.refresh("mine.deleted")
            client.register_table("other.t", str(folder / "days"))
            client.refresh("other.t")
        yield one


def write_deleted(folder: Path) -> None:
    """Write a Delta table of 45 files of three rows, some of which are deleted in two files of three."""
    log = DeltaLog(folder)
    paths = {
        number: f"kind={KINDS[number % 3]}/n={number // 3 % 3}/{number:02}.parquet"
        for number in range(45)
    }
    positions = {number: [number % 3 - 1, 2] for number in paths if number % 3}
    vectors = dict(zip(positions, write_vectors(folder, positions.values()), strict=True))
    # One is in the log itself, and one names nothing.
    vectors[1], vectors[2] = inline_vector([0, 1]), inline_vector([])
    columns = [column("id", "long"), column("kind", "string"), column("n", "integer")]
    actions = [protocol(3, "deletionVectors"), metadata(columns, ["kind", "n"])]
    for number, path in paths.items():
        ids = [number * 3, number * 3 + 1, number * 3 + 2]
        values = {"kind": KINDS[number % 3], "n": str(number // 3 % 3)}
        file = log.write_file(path, pa.table({"id": ids}), partitionValues=values)
        stats = {"numRecords": 3, "minValues": {"id": ids[0]}, "maxValues": {"id": ids[2]}}
        file["add"]["stats"] = json.dumps(stats | {"nullCount": {"id": 0}})
        if number in vectors:
            file["add"]["deletionVector"] = vectors[number]
        actions.append(file)
    log.commit(*actions)


@pytest.fixture(scope="module")
def deleted(site: ScanSite) -> tuple[Table, Table]:
    """Return the table with deletion vectors, planned by the coordinator and by PyIceberg."""
    return site.by_server.load_table("mine.deleted"), site.by_client.load_table("mine.deleted")


@pytest.fixture(scope="module")
def tables(site: ScanSite) -> tuple[Table, Table]:
    """Return the large table, planned by the coordinator and by PyIceberg."""
    return site.by_server.load_table("mine.many"), site.by_client.load_table("mine.many")


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "id": st.integers(-2, 70),
    "name": st.sampled_from(["name-1", "name-4", "name", "", "z"]),
    "day": st.integers(1, 28).map(lambda day: _DAY.replace(day=day)),
    "at": st.integers(0, 59).map(lambda minute: _AT.replace(minute=minute)),
    "price": st.integers(0, 700).map(lambda cents: Decimal(cents).scaleb(-2)),
    "share": st.integers(0, 70).map(lambda quarters: quarters / 4),
    "kind": st.sampled_from([*KINDS, "c", ""]),
    "n": st.integers(-1, 3),
}
TRUE: ice.BooleanExpression = ice.AlwaysTrue()


def condition(name: str) -> Filters:
    """Return conditions on a column."""
    return conditions_on(name, VALUES[name], is_text=name in ("name", "kind"))


CONDITIONS = st.sampled_from(list(VALUES)).flatmap(condition)
FILTERS = filters_of(CONDITIONS, 5)


def paths(tasks: Sequence[FileScanTask]) -> set[str]:
    """Return the paths of tasks, of which no two are of one file."""
    names = [task.file.file_path for task in tasks]
    assert len(set(names)) == len(names)
    return set(names)


def has_rows(table: Table, filter: ice.BooleanExpression, path: str) -> bool:
    """Return whether PyIceberg finds a row of a file that a filter wants."""
    number = int(Path(path).stem)
    row = {name: values[0] for name, values in rows_of(number).items()}
    row |= {"kind": KINDS[number % 3], "n": NUMBERS[number // 3 % 3]}
    schema = table.schema()
    # As in SQL, null also fails the opposite of a comparison.
    evaluate = visitors.expression_evaluator(schema, visitors.rewrite_not(filter), True)
    return bool(evaluate(Record(*(_internal(row[field.name]) for field in schema.fields))))


def _internal(value: Any) -> Any:
    if isinstance(value, datetime):
        return int(value.timestamp()) * 10**6
    if isinstance(value, date):
        return value.toordinal() - date(1970, 1, 1).toordinal()
    return value


# Nightly runs try 10,000 of each.
FEW, MANY = 50, 500


@examples(MANY if is_nightly() else FEW, deadline=None)
@given(FILTERS)
def test_plans_have_every_file_that_pyiceberg_needs_and_no_more_than_it_plans(
    tables: tuple[Table, Table], filter: ice.BooleanExpression
) -> None:
    by_server, by_client = tables

    planned = paths(list(by_server.scan(row_filter=filter).plan_files()))
    own = paths(list(by_client.scan(row_filter=filter).plan_files()))

    assert planned <= own
    assert {path for path in own if has_rows(by_client, filter, path)} <= planned


@examples(MANY if is_nightly() else FEW // 2, deadline=None)
@given(st.lists(CONDITIONS, min_size=1, max_size=3))
def test_simple_filters_are_planned_as_by_pyiceberg(
    tables: tuple[Table, Table], parts: list[ice.BooleanExpression]
) -> None:
    # It compares neither bounds of floats and decimals, nor what only `<>` rules out.
    unlike = (ice.NotEqualTo, ice.NotIn, ice.NotStartsWith, ice.NotNull)
    parts = [
        part
        for part in parts
        if not isinstance(part, unlike) and part.term.name not in ("price", "share", "id")  # type: ignore[attr-defined]
    ]
    filter = reduce(lambda one, other: ice.And(one, other), parts, TRUE)
    by_server, by_client = tables

    assert paths(list(by_server.scan(row_filter=filter).plan_files())) == paths(
        list(by_client.scan(row_filter=filter).plan_files())
    )


@examples(6, deadline=None)
@given(FILTERS)
def test_rows_and_counts_are_the_same_whoever_plans(
    tables: tuple[Table, Table], filter: ice.BooleanExpression
) -> None:
    server, client = (table.scan(row_filter=filter) for table in tables)

    rows = [sorted(scan.to_arrow()["id"].to_pylist()) for scan in (server, client)]

    assert rows[0] == rows[1]
    assert server.count() == client.count() == len(rows[0])


FILTERS_OF_DELETED = st.recursive(
    st.one_of(
        condition("kind"),
        condition("n"),
        st.integers(-1, 140).map(partial(ice.LessThan, "id")),
        st.integers(-1, 140).map(partial(ice.EqualTo, "id")),
    ),
    lambda inner: st.one_of(st.builds(ice.And, inner, inner), st.builds(ice.Or, inner, inner)),
    max_leaves=4,
)


@examples(FEW if is_nightly() else 8, deadline=None)
@given(FILTERS_OF_DELETED)
def test_plans_name_the_deletion_vectors_that_pyiceberg_finds_for_the_same_files(
    deleted: tuple[Table, Table], filter: ice.BooleanExpression
) -> None:
    server, client = (table.scan(row_filter=filter) for table in deleted)
    by_server, by_client = (
        {
            task.file.file_path: sorted(one.file_path for one in task.delete_files)
            for task in scan.plan_files()
        }
        for scan in (server, client)
    )

    assert by_server == {path: by_client[path] for path in by_server}
    rows = [sorted(scan.to_arrow()["id"].to_pylist()) for scan in (server, client)]
    assert rows[0] == rows[1]
    assert server.count() == client.count() == len(rows[0])


def test_deletion_vectors_of_plans_lie_where_their_file_says(site: ScanSite) -> None:
    plan = site.plan("deleted")
    answers = [site.post(TASKS.format("deleted"), {"plan-task": one}) for one in plan["plan-tasks"]]
    vectors, names = {}, set()
    for answer in (one.json() for one in answers):
        for task in answer["file-scan-tasks"]:
            file = task["data-file"]
            for at in task.get("delete-file-references", ()):
                vector = answer["delete-files"][at]
                assert vector["referenced-data-file"] == file["file-path"]
                assert vector["partition"] == file["partition"]
                assert vector["spec-id"] == 0
                assert vector["file-size-in-bytes"] == Path(vector["file-path"]).stat().st_size
                names.add(vector["file-path"])
                place = vector["content-offset"], vector["content-size-in-bytes"]
                vectors[file["file-path"]] = *place, str(vector["record-count"])
    expected = {}
    for name in names:
        for blob in PuffinFile(Path(name).read_bytes()).footer.blobs:
            count = blob.properties["cardinality"]
            expected[blob.properties["referenced-data-file"]] = blob.offset, blob.length, count

    assert len(answers) == 3
    assert len(vectors) == 29
    assert vectors == expected


def test_a_limit_counts_no_rows_of_files_with_deleted_ones(site: ScanSite) -> None:
    predicate = {"type": "eq", "term": "kind", "value": "a"}

    assert (
        len(site.tasks("deleted", site.plan("deleted", predicate, **{"min-rows-requested": 4})))
        == 2
    )
    predicate["value"] = "b"
    assert (
        len(site.tasks("deleted", site.plan("deleted", predicate, **{"min-rows-requested": 4})))
        == 15
    )


def test_a_plan_names_deletion_vectors_that_are_there_whoever_has_removed_them(
    site: ScanSite,
) -> None:
    with windrow.connect(site.url, token=site.admin) as client:
        location = client.table("mine.deleted").definition.location
        client.register_table("mine.harmed", location, "delta")
        client.refresh("mine.harmed")
        path = PLAN.format("harmed")
        metadata = site.post(path.removesuffix("/plan"), None, method="GET").json()
        folder = Path(metadata["metadata-location"]).parent
        puffins = list(folder.glob("*.puffin"))
        assert puffins
        for puffin in puffins:
            puffin.unlink()

        answer = site.post(path, {})

        client.delete_table("mine.harmed")
    assert answer.status_code == 200
    assert set(folder.glob("*.puffin")) == set(puffins)


def test_residuals_say_which_files_are_wanted_whole(site: ScanSite) -> None:
    wanted = {"type": "eq", "term": "kind", "value": "a"}
    both = {"type": "and", "left": wanted, "right": {"type": "lt", "term": "id", "value": 9}}
    unknown = {"type": "and", "left": wanted, "right": {"type": "eq", "term": "none", "value": 1}}

    def residuals(filter: Any) -> list[Any]:
        return [task["residual-filter"] for task in site.tasks("many", site.plan("many", filter))]

    assert residuals(wanted) == [True] * 21
    # Each file has one row, so that its bounds decide.
    assert residuals(both) == [True] * 3
    assert residuals(unknown) == [unknown] * 21
    assert residuals(False) == []
    tasks = site.tasks("many", site.plan("many"))
    assert len(tasks) == 63
    assert all("residual-filter" not in task for task in tasks)


def test_bloom_filters_rule_files_out(site: ScanSite) -> None:
    site.plan("many", {"type": "eq", "term": "id", "value": 20})
    with windrow.connect(site.url, token=site.admin) as client:
        plan = next(iter(client.past_plans(table="mine.many")))

    assert plan.summary is not None
    assert plan.summary.files_planned == 1
    assert plan.summary.files_pruned_by_statistics == 62


def test_a_limit_needs_few_files(site: ScanSite) -> None:
    exact = {"type": "eq", "term": "kind", "value": "a"}
    inexact = {"type": "not-eq", "term": "kind", "value": "a"}

    assert len(site.tasks("many", site.plan("many", exact, **{"min-rows-requested": 2}))) == 2
    assert len(site.tasks("many", site.plan("many", **{"min-rows-requested": 5}))) == 5
    # Some engines drop rows that others keep.
    assert len(site.tasks("many", site.plan("many", inexact, **{"min-rows-requested": 2}))) == 42


def test_a_long_plan_comes_in_pages_of_its_snapshot(site: ScanSite) -> None:
    plan = site.plan("many")

    assert plan["file-scan-tasks"] == []
    assert len(plan["plan-tasks"]) == 4
    files = [task["data-file"]["file-path"] for task in site.tasks("many", plan)]
    assert len(set(files)) == len(files) == 63
    again = site.post(f"{PLAN.format('many')}/{plan['plan-id']}", None, method="GET").json()
    assert site.tasks("many", again) == site.tasks("many", plan)
    gone = site.post(f"{PLAN.format('many')}/{plan['plan-id']}", None, method="DELETE")
    assert gone.status_code == 204
    assert not gone.content


def test_partition_values_are_single_values_of_iceberg(site: ScanSite) -> None:
    files = {
        task["data-file"]["file-path"].split("/")[-2]: task["data-file"]
        for task in site.tasks("days", site.plan("days"))
    }

    assert files["ds=2026-11-01"]["partition"] == ["2026-11-01"]
    null = files["ds=__HIVE_DEFAULT_PARTITION__"]
    assert null["partition"] == [None]
    assert null["record-count"] == 2
    assert null["file-size-in-bytes"] == Path(null["file-path"]).stat().st_size
    assert (null["file-format"], null["content"], null["spec-id"]) == ("parquet", "data", 0)


def test_another_callers_plans_and_tasks_do_not_exist(site: ScanSite) -> None:
    plan = site.plan("many")

    def outcome(path: str, body: Any, **more: Any) -> tuple[int, str]:
        answer = site.post(path, body, **more)
        return answer.status_code, answer.json()["error"]["type"]

    no_plan, no_task = (404, "NoSuchPlanIdException"), (404, "NoSuchPlanTaskException")
    no_table = (404, "NoSuchTableException")
    task, path = {"plan-task": plan["plan-tasks"][0]}, f"{PLAN.format('many')}/{plan['plan-id']}"
    for method in ("GET", "DELETE"):
        assert outcome(path, None, method=method, token=site.others) == no_plan
        assert outcome(path.replace("many", "days"), None, method=method) == no_plan
        assert outcome(f"{PLAN.format('many')}/{'x' * 40}", None, method=method) == no_plan
    assert outcome(TASKS.format("many"), task, token=site.others) == no_task
    assert outcome(TASKS.format("days"), task) == no_task
    assert outcome(TASKS.format("many"), {"plan-task": plan["plan-id"]}) == no_task
    assert outcome(TASKS.format("many"), {"plan-task": task["plan-task"][:-1]}) == no_task
    other = "/iceberg/v1/namespaces/other/tables/t"
    assert outcome(f"{other}/plan", {}) == no_table
    assert outcome(f"{other}$kind='a'", None, method="GET") == no_table
    assert outcome(f"{other}/tasks", task) == no_table
    assert outcome(f"{other}/plan/{plan['plan-id']}", None, method="GET") == no_table
    assert outcome(f"{other}/plan", {"start-snapshot-id": 1, "end-snapshot-id": 2}) == no_table


def test_pages_of_a_table_that_has_gone_do_not_exist(site: ScanSite) -> None:
    with windrow.connect(site.url, token=site.admin) as client:
        definition = client.table("mine.many").definition
        client.put_table("mine.gone", definition)
        client.refresh("mine.gone")
        task = {"plan-task": site.plan("gone")["plan-tasks"][0]}
        client.delete_table("mine.gone")
        answer = site.post(TASKS.format("gone"), task)
        assert answer.json()["error"]["type"] == "NoSuchPlanTaskException"
        client.put_table("mine.gone", definition)
        client.refresh("mine.gone")
        answer = site.post(TASKS.format("gone"), task)
        assert answer.json()["error"]["type"] == "NoSuchPlanTaskException"
        client.delete_table("mine.gone")


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"filter": 5}, 400, "no predicate"),
        ({"snapshot-id": "x"}, 400, "snapshot-id"),
        ({"snapshot-id": 999}, 404, "no snapshot 999"),
        ({"start-snapshot-id": 1, "end-snapshot-id": 2}, 406, "between two snapshots"),
        (
            {"filter": {"type": "in", "term": "name", "values": ["x" * 1000] * 70}},
            406,
            "more than 65,536 characters: let the engine plan",
        ),
        ([], 400, "body"),
    ],
)
def test_what_cannot_be_planned_is_refused(
    site: ScanSite, body: Any, status: int, words: str
) -> None:
    answer = site.post(PLAN.format("many"), body)

    assert answer.status_code == status
    assert words in answer.json()["error"]["message"]


@pytest.mark.parametrize("levels", [100, 400, 10_000])
def test_filters_nested_too_deeply_are_refused_before_they_are_decoded(
    site: ScanSite, levels: int
) -> None:
    text = '{"filter":' + '{"type":"not","child":' * levels + "true" + "}" * levels + "}"
    headers = {"Authorization": f"Bearer {site.mine}", "Content-Type": "application/json"}

    answer = site.http.post(PLAN.format("many"), content=text, headers=headers)

    assert answer.status_code in (400, 413)
    assert "levels" in answer.json()["error"]["message"]


def test_a_client_that_misreads_plans_is_told_to_plan_itself(site: ScanSite) -> None:
    engine = "PyIceberg/0.12.0"

    def config(name: str, engine: str) -> Any:
        path = PLAN.format(name).removesuffix("/plan")
        return site.post(path, None, engine=engine, method="GET").json()["config"]

    for name in ("days", "nulls"):
        answer = site.post(PLAN.format(name), {}, engine=engine)
        assert answer.status_code == 406
        assert "`scan-planning-mode` is `client`" in answer.json()["error"]["message"]
        assert site.post(PLAN.format(name), {}, engine="other/1").status_code == 200
    assert config("days", engine) == {"scan-planning-mode": "client"}
    assert config("days", "other/1") == config("many", engine) == {}
    wanted = {"filter": {"type": "eq", "term": "kind", "value": "a"}}
    assert site.post(PLAN.format("nulls"), wanted, engine=engine).status_code == 200


def test_the_history_says_which_engine_planned_what(site: ScanSite) -> None:
    filter = {"type": "eq", "term": "kind", "value": "b"}
    site.post(PLAN.format("many"), {"filter": filter}, engine="duckdb/1.5.5")
    with windrow.connect(site.url, token=site.mine) as client:
        plan = next(iter(client.past_plans(table="mine.many")))

    assert plan.engine == "duckdb/1.5.5"
    assert plan.principal == "mine"
    assert json.loads(plan.filter or "") == {"op": "eq", "column": "kind", "value": "b"}
    assert plan.summary is not None
    assert plan.summary.files_total == 63
    assert plan.summary.files_planned == plan.summary.row_count == 21
    assert plan.summary.files_pruned_by_manifest + plan.summary.files_pruned_by_partition == 42
    assert plan.expires_at == plan.created_at


CONDITIONS_OF_SPARK = {
    "many": [
        "true",
        "kind = 'a'",
        "id IN (1, 2, 50) OR name IS NULL",
        "n <> 1 AND name LIKE 'name-2%'",
        "day = DATE'2026-11-05'",
        "at < TIMESTAMP'2026-11-01 12:10:00Z'",
        "price >= 3.5",
        "share > 10",
        "NOT id < 30",
    ],
    "days": ["true", "ds IS NULL", "ds = DATE'2026-11-01'", "ds <> DATE'2026-11-02'"],
    "nulls": ["kind IS NULL", "kind <> 'b'"],
    "deleted": ["true", "kind = 'b'", "id < 50 AND n = 1", "id IN (3, 4, 5, 100)"],
}


@pytest.mark.nightly
def test_spark_with_icebergs_runtime_reads_the_same_rows_whoever_plans(site: ScanSite) -> None:
    questions = [
        (f"mine.{name}", condition)
        for name, conditions in CONDITIONS_OF_SPARK.items()
        for condition in conditions
    ]

    check_same_rows(site, questions)

    with windrow.connect(site.url, token=site.admin) as reader:
        engines = {plan.engine for plan in islice(reader.past_plans(table="mine.days"), 20)}
    assert any(str(engine).startswith("Apache Iceberg 1.12.0") for engine in engines)
