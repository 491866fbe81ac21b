"""Files of object stores as tasks see them: which store, and the code sent to executors."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql.types import LongType, StructField, StructType

from tests.support.plans.plans import plan_of
from tests.support.servers.slow_store import slow_store
from windrow_core.files import remote
from windrow_core.files.status import FileStatus
from windrow_core.models import PlanOptions
from windrow_spark.reading.reader import Schemas, read_spec
from windrow_tables.executor.errors import UnreadableFileError
from windrow_tables.executor.files import read_whole, require_unchanged
from windrow_tables.executor.rebasing import Calendars

cloudpickle.register_pickle_by_value(remote)


def planned(path: Path) -> FileStatus:
    status = path.stat()
    return FileStatus(status.st_size, int(status.st_mtime) * 10**9)


def test_a_task_reads_from_the_store_that_the_environment_currently_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = {"one": b"first", "two": b"the second"}
    for name, content in contents.items():
        (tmp_path / name / "bucket").mkdir(parents=True)
        (tmp_path / name / "bucket" / "a").write_bytes(content)
    with slow_store(tmp_path / "one") as one, slow_store(tmp_path / "two") as two:
        for store, content in zip(
            (one, two, one), (b"first", b"the second", b"first"), strict=True
        ):
            for name, value in store.environment.items():
                monkeypatch.setenv(name, value)
            known = planned(store.root / "bucket" / "a")

            assert bytes(read_whole("", "s3://bucket/a", known)) == content
            require_unchanged("s3://bucket/a", known)


def test_a_store_of_another_kind_is_refused_by_its_name() -> None:
    with pytest.raises(UnreadableFileError, match=r"ftp:// is not supported"):
        read_whole("", "ftp://bucket/a", FileStatus(1, 1))


def test_no_connection_of_the_driver_travels_to_executors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bucket").mkdir()
    (tmp_path / "bucket" / "a").write_bytes(b"content")
    with slow_store(tmp_path) as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        assert remote.names_in("s3://bucket") == ["a"]

        sent = cloudpickle.dumps(remote.names_in)

        assert os.environ["AWS_ENDPOINT_URL"].encode() not in sent
        assert pickle.loads(sent)("s3://bucket") == ["a"]


@pytest.mark.parametrize(("groups", "share"), [(2, 60.0), (4, 30.0), (100, 30.0)])
def test_the_requests_of_a_read_are_divided_over_the_tasks_that_run_at_once(
    tmp_path: Path, groups: int, share: float
) -> None:
    options = PlanOptions(parallelism=4, requests_per_second=120, prefetch_bytes="1MB")
    plan, _ = plan_of(tmp_path, {"id": "bigint"})
    plan = plan.model_copy(
        update={
            "options": options,
            "summary": plan.summary.model_copy(update={"group_count": groups}),
        }
    )
    asked = StructType([StructField("id", LongType())])

    limits = read_spec(plan, Schemas(asked, StructType(), StructType()), Calendars).limits

    assert limits.requests_per_second == share
    assert (limits.prefetch_files, limits.prefetch_bytes) == (128, 2**20)
