"""Tables on a real HDFS: listed, planned and read as Spark reads them, and errors that say why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.servers import embedded
from tests.support.servers.hadoop_settings import write_settings
from tests.support.servers.hdfs import HOSTS, Hdfs, hdfs_cluster
from tests.support.tables import hive
from windrow.spark import recent_scans
from windrow_jobs.compact import compact
from windrow_jobs.errors import NoConsentError
from windrow_jobs.hosts import hosts_of
from windrow_spark.errors import TaskFailedError
from windrow_spark.failures import plain_errors
from windrow_tables.merging.task import Job, Outcome, merge_pieces

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

# Of a table of three days, with two files each.
ROWS = 60


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    with hdfs_cluster(tmp_path_factory.mktemp("hdfs")) as cluster:
        yield cluster


@pytest.fixture
def client(hdfs: Hdfs, tmp_path: Path) -> Iterator[windrow.Client]:
    locations = (hdfs.uri, "hdfs://localhost:1", "hdfs://nowhere.invalid:8020")
    with embedded.client(tmp_path / "state", allowed_locations=locations) as client:
        yield client


def test_all_rows_are_read_as_spark_reads_them(
    spark: SparkSession, client: windrow.Client, hdfs: Hdfs, tmp_path: Path
) -> None:
    folder = hive.write_events(tmp_path / "events", files_per_day=3)
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "x.parquet").write_bytes(b"not yet")
    location = hdfs.upload(folder, "/tables/events")
    client.register_table("sales.events", location)

    client.refresh("sales.events")
    rows = client.read(spark, "sales.events", filter="ds <> '2026-11-02'")

    assert client.table("sales.events").current_snapshot.file_count == 9
    theirs = spark.read.parquet(location).where("ds <> '2026-11-02'")
    assert sorted(map(str, rows.collect())) == sorted(
        map(str, theirs.select(*rows.columns).collect())
    )
    assert client.plan("sales.events", filter="id < 0").summary.files_planned == 0


def test_names_of_files_and_folders_may_hold_any_characters(
    spark: SparkSession, client: windrow.Client, hdfs: Hdfs, tmp_path: Path
) -> None:
    names = ["a b", "50%", "p%25q", "ü", "x+y", "#1", "q?"]
    for number, name in enumerate(names):
        part = tmp_path / "odd" / f"day={name}" / f"{name}.parquet"
        part.parent.mkdir(parents=True)
        pq.write_table(pa.table({"id": [number]}), part)
    client.register_table(
        "sales.odd",
        hdfs.upload(tmp_path / "odd", "/tables/odd ü"),
        partition_columns={"day": "string"},
    )
    client.refresh("sales.odd")

    rows = client.read(spark, "sales.odd").collect()

    # Spark reads the values of folders as they are escaped in their names.
    expected = [name.replace("%25", "%") for name in names]
    assert sorted((row["id"], row["day"]) for row in rows) == list(enumerate(expected))


def test_a_file_that_was_replaced_fails_the_query_by_its_name(
    spark: SparkSession, client: windrow.Client, hdfs: Hdfs, tmp_path: Path
) -> None:
    folder = hive.write_events(tmp_path / "events")
    location = hdfs.upload(folder, "/tables/replaced")
    client.register_table("sales.replaced", location)
    client.refresh("sales.replaced")
    path = sorted(folder.rglob("*.parquet"))[0]
    pq.write_table(pq.read_table(path).slice(1), path)
    name = path.relative_to(folder).as_posix()
    hdfs.files.copyFromLocalFile(hdfs.path(str(path)), hdfs.path(f"/tables/replaced/{name}"))

    changed = f"{path.name}.*changed"
    with pytest.raises(TaskFailedError, match=changed), plain_errors():
        client.read(spark, "sales.replaced").collect()


def test_large_files_are_read_by_sparks_reader_and_others_in_groups(
    spark: SparkSession, client: windrow.Client, hdfs: Hdfs, tmp_path: Path
) -> None:
    for number in range(4):
        part = tmp_path / "mixed" / f"day={number % 2}" / f"part {number} ü.parquet"
        part.parent.mkdir(parents=True, exist_ok=True)
        type_ = pa.int64() if number < 2 else pa.int32()
        pq.write_table(pa.table({"id": pa.array([number, 7], type_)}), part)
    location = hdfs.upload(tmp_path / "mixed", "/tables/mixed %25")
    client.register_table("sales.mixed", location)
    client.refresh("sales.mixed")

    rows = client.read(spark, "sales.mixed", reader="native")

    assert sorted((row["id"], row["day"]) for row in rows.collect()) == sorted(
        (id_, number % 2) for number in range(4) for id_ in (number, 7)
    )
    assert recent_scans()[0].native_files == 2
    path = sorted((tmp_path / "mixed" / "day=0").iterdir())[0]
    pq.write_table(pa.table({"id": [1, 8]}), path)
    name = path.relative_to(tmp_path / "mixed").as_posix()
    hdfs.files.copyFromLocalFile(hdfs.path(str(path)), hdfs.path(f"/tables/mixed %25/{name}"))
    changed = r"part 0 ü\.parquet' has changed since the plan was made: modification time"
    with pytest.raises(TaskFailedError, match=changed), plain_errors():
        rows.collect()


def test_the_hosts_of_files_are_those_of_their_blocks(
    spark: SparkSession, hdfs: Hdfs, tmp_path: Path
) -> None:
    folder = hive.write_events(tmp_path / "events", files_per_day=4)
    location = hdfs.upload(folder, "/tables/placed")
    paths = [path.relative_to(folder).as_posix() for path in folder.rglob("*.parquet")]

    hosts = hosts_of(spark, location, pa.chunked_array([paths])).to_pylist()

    for path, names in zip(paths, hosts, strict=True):
        status = hdfs.files.getFileStatus(hdfs.path(f"/tables/placed/{path}"))
        (block,) = hdfs.files.getFileBlockLocations(status, 0, status.getLen())
        assert [name.rpartition("/")[2] for name in names] == list(block.getHosts())
    assert {name.rpartition("/")[2] for names in hosts for name in names} <= set(HOSTS)


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("hdfs://localhost:1/t", "Connection refused"),
        ("hdfs://nowhere.invalid:8020/t", "no host 'nowhere.invalid'"),
    ],
)
def test_a_namenode_that_is_not_there_is_named(
    client: windrow.Client, location: str, reason: str
) -> None:
    client.register_table("sales.nowhere", location)

    with pytest.raises(windrow.errors.ProblemError, match=reason):
        client.refresh("sales.nowhere")


def test_a_folder_that_is_not_there_is_refused(client: windrow.Client, hdfs: Hdfs) -> None:
    client.register_table("sales.gone", f"{hdfs.uri}/tables/gone")

    with pytest.raises(windrow.errors.ProblemError, match="does not exist, or holds nothing"):
        client.refresh("sales.gone")


def test_a_folder_that_may_not_be_read_is_refused_with_the_namenodes_reason(
    client: windrow.Client,
    hdfs: Hdfs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    location = hdfs.upload(hive.write_events(tmp_path / "events"), "/tables/secret")
    permission = hdfs.jvm.org.apache.hadoop.fs.permission.FsPermission("700")
    hdfs.files.setPermission(hdfs.path("/tables/secret"), permission)
    monkeypatch.setenv("HADOOP_USER_NAME", "stranger")
    client.register_table("sales.secret", location)

    with pytest.raises(windrow.errors.ProblemError, match="Permission denied: user=stranger"):
        client.refresh("sales.secret")


@pytest.mark.nightly
def test_a_namenode_in_safe_mode_is_read(
    spark: SparkSession, client: windrow.Client, hdfs: Hdfs, tmp_path: Path
) -> None:
    location = hdfs.upload(hive.write_events(tmp_path / "events"), "/tables/safe")
    client.register_table("sales.safe", location)
    actions = hdfs.jvm.org.apache.hadoop.hdfs.protocol.HdfsConstants.SafeModeAction
    hdfs.files.setSafeMode(actions.SAFEMODE_ENTER)
    try:
        client.refresh("sales.safe")
        assert client.read(spark, "sales.safe").count() == ROWS
    finally:
        hdfs.files.setSafeMode(actions.SAFEMODE_LEAVE)


@pytest.mark.nightly
def test_blocks_of_a_datanode_that_dies_are_read_from_another(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "cluster").mkdir()
    with hdfs_cluster(tmp_path / "cluster", replication=2) as hdfs:
        location = hdfs.upload(hive.write_events(tmp_path / "events"), "/tables/events")
        with embedded.client(tmp_path / "state", allowed_locations=(hdfs.uri,)) as client:
            client.register_table("sales.events", location)
            client.refresh("sales.events")
            hdfs.cluster.stopDataNode(0)

            assert client.read(spark, "sales.events").count() == ROWS
            assert len(client.read(spark, "sales.events").collect()) == ROWS


@pytest.mark.nightly
def test_another_namenode_of_a_name_service_takes_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cluster").mkdir()
    with hdfs_cluster(tmp_path / "cluster", has_standby=True) as hdfs:
        hdfs.upload(hive.write_events(tmp_path / "events"), "/tables/events")
        settings = {
            "fs.defaultFS": "hdfs://lake",
            "dfs.nameservices": "lake",
            "dfs.ha.namenodes.lake": "a,b",
            "dfs.namenode.rpc-address.lake.a": f"localhost:{hdfs.cluster.getNameNodePort(0)}",
            "dfs.namenode.rpc-address.lake.b": f"localhost:{hdfs.cluster.getNameNodePort(1)}",
        }
        for file in ("core-site.xml", "hdfs-site.xml"):
            write_settings(tmp_path / file, settings)
        monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
        allowed = ("hdfs://lake", "hdfs://default")
        with embedded.client(tmp_path / "state", allowed_locations=allowed) as client:
            client.register_table("sales.named", "hdfs://lake/tables/events")
            client.register_table("sales.default", "hdfs://default/tables/events")
            for table in ("sales.named", "sales.default"):
                client.refresh(table)
                assert client.scan(table).to_table().num_rows == ROWS
            hdfs.cluster.transitionToStandby(0)
            hdfs.cluster.transitionToActive(1)

            for table in ("sales.named", "sales.default"):
                assert not client.refresh(table, full=True).changed
                assert client.scan(table).to_table().num_rows == ROWS


def test_rows_are_written_and_compacted(
    spark: SparkSession, client: windrow.Client, hdfs: Hdfs
) -> None:
    location = f"{hdfs.uri}/tables/written {spark.sparkContext.applicationId}"
    hdfs.files.mkdirs(hdfs.path(location))
    client.register_table("sales.written", location, partition_columns={"day": "int"})
    rows = spark.range(60).selectExpr("id", "concat('n', id) AS name", "CAST(id % 3 AS INT) AS day")

    first = client.write(rows, "sales.written", target_rows=5)
    client.write(rows.where("day = 1"), "sales.written", "overwrite_partitions", target_rows=5)
    client.read(spark, "sales.written").createOrReplaceTempView("written")
    spark.sql("INSERT INTO written VALUES (100, 'n100', 2), (101, 'n101', 3)")

    with pytest.raises(NoConsentError, match="--readers-may-see-both"):
        compact(lambda: spark, client, "sales.written")
    done = compact(lambda: spark, client, "sales.written", readers_may_see_both=True)

    assert (first.rows, first.files) == (60, first.planned_files)
    # That of one row is alone in its partition.
    assert (done.files_after, done.left) == (3, {})
    assert len(spark.read.parquet(location).inputFiles()) == 4
    expected = sorted([*map(tuple, rows.collect()), (100, "n100", 2), (101, "n101", 3)])
    assert sorted(map(tuple, client.read(spark, "sales.written").collect())) == expected
    assert sorted(map(tuple, spark.read.parquet(location).collect())) == expected
    assert not client.refresh("sales.written", full=True).changed
    assert not hdfs.files.exists(hdfs.path(f"{location}/_windrow"))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("acls", "mode", "readers"),
    [((), 0o640, ()), (("user:ann:r--",), 0o640, ("ann",)), (("user:ann:r--", ""), 0o600, ())],
    ids=["mode", "acl", "one_acl"],
)
def test_merged_files_have_the_permissions_of_their_sources(
    hdfs: Hdfs,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    acls: tuple[str, ...],
    mode: int,
    readers: tuple[str, ...],
) -> None:
    fs, permission = hdfs.jvm.org.apache.hadoop.fs, hdfs.jvm.org.apache.hadoop.fs.permission
    for at in range(2):
        pq.write_table(pa.table({"id": [at]}), tmp_path / f"{at}")
    location = hdfs.upload(tmp_path, f"/tables/{request.node.callspec.id}")
    for at in range(2):
        path = fs.Path(f"{location}/{at}")
        hdfs.files.setPermission(path, permission.FsPermission("640"))
        hdfs.files.setOwner(path, None, "analysts")
        spec = acls[at % len(acls)] if acls else ""
        if spec:
            entries = hdfs.jvm.java.util.ArrayList()
            entries.add(permission.AclEntry.parseAclEntry(spec, True))
            hdfs.files.modifyAclEntries(path, entries)
    job = Job(location, f"{location}/_staging", [], 2**20, 1.0, 2**24)

    answers = merge_pieces(job, [(0, "", ["0", "1"])])

    ((path, rows, _),) = Outcome(*answers[0]).new_files
    merged = fs.Path(f"{location}/_staging/{path}")
    status = hdfs.files.getFileStatus(merged)
    assert (rows, status.getPermission().toShort()) == (2, mode)
    assert status.getGroup() == ("analysts" if mode == 0o640 else "supergroup")
    entries = hdfs.files.getAclStatus(merged).getEntries()
    assert tuple(one.getName() for one in entries if one.getName()) == readers


@pytest.mark.nightly
def test_a_table_in_a_mount_of_viewfs_is_the_one_behind_it(
    spark: SparkSession, hdfs: Hdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = {
        "fs.viewfs.mounttable.all.link./lake/mounted": f"{hdfs.uri}/mounted",
        "fs.viewfs.mounttable.all.link./lake/secret": f"{hdfs.uri}/secret",
        "fs.defaultFS": "viewfs://all",
    }
    write_settings(tmp_path / "core-site.xml", mounts)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    files = hive.write_events(tmp_path / "events", files_per_day=3)
    hdfs.upload(files, "/mounted/a b/events")
    allowed = "viewfs://all/lake/mounted"
    with embedded.client(tmp_path / "state", allowed_locations=(allowed,)) as client:
        client.register_table("sales.events", f"{allowed}/a b/events")
        client.register_table("sales.same", "hdfs:///lake/mounted/a b/events")
        client.refresh("sales.events")
        with pytest.raises(windrow.errors.ProblemError, match="not under an allowed prefix"):
            client.register_table("sales.secret", "viewfs://all/lake/secret")

        def rows() -> list[str]:
            return sorted(map(str, client.read(spark, "sales.events").collect()))

        def rows_of_spark() -> list[str]:
            # Hadoop's own mounts, by its own settings.
            theirs = spark.read.options(**mounts).parquet(f"{allowed}/a b/events")
            return sorted(
                map(str, theirs.select(*client.read(spark, "sales.events").columns).collect())
            )

        homes = {client.table(f"sales.{name}").definition.location for name in ("events", "same")}
        assert homes == {f"{hdfs.uri}/mounted/a b/events"}
        before = rows()
        assert before == rows_of_spark()
        client.write(client.read(spark, "sales.events").where("id < 5"), "sales.events")
        compact(lambda: spark, client, "sales.events", readers_may_see_both=True)
        assert rows() == rows_of_spark() != before
        assert not client.refresh("sales.events", full=True).changed


@pytest.mark.nightly
def test_buckets_are_written_as_spark_writes_them(
    spark: SparkSession, client: windrow.Client, hdfs: Hdfs
) -> None:
    location = f"{hdfs.uri}/tables/buckets {spark.sparkContext.applicationId}"
    hdfs.files.mkdirs(hdfs.path(location))
    client.register_table(
        "sales.buckets",
        location,
        partition_columns={"day": "int"},
        bucket_spec={"columns": ["id"], "count": 4},
    )
    rows = spark.range(60).selectExpr("id", "CAST(id % 2 AS INT) AS day")

    report = client.write(rows, "sales.buckets", target_rows=1_000)

    names = [file.rpartition("/")[2] for file in spark.read.parquet(location).inputFiles()]
    assert report.files == len(names) == 8
    assert {name.partition("_")[2][:5] for name in names} == {f"0000{n}" for n in range(4)}
    assert client.read(spark, "sales.buckets").count() == 60
