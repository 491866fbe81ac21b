"""A task that reads from a failing object store returns the right rows or a clear error.

Each table lies in a bucket of its own, since a process remembers facts about buckets. Names that
cannot be resolved are tested separately; a store that is unreachable for some seconds has no
listener on its port.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.faults.object_proxy import ObjectProxy, object_proxy
from tests.support.files.excerpts import planned, recorded
from tests.support.servers.s3 import S3, s3_server
from windrow_core.files.objects import requests, stores
from windrow_service.inventory.build import take_inventory
from windrow_service.inventory.look import Look
from windrow_tables.executor.errors import (
    StaleFileError,
    StoreError,
    TaskReadError,
    VanishedFileError,
)
from windrow_tables.executor.prefetching import most_prefetched_bytes
from windrow_tables.executor.reading import read_group
from windrow_tables.executor.spec import KIB, MIB, ReadLimits, ReadSpec

FILES, ROWS = 12, 50


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with s3_server() as server:
        yield server


@pytest.fixture(scope="module")
def running(s3: S3) -> Iterator[ObjectProxy]:
    with object_proxy(s3.environment["AWS_ENDPOINT_URL"]) as proxy:
        yield proxy


@pytest.fixture
def proxy(running: ObjectProxy, s3: S3, monkeypatch: pytest.MonkeyPatch) -> ObjectProxy:
    running.behave()
    running.clear()
    monkeypatch.setenv("AWS_ENDPOINT_URL", running.url)
    return running


@dataclass(frozen=True)
class Files:
    """Files of a table in a bucket, as a plan lists them."""

    s3: S3
    bucket: str
    contents: list[bytes]
    splits: pa.RecordBatch
    outlines: tuple[str, ...] = ()

    @property
    def location(self) -> str:
        return f"s3://{self.bucket}/t"

    def read(self, counts: Counter[str] | None = None, **limits: Any) -> list[int]:
        """Return the rows that a task reads, sorted."""
        return sorted(
            id_ for batch in self.batches(counts, **limits) for id_ in batch["id"].to_pylist()
        )

    def batches(
        self, counts: Counter[str] | None = None, **limits: Any
    ) -> Iterator[pa.RecordBatch]:
        spec = ReadSpec(
            table="t",
            location=self.location,
            data=pa.schema([("id", pa.int64())]),
            hidden=pa.schema([]),
            partition=pa.schema([]),
            output=("id",),
            limits=ReadLimits(**limits),
            outlines=self.outlines,
        )
        return iter(read_group(spec, self.splits, None, counts=counts))

    def put(self, number: int, content: bytes) -> None:
        self.s3.client.put_object(Bucket=self.bucket, Key=key_of(number), Body=content)


def key_of(number: int) -> str:
    return f"t/f{number:04}.parquet"


def content_of(number: int, *, more: int = 0, padding: int = 0, rows: int = ROWS) -> bytes:
    """Return the bytes of a file; files that differ only in `more` have the same size."""
    buffer = BytesIO()
    ids = range(number * rows, (number + 1) * rows)
    table = pa.table(
        {
            "id": pa.array([id_ + more for id_ in ids], pa.int64()),
            "padding": pa.array(["x" * padding] * rows),
        }
    )
    pq.write_table(table, buffer, compression="none", use_dictionary=False, row_group_size=10_000)
    return buffer.getvalue()


def files_in(s3: S3, bucket: str, contents: list[bytes], rows: int = ROWS) -> Files:
    s3.client.create_bucket(Bucket=bucket)
    for number, content in enumerate(contents):
        s3.client.put_object(Bucket=bucket, Key=key_of(number), Body=content)
    listed = s3.client.list_objects_v2(Bucket=bucket)["Contents"]
    sizes = [one["Size"] for one in listed]
    splits = {
        "path": [one["Key"].removeprefix("t/") for one in listed],
        "start": [0] * len(listed),
        "length": sizes,
        "size_bytes": sizes,
        "mtime_ns": [int(one["LastModified"].timestamp()) * 10**9 for one in listed],
        "row_count": [rows] * len(listed),
        "partition": pa.array([{}] * len(listed), pa.struct([])),
        "etag": [one["ETag"].strip('"') for one in listed],
    }
    return Files(s3, bucket, contents, pa.RecordBatch.from_pydict(splits))


@pytest.fixture
def files(s3: S3, request: pytest.FixtureRequest) -> Files:
    bucket = f"b{crc32(request.node.name.encode()):x}"
    return files_in(s3, bucket, [content_of(number) for number in range(FILES)])


ALL = list(range(FILES * ROWS))


def test_one_request_is_sent_for_each_file(proxy: ObjectProxy, files: Files) -> None:
    counts: Counter[str] = Counter()

    assert files.read(counts) == ALL

    asked = proxy.counts().for_objects()
    assert set(asked.values()) == {1}
    assert len(asked) == FILES == counts["requests"]
    assert counts["retries"] == 0


def test_objects_that_are_decoded_together_have_the_rows_of_each(files: Files) -> None:
    assert files.read(min_joined_files=2) == ALL


@pytest.mark.parametrize("fault", ["cut", "longer"])
def test_answers_that_end_early_are_requested_again(
    proxy: ObjectProxy, files: Files, fault: Any
) -> None:
    proxy.spoil("f0003", fault, times=2)
    proxy.spoil("f0007", fault, times=1)
    counts: Counter[str] = Counter()

    assert files.read(counts) == ALL
    assert proxy.counts().for_objects().total() == counts["requests"] == FILES + 3
    assert counts["retries"] == 3


@pytest.mark.parametrize("fault", ["cut", "longer"])
def test_answers_that_always_end_early_are_an_error_that_names_the_file(
    proxy: ObjectProxy, files: Files, fault: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "_TROUBLE_S", 0.3)
    proxy.spoil("f0003", fault)

    with pytest.raises(StoreError, match=r"f0003\.parquet.* ends answers before"):
        files.read()


def test_an_answer_with_fewer_bytes_than_planned_is_never_decoded(
    proxy: ObjectProxy, files: Files
) -> None:
    proxy.spoil("f0003", "shorter")

    with pytest.raises(StaleFileError, match=r"f0003\.parquet.* size in bytes"):
        files.read()


def test_a_request_with_a_slow_first_byte_is_repeated(
    proxy: ObjectProxy, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "_REQUEST_TIMEOUT", "500ms")
    proxy.spoil("f0003", "none", stall_s=60, times=1)
    counts: Counter[str] = Counter()

    assert files.read(counts) == ALL
    assert counts["retries"] >= 1


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_requests_with_temporary_errors_are_repeated(
    proxy: ObjectProxy, files: Files, status: int
) -> None:
    proxy.spoil("f00", "status", status=status, code="Trouble", times=4, after=6)
    counts: Counter[str] = Counter()

    assert files.read(counts) == ALL
    assert counts["retries"] == 4
    assert counts["waited_ms"] > 0


def test_a_store_that_accepts_few_requests_a_second_is_not_flooded(
    proxy: ObjectProxy, s3: S3
) -> None:
    files = files_in(s3, "storms", [content_of(number) for number in range(90)])
    proxy.limit(100, burst=3)
    counts: Counter[str] = Counter()

    assert files.read(counts) == list(range(90 * ROWS))

    answers = proxy.counts().statuses
    assert answers[200] == 90
    # The first 64 requests are sent at once; few are refused after them.
    assert 0 < answers[503] == counts["retries"] < 90


def test_a_passing_storm_of_slow_down_answers_fails_no_task(
    proxy: ObjectProxy, files: Files
) -> None:
    proxy.spoil("f00", "status", status=503, code="SlowDown")
    calm = threading.Timer(1.0, proxy.behave)
    calm.start()
    try:
        assert files.read() == ALL
    finally:
        calm.join()


def test_a_file_overwritten_after_the_plan_is_named(proxy: ObjectProxy, files: Files) -> None:
    changed = content_of(3, more=1)
    assert len(changed) == len(files.contents[3])
    files.put(3, changed)

    with pytest.raises(StaleFileError, match=r"f0003\.parquet.* has changed since the plan"):
        files.read()


def test_an_overwritten_file_is_noticed_where_the_store_ignores_conditions(
    proxy: ObjectProxy, files: Files
) -> None:
    proxy.spoil("f0003", "etag")

    with pytest.raises(StaleFileError, match=r"f0003\.parquet.* has changed since the plan"):
        files.read()


def test_a_file_that_has_grown_is_named_and_not_held_in_memory_whole(
    proxy: ObjectProxy, files: Files
) -> None:
    # The read below knows no ETag, as for a table with a log.
    files.put(3, bytes(256 * MIB))

    done = subprocess.run(
        [sys.executable, "-m", "tests.programs.read_grown_file", f"{files.location}/f"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    error, held_kib = done.stdout.splitlines()
    assert "f0003.parquet' has changed since the plan" in error
    assert int(held_kib) < 64 * KIB


def test_a_file_overwritten_with_its_own_bytes_is_still_the_same(
    proxy: ObjectProxy, files: Files
) -> None:
    files.put(3, files.contents[3])

    assert files.read() == ALL


def test_a_deleted_file_is_named(proxy: ObjectProxy, files: Files) -> None:
    files.s3.client.delete_object(Bucket=files.bucket, Key=key_of(3))

    with pytest.raises(VanishedFileError, match=r"f0003\.parquet"):
        files.read()


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (400, "ExpiredToken", "have expired; renew them"),
        (403, "ExpiredToken", "have expired; renew them"),
        (403, "InvalidAccessKeyId", "are not valid; check AWS_ACCESS_KEY_ID"),
        (403, "SignatureDoesNotMatch", "are not valid; check AWS_ACCESS_KEY_ID"),
        (403, "AccessDenied", "let the credentials that are used here"),
        (301, "PermanentRedirect", "another region than AWS_REGION"),
        (400, "AuthorizationHeaderMalformed", "another region than AWS_REGION"),
        (403, "RequestTimeTooSkewed", "the clock of this machine"),
    ],
)
def test_permanent_errors_fail_at_once_even_in_mid_read(
    proxy: ObjectProxy, files: Files, status: int, code: str, words: str
) -> None:
    proxy.spoil("f00", "status", status=status, code=code, after=FILES // 2)

    with pytest.raises(StoreError, match=words) as caught:
        files.read()

    assert "hush" not in str(caught.value)
    assert max(proxy.counts().for_objects().values()) == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("key", "are not valid; check AWS_ACCESS_KEY_ID"),
        ("secret", "are not valid; check AWS_ACCESS_KEY_ID"),
        ("rights", "let the credentials that are used here list and read it"),
    ],
)
def test_a_request_whose_credentials_are_refused_is_not_repeated(
    proxy: ObjectProxy, files: Files, monkeypatch: pytest.MonkeyPatch, wrong: str, words: str
) -> None:
    import boto3
    from moto import settings

    iam = boto3.client("iam", endpoint_url=files.s3.environment["AWS_ENDPOINT_URL"])
    iam.create_user(UserName=wrong)
    key = iam.create_access_key(UserName=wrong)["AccessKey"]
    secret = "x" if wrong == "secret" else key["SecretAccessKey"]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x" if wrong == "key" else key["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    monkeypatch.setattr(settings, "INITIAL_NO_AUTH_ACTION_COUNT", 0)

    with pytest.raises(StoreError, match=words) as caught:
        files.read()

    assert secret == "x" or secret not in str(caught.value)
    assert max(proxy.counts().for_objects().values()) == 1


@pytest.mark.parametrize("change", ["overwritten", "deleted"])
def test_a_file_of_a_versioned_bucket_is_named_although_its_version_is_kept(
    proxy: ObjectProxy, files: Files, change: str
) -> None:
    client = files.s3.client
    versions = {"Status": "Enabled"}
    client.put_bucket_versioning(Bucket=files.bucket, VersioningConfiguration=versions)
    if change == "overwritten":
        files.put(3, content_of(3, more=1))
    else:
        client.delete_object(Bucket=files.bucket, Key=key_of(3))

    with pytest.raises(StaleFileError, match=r"f0003\.parquet.* since the plan was made"):
        files.read()


def test_a_missing_bucket_fails_at_once(proxy: ObjectProxy, files: Files) -> None:
    elsewhere = Files(files.s3, "none-such", files.contents, files.splits)

    with pytest.raises(TaskReadError, match="bucket that does not exist"):
        elsewhere.read()

    assert max(proxy.counts().for_objects().values()) == 1


def test_a_task_waits_for_a_store_that_is_unreachable_for_seconds(
    proxy: ObjectProxy, files: Files
) -> None:
    batches = files.batches(prefetch_files=1, max_batch_rows=ROWS)
    first = next(batches)
    proxy.stop_listening()
    back = threading.Timer(1.0, proxy.listen)
    back.start()
    try:
        rest = [id_ for batch in batches for id_ in batch["id"].to_pylist()]
    finally:
        back.join()

    assert sorted(first["id"].to_pylist() + rest) == ALL


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        ("http://nowhere.invalid:9", "check the network"),
        ("http://127.0.0.1:9", "check the network"),
        ("http://", "AWS_ENDPOINT_URL is not the URL of a server"),
        ("storage.example.com", "AWS_ENDPOINT_URL is not the URL of a server"),
        ("127.0.0.1:9000", "AWS_ENDPOINT_URL is not the URL of a server"),
    ],
)
def test_a_store_that_never_answered_is_soon_an_error(
    files: Files, endpoint: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setattr(requests, "_FIRST_ANSWER_S", 0.3)

    with pytest.raises(StoreError, match=f"cannot be reached: {words}"):
        files.read()


@pytest.mark.parametrize(
    ("limits", "most_files"),
    [({"prefetch_files": 4}, 4), ({"prefetch_bytes": 5 * 2**20}, 5)],
)
def test_a_slow_consumer_bounds_the_files_requested_ahead(
    proxy: ObjectProxy, s3: S3, limits: dict[str, int], most_files: int
) -> None:
    contents = [content_of(number, padding=2**20 // ROWS) for number in range(24)]
    files = files_in(s3, f"slow{most_files}", contents)
    counts: Counter[str] = Counter()
    batches = files.batches(
        counts, max_batch_rows=ROWS, max_decoded_at_once_bytes=2 * 2**20, **limits
    )

    rows = []
    for number, batch in enumerate(batches):
        rows += batch["id"].to_pylist()
        if number < 3:
            # Long enough to request more files than the limits allow.
            time.sleep(0.3)
            # The other two files are the one being decoded and the next one to be.
            assert len(proxy.counts().for_objects()) <= len(rows) // ROWS + most_files + 2

    assert sorted(rows) == list(range(24 * ROWS))
    assert 2**20 < most_prefetched_bytes(counts) <= (most_files + 2) * 2**20
    assert len(proxy.counts().for_objects()) == 24


# Files above this are read part by part.
PARTS: dict[str, int] = {"max_buffered_file_bytes": 2**18, "max_decoded_at_once_bytes": 2**16}


@pytest.fixture(scope="module")
def large(s3: S3) -> Files:
    contents = [content_of(number, rows=50_000) for number in range(2)]
    return files_in(s3, "large", contents, rows=50_000)


@pytest.fixture(scope="module")
def wide(s3: S3) -> Files:
    """Files whose plan records where the column lies: two ranges in each, far apart."""
    outlines, chunks, contents = set(), [], []
    for number in range(2):
        buffer = BytesIO()
        ids = np.arange(number * 50_000, (number + 1) * 50_000)
        others = {f"c{at}": np.random.default_rng(at).random(50_000) for at in range(5)}
        table = pa.table({"id": ids, **others})
        pq.write_table(
            table, buffer, compression="none", use_dictionary=False, row_group_size=25_000
        )
        contents.append(buffer.getvalue())
        known = recorded(contents[-1])
        assert known is not None
        some, groups = planned(*known, ["id"])
        outlines.add(some.to_text())
        chunks.append({"outline": 0, "chunks": groups.reshape(-1).tolist()})
    files = files_in(s3, "wide", contents, rows=50_000)
    splits = files.splits.append_column("excerpt", pa.array(chunks))
    return replace(files, splits=splits, outlines=tuple(outlines))


@pytest.fixture(params=["read part by part", "read as an excerpt of one column"])
def in_parts(request: pytest.FixtureRequest, large: Files, wide: Files) -> Files:
    return large if request.param == "read part by part" else wide


@pytest.mark.parametrize("fault", ["cut", "longer", "shorter"])
def test_parts_that_end_early_are_requested_again(
    proxy: ObjectProxy, in_parts: Files, fault: Any
) -> None:
    proxy.spoil("f0001", fault, times=2, after=1)
    counts: Counter[str] = Counter()

    assert in_parts.read(counts, **PARTS) == list(range(100_000))
    assert counts["retries"] == 2
    told = proxy.counts()
    assert counts["requests"] == told.for_objects().total() >= 2 * 2 + 2
    assert not in_parts.outlines or told.sent.total() < len(in_parts.contents[0])


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"fault": "etag"}, "has changed since the plan"),
        (
            {"fault": "status", "status": 412, "code": "PreconditionFailed"},
            "has changed since the plan",
        ),
        ({"fault": "status", "status": 404, "code": "NoSuchKey"}, "has vanished since the plan"),
        ({"fault": "status", "status": 403, "code": "ExpiredToken"}, "have expired"),
    ],
)
def test_a_fault_between_parts_of_a_file_is_an_error(
    proxy: ObjectProxy, in_parts: Files, fault: dict[str, Any], words: str
) -> None:
    proxy.spoil("f0001", after=1, **fault)

    with pytest.raises(TaskReadError, match=rf"f0001\.parquet.* {words}"):
        in_parts.read(**PARTS)


def test_an_inventory_is_complete_despite_temporary_errors(proxy: ObjectProxy, s3: S3) -> None:
    files = files_in(s3, "inventories", [content_of(number) for number in range(30)])
    proxy.spoil("inventories/?", "status", status=503, code="SlowDown", times=2)
    proxy.spoil("f0007", "cut", times=1)
    proxy.spoil("f001", "status", status=503, code="SlowDown", times=3)

    taken = take_inventory(Look(location=files.location))

    assert taken.files.num_rows == 30
    assert pa.compute.sum(taken.files["row_count"]).as_py() == 30 * ROWS
    assert None not in taken.files["etag"].to_pylist()
