"""The proxy in front of object stores counts, delays, limits and spoils requests as told."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from tests.support.faults.object_proxy import ObjectProxy, object_proxy
from tests.support.servers.s3 import S3, s3_server
from tests.support.servers.slow_store import slow_store

CONTENT = bytes(range(256)) * 100


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectProxy]:
    folder = tmp_path_factory.mktemp("store")
    (folder / "tables").mkdir()
    (folder / "tables/a b").write_bytes(CONTENT)
    (folder / "tables/c").write_bytes(CONTENT)
    with slow_store(folder) as store, object_proxy(store.environment["AWS_ENDPOINT_URL"]) as proxy:
        yield proxy


@pytest.fixture
def proxy(running: ObjectProxy) -> ObjectProxy:
    running.behave()
    running.clear()
    return running


def connected(proxy: ObjectProxy) -> http.client.HTTPConnection:
    where = urlsplit(proxy.url)
    assert where.hostname
    return http.client.HTTPConnection(where.hostname, where.port, timeout=10)


def get(proxy: ObjectProxy, key: str = "tables/c") -> tuple[int, bytes, dict[str, str]]:
    with closing(connected(proxy)) as connection:
        connection.request("GET", f"/{key}")
        answer = connection.getresponse()
        return answer.status, answer.read(), dict(answer.headers)


def test_requests_and_bytes_are_counted_by_key_and_listings_apart(proxy: ObjectProxy) -> None:
    with closing(connected(proxy)) as connection:
        for method, path in [
            ("GET", "/tables/a%20b"),
            ("HEAD", "/tables/c"),
            ("GET", "/tables/c"),
            ("GET", "/tables?list-type=2&prefix=a"),
        ]:
            # One connection for all: the proxy keeps it open.
            connection.request(method, path)
            answer = connection.getresponse()
            content = answer.read()
            assert answer.status == 200
            if method == "GET" and "?" not in path:
                assert content == CONTENT

    counts = proxy.counts()
    assert counts.requests == {
        ("GET", "tables/a b"): 1,
        ("HEAD", "tables/c"): 1,
        ("GET", "tables/c"): 1,
        ("GET", "tables/?a"): 1,
    }
    assert counts.for_objects().total() == 3
    assert counts.sent["tables/a b"] == counts.sent["tables/c"] == len(CONTENT)
    assert counts.statuses == {200: 4}


def test_answers_wait_without_waiting_for_each_other(proxy: ObjectProxy) -> None:
    proxy.delay(0.2)
    began = time.monotonic()
    threads = [threading.Thread(target=get, args=(proxy,)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert time.monotonic() - began >= 0.2
    assert proxy.counts().most_in_flight > 1


def test_requests_above_the_limit_are_told_to_slow_down(proxy: ObjectProxy) -> None:
    proxy.limit(0.001, burst=3)

    answers = [get(proxy) for _ in range(5)]

    assert [status for status, _, _ in answers] == [200, 200, 200, 503, 503]
    assert b"<Code>SlowDown</Code>" in answers[-1][1]
    assert proxy.counts().statuses == {200: 3, 503: 2}


def test_a_spoilt_answer_is_spoilt_as_often_as_asked_and_only_for_its_key(
    proxy: ObjectProxy,
) -> None:
    proxy.spoil("tables/c", "status", status=403, code="ExpiredToken", after=1, times=2)

    statuses = [get(proxy)[0] for _ in range(4)]

    assert statuses == [200, 403, 403, 200]
    assert get(proxy, "tables/a%20b")[0] == 200


def test_bodies_are_cut_or_of_another_length_than_the_header_says(proxy: ObjectProxy) -> None:
    for fault in ("cut", "longer"):
        proxy.behave()
        proxy.spoil("tables/c", fault)
        with pytest.raises(http.client.IncompleteRead):
            get(proxy)
    proxy.behave()
    proxy.spoil("tables/c", "shorter", times=1)
    assert get(proxy)[1] == CONTENT[:-10]


def test_the_etag_of_an_answer_changes(proxy: ObjectProxy) -> None:
    before = get(proxy)[2]["ETag"]
    proxy.spoil("tables/c", "etag")

    status, content, headers = get(proxy)

    assert (status, content) == (200, CONTENT)
    assert headers["ETag"] != before


def test_a_stall_delays_the_first_byte(proxy: ObjectProxy) -> None:
    proxy.spoil("tables/c", "none", stall_s=0.2, times=1)
    began = time.monotonic()

    assert get(proxy)[0] == 200
    assert time.monotonic() - began >= 0.2


def test_a_proxy_that_stops_listening_comes_back_on_its_port(proxy: ObjectProxy) -> None:
    with closing(connected(proxy)) as kept:
        kept.request("GET", "/tables/c")
        kept.getresponse().read()
        proxy.stop_listening()
        with pytest.raises(ConnectionRefusedError):
            get(proxy)
        proxy.listen()

    assert get(proxy)[:2] == (200, CONTENT)


@pytest.fixture(scope="module")
def moto() -> Iterator[S3]:
    with s3_server() as server:
        yield server


def test_motos_answers_pass_too_and_connections_stay_open(moto: S3) -> None:
    import boto3

    with object_proxy(moto.environment["AWS_ENDPOINT_URL"]) as before_moto:
        client = boto3.client("s3", endpoint_url=before_moto.url)
        client.create_bucket(Bucket="moto")
        client.put_object(Bucket="moto", Key="k", Body=CONTENT)
        for _ in range(2):
            answer = client.get_object(Bucket="moto", Key="k")
            assert answer["Body"].read() == CONTENT
            assert "connection" not in answer["ResponseMetadata"]["HTTPHeaders"]
            with pytest.raises(client.exceptions.NoSuchKey):
                client.get_object(Bucket="moto", Key="none")
        assert client.list_objects_v2(Bucket="moto")["KeyCount"] == 1
        assert before_moto.counts().requests["PUT", "moto/k"] == 1
