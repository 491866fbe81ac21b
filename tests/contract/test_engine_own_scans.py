"""Scans of registered Iceberg tables that the catalog plans for engines, from their own metadata."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg import expressions as ice
from pyiceberg.table import Table
from pyiceberg.table.puffin import PuffinFile
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    TruncateTransform,
)
from pyiceberg.types import StringType

import windrow
from tests.programs import iceberg_writer
from tests.support.engines.filters import conditions_on, filters_of
from tests.support.engines.iceberg_runtime import check_same_rows, run_with_iceberg
from tests.support.engines.scan_sites import PLAN, TASKS, ScanSite, scan_site
from tests.support.laws import a_few, examples
from tests.support.tables.iceberg import catalog_in, published_table
from tests.support.tables.iceberg_deletes import delete_by_vector, delete_equal, delete_positions
from windrow_service.iceberg import scans

pytestmark = pytest.mark.slow

_MOST_TASKS = 7
_DAY, _AT = date(2026, 11, 1), datetime(2026, 11, 1, 12, tzinfo=timezone.utc)
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "name": pa.string(),
        "day": pa.date32(),
        "at": pa.timestamp("us", tz="UTC"),
        "price": pa.decimal128(9, 2),
        "kind": pa.string(),
    }
)
# Which column of the first snapshots has which name now.
RENAMED = {"name": "title"}
PUBLISHED = (
    "iceberg_alltypes_part",
    "iceberg_legacy_partition_schema_evolution",
    "iceberg_migrated_alter_test",
    "iceberg_spark_compaction_with_dangling_delete",
    "iceberg_timestamptz_part",
    "iceberg_v2_delete_positional",
    "iceberg_v2_null_delete_record",
    "iceberg_v2_partitioned_position_deletes",
    "iceberg_v2_positional_not_all_data_files_have_delete_files",
    "iceberg_v3_default_value",
    "iceberg_v3_row_lineage",
    "test_complex_default",
    "test_default_part",
)


def rows_of(first: int, count: int = 6, names: list[str] | None = None) -> pa.Table:
    """Return rows; some values are null."""
    numbers = range(first, first + count)
    table = pa.table(
        {
            "id": list(numbers),
            "name": [None if number % 7 == 3 else f"name-{number % 5}" for number in numbers],
            "day": [_DAY + timedelta(days=number % 9) for number in numbers],
            "at": [_AT + timedelta(hours=number % 11) for number in numbers],
            "price": [Decimal(number).scaleb(-1).quantize(Decimal("0.01")) for number in numbers],
            "kind": ["ab"[number % 2] for number in numbers],
        },
        SCHEMA,
    )
    return table if names is None else table.rename_columns(names)


def evolve(folder: Path) -> Table:
    """Write a table of four specs and two schemas, with deleted rows."""
    table = catalog_in(folder.parent / f"{folder.name}_catalog").create_table(
        "ns.t", SCHEMA, location=f"file://{folder}"
    )
    for first in (0, 10, 20):
        table.append(rows_of(first))
    paths = sorted(task.file.file_path for task in table.scan().plan_files())
    delete_positions(table, {paths[0]: [0, 2]})
    delete_positions(table, {paths[0]: [1], paths[1]: [3]})
    with table.update_spec() as spec:
        spec.add_field("kind", IdentityTransform())
        spec.add_field("id", BucketTransform(3))
    table.append(rows_of(30))
    with table.update_schema() as schema:
        schema.rename_column("name", "title")
    with table.update_schema() as schema:
        schema.add_column("name", StringType())
    with table.update_spec() as spec:
        spec.remove_field("kind")
        spec.add_field("day", DayTransform())
        spec.add_field("title", TruncateTransform(5))
    now = rows_of(40).rename_columns([RENAMED.get(name, name) for name in SCHEMA.names])
    now = now.set_column(1, "title", pa.array(["t"] * len(now)))
    table.append(now.append_column("name", pa.array(["new"] * len(now))))
    with table.update_spec() as spec:
        spec.remove_field("day_day")
        spec.add_field("at", HourTransform())
    table.append(now.append_column("name", pa.array([None] * len(now), pa.string())))
    table.delete("id = 41")
    return table


def numbered(folder: Path, count: int, per_file: int = 3) -> Table:
    """Write a table of numbers, of so many files."""
    table = catalog_in(folder.parent / f"{folder.name}_catalog").create_table(
        "ns.t", pa.schema([("id", pa.int64())]), location=f"file://{folder}"
    )
    for number in range(count):
        first = number * per_file
        table.append(pa.table({"id": range(first, first + per_file)}))
    return table


def register(site: ScanSite, name: str, location: Path) -> None:
    with windrow.connect(site.url, token=site.admin) as client:
        client.register_table(name, str(location), "iceberg")
        client.refresh(name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("own")


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[ScanSite]:
    with scan_site(folder, _MOST_TASKS) as one:
        yield one


@pytest.fixture(scope="module")
def evolved(site: ScanSite, folder: Path) -> tuple[Table, Table]:
    """Return the evolved table, planned by the coordinator and by PyIceberg."""
    evolve(folder / "evolved")
    register(site, "mine.evolved", folder / "evolved")
    return site.by_server.load_table("mine.evolved"), site.by_client.load_table("mine.evolved")


@pytest.fixture(scope="module")
def files(site: ScanSite, folder: Path) -> tuple[Table, Table]:
    """Return a table of twelve files with deletion vectors, position deletes, and neither."""
    table = numbered(folder / "files", 12)
    paths = sorted(task.file.file_path for task in table.scan().plan_files())
    for path in paths[:8]:
        delete_positions(table, {path: [0]})
    delete_by_vector(table, {path: [0, 1] for path in paths[4:6]})
    register(site, "mine.files", folder / "files")
    return site.by_server.load_table("mine.files"), site.by_client.load_table("mine.files")


def cells(rows: pa.Table) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows.to_pylist())


def planned(table: Table, snapshot_id: int | None = None, **more: Any) -> dict[str, set[str]]:
    """Return the delete files of each data file."""
    tasks = list(table.scan(snapshot_id=snapshot_id, **more).plan_files())
    deletes = {task.file.file_path: {one.file_path for one in task.delete_files} for task in tasks}
    assert len(deletes) == len(tasks)
    return deletes


_CONDITIONS = {
    "id": st.integers(-2, 50),
    "name": st.sampled_from(["name-1", "name-4", "name", "new", "z"]),
    "day": st.integers(0, 9).map(lambda days: _DAY + timedelta(days=days)),
    "at": st.integers(0, 12).map(lambda hours: _AT + timedelta(hours=hours)),
    "price": st.integers(0, 500).map(lambda cents: Decimal(cents).scaleb(-2)),
    "kind": st.sampled_from(["a", "b", "ab", ""]),
}
FILTERS = filters_of(
    st.sampled_from(list(_CONDITIONS)).flatmap(
        lambda name: conditions_on(name, _CONDITIONS[name], is_text=name in ("name", "kind"))
    ),
    4,
)
FEW = 16


@examples(FEW, deadline=None)
@given(FILTERS, st.data())
def test_rows_of_every_snapshot_are_the_same_whoever_plans(
    evolved: tuple[Table, Table], filter: ice.BooleanExpression, data: st.DataObject
) -> None:
    by_server, by_client = evolved
    ids = [None, *(one.snapshot_id for one in by_client.snapshots())]
    snapshot_id = data.draw(st.sampled_from(ids))
    scans = [one.scan(filter, snapshot_id=snapshot_id) for one in evolved]

    rows = [cells(scan.to_arrow()) for scan in scans]

    assert rows[0] == rows[1]
    own = planned(by_client, snapshot_id, row_filter=filter)
    assert planned(by_server, snapshot_id, row_filter=filter).items() <= own.items()


def test_every_snapshot_has_the_files_and_deletes_that_pyiceberg_plans(
    evolved: tuple[Table, Table], files: tuple[Table, Table]
) -> None:
    for by_server, by_client in (evolved, files):
        for snapshot in by_client.snapshots():
            id_ = snapshot.snapshot_id
            assert planned(by_server, id_).keys() == planned(by_client, id_).keys()
            if id_ != by_client.metadata.current_snapshot_id:
                # PyIceberg keeps position deletes of files that have a vector.
                assert planned(by_server, id_) == planned(by_client, id_)


@pytest.mark.parametrize("name", a_few(PUBLISHED, 3))
def test_published_tables_have_the_rows_that_pyiceberg_plans(
    site: ScanSite, folder: Path, name: str
) -> None:
    register(site, f"mine.{name}", published_table(name, folder))
    server, client = (
        one.load_table(f"mine.{name}").scan() for one in (site.by_server, site.by_client)
    )
    config = site.post(f"/iceberg/v1/namespaces/mine/tables/{name}", None, method="GET").json()

    if needs_own_planning(site, name):
        assert site.plan(name)["status"] == "completed"
        return

    assert config["config"] == {}
    assert cells(server.to_arrow()) == cells(client.to_arrow())


def needs_own_planning(site: ScanSite, name: str) -> bool:
    """Return whether PyIceberg is refused plans of a table."""
    engine = "PyIceberg/0.12.0"
    answer = site.post(PLAN.format(name), {}, engine=engine)
    assert answer.status_code in (200, 406)
    return answer.status_code == 406


def test_pages_have_the_files_and_deletes_of_the_whole_plan(
    site: ScanSite, files: tuple[Table, Table]
) -> None:
    plan = site.plan("files")
    answers = site.answers("files", plan)

    assert plan["file-scan-tasks"] == []
    assert len(plan["plan-tasks"]) > 1
    of_pages = {}
    for answer in answers:
        named = set()
        for task in answer["file-scan-tasks"]:
            places = task.get("delete-file-references", ())
            named.update(places)
            deletes = [answer["delete-files"][at] for at in places]
            of_pages[task["data-file"]["file-path"]] = {one["file-path"] for one in deletes}
        assert named == set(range(len(answer["delete-files"])))
    assert of_pages == planned(files[0])
    again = site.post(f"{PLAN.format('files')}/{plan['plan-id']}", None, method="GET").json()
    assert site.tasks("files", again) == site.tasks("files", plan)


def test_deletion_vectors_are_named_alone_and_by_their_place(
    site: ScanSite, files: tuple[Table, Table]
) -> None:
    vectors = {}
    for answer in site.answers("files", site.plan("files")):
        for task in answer["file-scan-tasks"]:
            deletes = [answer["delete-files"][at] for at in task.get("delete-file-references", ())]
            for one in deletes:
                if one["file-format"] == "puffin":
                    assert deletes == [one]
                    assert one["referenced-data-file"] == task["data-file"]["file-path"]
                    vectors[one["referenced-data-file"]] = one

    assert len(vectors) == 2
    for path, vector in vectors.items():
        puffin = Path(vector["file-path"].removeprefix("file://")).read_bytes()
        assert vector["file-size-in-bytes"] == len(puffin)
        (blob,) = (
            blob
            for blob in PuffinFile(puffin).footer.blobs
            if blob.properties["referenced-data-file"] == path
        )
        assert (vector["content-offset"], vector["content-size-in-bytes"]) == (
            blob.offset,
            blob.length,
        )
        assert vector["record-count"] == int(blob.properties["cardinality"]) == 2


def test_a_limit_counts_no_rows_of_files_with_deleted_ones(
    site: ScanSite, files: tuple[Table, Table]
) -> None:
    deleted = {path for path, deletes in planned(files[0]).items() if deletes}

    tasks = site.tasks("files", site.plan("files", **{"min-rows-requested": 4}))

    assert len(tasks) == 2
    assert not {task["data-file"]["file-path"] for task in tasks} & deleted


def test_a_new_commit_is_planned_at_once_without_reading_older_manifests_again(
    site: ScanSite, folder: Path
) -> None:
    table = numbered(folder / "growing", 3)
    register(site, "mine.growing", folder / "growing")
    assert len(site.tasks("growing", site.plan("growing"))) == 3
    older = table.current_snapshot()
    assert older is not None
    table.append(pa.table({"id": [99]}))
    for manifest in older.manifests(table.io):
        Path(manifest.manifest_path.removeprefix("file://")).unlink()

    assert len(site.tasks("growing", site.plan("growing"))) == 4
    assert (
        len(site.tasks("growing", site.plan("growing", **{"snapshot-id": older.snapshot_id}))) == 3
    )


def test_callers_at_the_same_time_share_one_read_of_each_manifest(
    site: ScanSite, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbered(folder / "shared", 3)
    register(site, "mine.shared", folder / "shared")
    plain, read = scans.planned_files, []

    def counted(folders: Any, manifests: Any, executor: Any) -> Any:
        read.extend(one.task.path for one in manifests)
        return plain(folders, manifests, executor)

    monkeypatch.setattr(scans, "planned_files", counted)
    with ThreadPoolExecutor(6) as threads:
        plans = list(threads.map(lambda _: site.plan("shared")["file-scan-tasks"], range(6)))

    assert all(plan == plans[0] for plan in plans)
    assert len(plans[0]) == 3
    assert len(set(read)) == len(read) == 3


def test_tables_that_do_not_fit_into_the_cache_are_planned_alike(
    files: tuple[Table, Table], folder: Path, tmp_path: Path
) -> None:
    cached = planned(files[0])
    with scan_site(folder, _MOST_TASKS, manifest_cache_bytes=0, state_dir=tmp_path) as small:
        register(small, "mine.uncached", folder / "files")

        uncached = planned(small.by_server.load_table("mine.uncached"))

    assert uncached == cached


def test_rows_deleted_by_equality_are_named_with_their_columns_and_by_sequence(
    site: ScanSite, folder: Path
) -> None:
    table = numbered(folder / "equal", 2)
    register(site, "mine.equal", folder / "equal")
    delete_equal(table, "id", pa.array([1, 4]))
    table.append(pa.table({"id": [1, 2]}))

    (answer,) = site.answers("equal", site.plan("equal"))

    (delete,) = answer["delete-files"]
    assert (delete["content"], delete["equality-ids"]) == ("equality-deletes", [1])
    assert (delete["spec-id"], delete["partition"], delete["record-count"]) == (0, [], 2)
    # The last file is younger than the deletes.
    counts = [len(task.get("delete-file-references", ())) for task in answer["file-scan-tasks"]]
    rows = [task["data-file"]["record-count"] for task in answer["file-scan-tasks"]]
    assert sorted(zip(rows, counts, strict=True)) == [(2, 0), (3, 1), (3, 1)]
    first = {"snapshot-id": table.snapshots()[0].snapshot_id}
    assert site.plan("equal", **first)["delete-files"] == []


def test_partition_values_are_those_of_each_files_own_spec(
    site: ScanSite, evolved: tuple[Table, Table]
) -> None:
    by_spec: dict[int, list[list[Any]]] = {}
    for task in site.tasks("evolved", site.plan("evolved")):
        file = task["data-file"]
        by_spec.setdefault(file["spec-id"], []).append(file["partition"])

    types = {
        id_: [str(type(value).__name__) for value in values[0]]
        for id_, values in sorted(by_spec.items())
    }
    specs = evolved[1].metadata.specs()
    assert types == {
        id_: [_JSON[str(field.transform).partition("[")[0]] for field in specs[id_].fields]
        for id_ in types
    }
    assert len(types) == 4
    days = {value for values in by_spec.values() for one in values for value in one}
    assert "2026-11-05" in days


_JSON = {"identity": "str", "bucket": "int", "day": "str", "truncate": "str", "hour": "int"}


def test_what_pyiceberg_would_misread_it_plans_itself(site: ScanSite, folder: Path) -> None:
    table = catalog_in(folder / "dated_catalog").create_table(
        "ns.t", pa.schema([("d", pa.date32())]), location=f"file://{folder}/dated"
    )
    with table.update_spec() as spec:
        spec.add_field("d", IdentityTransform())
    table.append(pa.table({"d": [_DAY, None]}))
    register(site, "mine.dated", folder / "dated")
    path, engine = PLAN.format("dated"), "PyIceberg/0.12.0"

    refused = site.post(path, {}, engine=engine)
    configs = [
        site.post(path.removesuffix("/plan"), None, engine=one, method="GET").json()["config"]
        for one in (engine, "other/1")
    ]

    assert refused.status_code == 406
    assert "`scan-planning-mode` is `client`" in refused.json()["error"]["message"]
    assert configs == [{"scan-planning-mode": "client"}, {}]
    partitions = [
        task["data-file"]["partition"] for task in site.tasks("dated", site.plan("dated"))
    ]
    assert sorted(partitions, key=str) == [["2026-11-01"], [None]]


def test_a_table_without_a_snapshot_has_no_files(site: ScanSite, folder: Path) -> None:
    numbered(folder / "empty", 0)
    register(site, "mine.empty", folder / "empty")

    plan = site.plan("empty")

    assert plan["file-scan-tasks"] == plan["plan-tasks"] == []


def test_snapshots_and_plans_that_are_gone_do_not_exist(site: ScanSite, folder: Path) -> None:
    table = numbered(folder / "expired", 9)
    register(site, "mine.expired", folder / "expired")
    plan = site.plan("expired")
    task = {"plan-task": plan["plan-tasks"][0]}
    metadata = Path(table.metadata_location.removeprefix("file://"))
    content = json.loads(metadata.read_text())
    last = content["snapshots"][-2]["snapshot-id"]
    content["refs"]["main"]["snapshot-id"] = content["current-snapshot-id"] = last
    del content["snapshots"][-1], content["snapshot-log"][-1]
    # Its name is not the number of a snapshot.
    content["refs"]["7"] = {"snapshot-id": last, "type": "tag"}
    metadata.with_name("00099-next.metadata.json").write_text(json.dumps(content))

    outcomes = [
        (answer.status_code, answer.json()["error"]["type"])
        for answer in (
            site.post(TASKS.format("expired"), task),
            site.post(f"{PLAN.format('expired')}/{plan['plan-id']}", None, method="GET"),
            site.post(PLAN.format("expired"), {"snapshot-id": 7}),
        )
    ]

    assert outcomes == [
        (404, "NoSuchPlanTaskException"),
        (404, "NoSuchPlanIdException"),
        (404, "NotFoundException"),
    ]


def test_another_callers_plans_and_other_tables_do_not_exist(
    site: ScanSite, folder: Path, files: tuple[Table, Table]
) -> None:
    register(site, "other.files", folder / "files")
    plan = site.plan("files")
    task = {"plan-task": plan["plan-tasks"][0]}
    register(site, "mine.same", folder / "files")

    def outcome(path: str, body: Any, **more: Any) -> tuple[int, str]:
        answer = site.post(path, body, **more)
        return answer.status_code, answer.json()["error"]["type"]

    other = PLAN.format("files").replace("/mine/", "/other/")
    no_task = (404, "NoSuchPlanTaskException")
    assert outcome(other, {}) == (404, "NoSuchTableException")
    assert outcome(TASKS.format("files"), task, token=site.others) == no_task
    assert outcome(TASKS.format("same"), task) == no_task
    path = f"{PLAN.format('files')}/{plan['plan-id']}"
    assert outcome(path, None, method="GET", token=site.others) == (404, "NoSuchPlanIdException")


def test_manifests_that_cannot_be_served_are_refused_with_the_remedy(
    site: ScanSite, folder: Path, tmp_path: Path
) -> None:
    table = numbered(folder / "harmed", 1)
    register(site, "mine.harmed", folder / "harmed")
    snapshot = table.current_snapshot()
    assert snapshot is not None
    (manifest,) = snapshot.manifests(table.io)
    path = Path(manifest.manifest_path.removeprefix("file://"))
    content = path.read_bytes()
    path.write_bytes(content[:-20])

    answer = site.post(PLAN.format("harmed"), {})

    assert answer.status_code == 406
    message = answer.json()["error"]["message"]
    assert path.name in message
    assert "let the engine plan" in message
    path.write_bytes(content)
    assert len(site.tasks("harmed", site.plan("harmed"))) == 1
    filter = {"filter": {"type": "eq", "term": "id", "value": 1}, "start-snapshot-id": 1}
    assert site.post(PLAN.format("harmed"), filter).status_code == 406


def test_the_history_says_what_was_ruled_out(site: ScanSite, evolved: tuple[Table, Table]) -> None:
    total = len(planned(evolved[0]))
    site.plan("evolved", {"type": "eq", "term": "id", "value": 32})
    with windrow.connect(site.url, token=site.mine) as client:
        plan = next(iter(client.past_plans(table="mine.evolved")))

    assert plan.summary is not None
    assert plan.snapshot_id == evolved[1].metadata.current_snapshot_id
    assert plan.summary.files_total == total
    assert plan.summary.files_planned == 1
    ruled_out = plan.summary.files_pruned_by_partition + plan.summary.files_pruned_by_statistics
    assert ruled_out == total - 1


@pytest.mark.nightly
def test_tables_of_icebergs_own_runtime_have_the_same_rows_whoever_plans(
    site: ScanSite, folder: Path
) -> None:
    run_with_iceberg(iceberg_writer.__file__, str(folder / "java"))
    conditions = (
        "true",
        "id < 30",
        "id = 61 OR name = 'n2'",
        "at < TIMESTAMP'2026-11-02 00:00:00Z'",
    )
    questions = []
    for name in ("merged", "vectors"):
        register(site, f"mine.{name}", folder / "java" / "ns" / name)
        by_client = site.by_client.load_table(f"mine.{name}")
        by_server = site.by_server.load_table(f"mine.{name}")
        for snapshot in by_client.snapshots():
            id_ = snapshot.snapshot_id
            rows = [cells(one.scan(snapshot_id=id_).to_arrow()) for one in (by_server, by_client)]
            assert rows[0] == rows[1]
            for row_filter in ("id < 30", "kind = 'k1' and id > 5", "name = 'n2'", "price < 20"):
                rows = [
                    cells(one.scan(row_filter, snapshot_id=id_).to_arrow())
                    for one in (by_server, by_client)
                ]
                assert rows[0] == rows[1]
        questions += [(f"mine.{name}", condition) for condition in conditions]
    # PyIceberg does not read equality deletes.
    numbers = numbered(folder / "equality", 3)
    register(site, "mine.equality", folder / "equality")
    delete_equal(numbers, "id", pa.array([4, 7]))
    numbers.append(pa.table({"id": [4]}))
    questions.append(("mine.equality", "true"))

    check_same_rows(site, questions)
