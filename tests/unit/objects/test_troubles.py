"""The meaning of a store's answer, and whether asking again may help."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import obstore
import pytest
from obstore.store import S3Store

from windrow_core.files.objects.troubles import as_change, trouble_of

REFUSED = "<DeleteResult><Error><Key>{0}</Key><Code>{0}</Code><Message>no</Message></Error></DeleteResult>"
ERROR = "<Error><Code>{}</Code><Message>hush</Message></Error>"


class Refusing(BaseHTTPRequestHandler):
    """Answers with the status and code that the path names."""

    def do_GET(self) -> None:
        _, status, code = self.path.rsplit("/", 2)
        self._answer(int(status), ERROR.format(code))

    def do_POST(self) -> None:
        """Refuse to remove an object, by the code that its name is."""
        keys = self.rfile.read(int(self.headers["Content-Length"])).decode()
        code = keys.partition("<Key>")[2].partition("</Key>")[0]
        self._answer(200, REFUSED.format(code))

    def _answer(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def store_at(endpoint: str, **options: object) -> S3Store:
    return S3Store(
        "bucket",
        endpoint=endpoint,
        access_key_id="key",
        secret_access_key="hush",
        region="us-east-1",
        retry_config={"max_retries": 0},
        client_options={"allow_http": True, **options},
    )


@pytest.fixture(scope="module")
def refusing() -> Iterator[S3Store]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield store_at(f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    thread.join()
    server.server_close()


def error_of(store: S3Store, key: str) -> Exception:
    async def ask() -> None:
        await obstore.get_async(store, key, options={"if_match": '"etag"'})

    try:
        asyncio.run(ask())
    except Exception as error:
        return error
    raise AssertionError(f"{key} was read")


@pytest.mark.parametrize(
    ("status", "code", "kind", "words"),
    [
        (503, "SlowDown", "slow_down", "answers 503"),
        (429, "TooManyRequests", "slow_down", "answers 429"),
        (500, "InternalError", "passing", "answers 500"),
        (502, "Other", "passing", "answers 502"),
        (400, "RequestTimeout", "passing", "answers 400"),
        (412, "PreconditionFailed", "changed", "has changed"),
        (404, "NoSuchKey", "gone", "no longer there"),
        (404, "NoSuchBucket", "lasting", "bucket that does not exist"),
        (403, "AccessDenied", "lasting", "let the credentials"),
        (403, "InvalidAccessKeyId", "lasting", "not valid"),
        (403, "SignatureDoesNotMatch", "lasting", "not valid"),
        (400, "ExpiredToken", "lasting", "have expired"),
        (403, "RequestTimeTooSkewed", "lasting", "clock"),
        (403, "InvalidObjectState", "lasting", "archived"),
        (400, "AuthorizationHeaderMalformed", "lasting", "AWS_REGION"),
        (301, "PermanentRedirect", "lasting", "AWS_REGION"),
        (404, "ContainerNotFound", "lasting", "container that does not exist"),
        (403, "AuthenticationFailed", "lasting", "AZURE_STORAGE_ACCOUNT_KEY"),
        (403, "AuthorizationPermissionMismatch", "lasting", "let the credentials"),
        (503, "ServerBusy", "slow_down", "answers 503"),
        (409, "BlobArchived", "lasting", "archived"),
        (401, "Other", "lasting", "let the credentials"),
        (418, "Teapot", "lasting", "answers 418"),
    ],
)
def test_an_answer_is_classified_by_its_status_and_code(
    refusing: S3Store, status: int, code: str, kind: str, words: str
) -> None:
    trouble = trouble_of(error_of(refusing, f"{status}/{code}"))

    assert trouble.kind == kind
    assert words in trouble.reason
    assert "hush" not in trouble.reason


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        ("SlowDown", "slow_down", "cannot be changed: its store answers SlowDown"),
        ("InternalError", "passing", "cannot be changed: its store answers InternalError"),
        ("AccessDenied", "lasting", "may not be changed: let the credentials"),
        ("Teapot", "lasting", "cannot be changed: its store answers Teapot"),
    ],
)
def test_one_of_many_objects_that_cannot_be_removed_is_classified_by_its_code(
    refusing: S3Store, code: str, kind: str, words: str
) -> None:
    with pytest.raises(Exception, match=code) as caught:
        obstore.delete(refusing, [code])

    trouble = as_change(trouble_of(caught.value))

    assert trouble.kind == kind
    assert words in trouble.reason


@pytest.mark.parametrize(
    ("endpoint", "kind"),
    [
        ("http://127.0.0.1:1", "unreached"),
        ("http://no-such-host.invalid", "unreached"),
        ("127.0.0.1:1", "lasting"),
    ],
)
def test_an_unreachable_store_is_distinguished_from_an_invalid_endpoint(
    endpoint: str, kind: str
) -> None:
    assert trouble_of(error_of(store_at(endpoint), "key")).kind == kind


@pytest.mark.parametrize("name", ["credentials", "redirect", "body", "169.254.169.254", "status"])
def test_the_name_of_an_object_is_not_taken_for_the_fault(refusing: S3Store, name: str) -> None:
    away = trouble_of(error_of(store_at("http://127.0.0.1:1"), f"t/{name}/status code: 404"))

    assert away.kind == "unreached"
    assert trouble_of(error_of(refusing, f"{name}/500/InternalError")).kind == "passing"


@pytest.mark.parametrize(("key", "words"), [("a//b", "a//b"), ("a/../b", "a/../b")])
def test_a_key_that_is_not_a_path_is_named(refusing: S3Store, key: str, words: str) -> None:
    trouble = trouble_of(error_of(refusing, key))

    assert trouble.kind == "lasting"
    assert words in trouble.reason
    assert "rename" in trouble.reason
