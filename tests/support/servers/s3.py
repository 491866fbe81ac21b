"""S3 on loopback: moto's server, in a thread of this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest


@dataclass(slots=True)
class S3:
    """A running server.

    Attributes:
        environment: Environment variables that direct clients to the server.
        client: boto3's client for the server.
        requests: Method and path of each request so far.
        asked: The requested range and the required ETag of each request.
    """

    environment: dict[str, str]
    client: Any
    requests: list[tuple[str, str]] = field(default_factory=list)
    asked: list[tuple[str | None, str | None]] = field(default_factory=list)

    def upload(self, folder: Path, bucket: str, prefix: str) -> str:
        """Put the files of a folder into a bucket, and return the location."""
        self.client.create_bucket(Bucket=bucket)
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                key = f"{prefix}/{path.relative_to(folder).as_posix()}"
                self.client.upload_file(str(path), bucket, key)
        return f"s3://{bucket}/{prefix}"


@contextmanager
def s3_server() -> Iterator[S3]:
    """Run the server, and direct this process and its children to it by their environment."""
    # Imported here, since each process of a run collects all tests.
    import boto3
    from moto.moto_server.werkzeug_app import (
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server

    moto = DomainDispatcherApplication(create_backend_app)
    requests: list[tuple[str, str]] = []
    asked: list[tuple[str | None, str | None]] = []

    def counting(environ: dict[str, Any], start_response: Any) -> Any:
        requests.append((environ["REQUEST_METHOD"], environ["PATH_INFO"]))
        asked.append((environ.get("HTTP_RANGE"), environ.get("HTTP_IF_MATCH")))
        return moto(environ, start_response)

    server = make_server(
        "127.0.0.1", 0, counting, threaded=True, request_handler=MotoRequestHandler
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    environment = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "hush",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
    }
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            endpoint = environment["AWS_ENDPOINT_URL"]
            yield S3(environment, boto3.client("s3", endpoint_url=endpoint), requests, asked)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
