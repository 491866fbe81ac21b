"""Files of object stores as tasks see them: which store, and what is sent to executors."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
from pyspark import cloudpickle

from tests.support.stores import slow_store
from windrow.files import remote
from windrow.files.status import FileStatus
from windrow.spark.executor.errors import UnreadableFileError
from windrow.spark.executor.files import read_whole, require_unchanged

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
    with pytest.raises(UnreadableFileError, match=r"ftp: is not supported"):
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
