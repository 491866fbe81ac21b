"""Connections to buckets, configured by the environment.

Credentials, region and endpoint come from the environment, as for the SDKs of these stores
(`AWS_*`, `AZURE_*`, `GOOGLE_APPLICATION_CREDENTIALS`), never from a table's location. What Azure
calls a container is a bucket here, named with its account: `abfss://container@account.host`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from windrow_core.files.objects.troubles import ObjectError, no_url, shortened

_CONNECT_TIMEOUT = "5s"
# For a whole request; the largest parts that are requested have some megabytes.
_REQUEST_TIMEOUT = "30s"
# A store answers the copy of a large object when it is complete.
_CHANGE_TIMEOUT = "10m"

_ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    "abfss": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
_INSTALL = (
    "cannot be read: the package obstore, the client of object stores, is not installed here; "
    "`pip install obstore` on the driver, the executors and the coordinator"
)
_PROFILE = (
    "cannot be read: the profile of AWS_PROFILE is read by the package boto3, which is not "
    "installed here; install it, or give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
)


def bucket_and_key(uri: str) -> tuple[str, str]:
    """Return a URI's bucket, as `s3://bucket`, and the key of its object."""
    scheme, _, rest = uri.partition("://")
    bucket, _, key = rest.partition("/")
    return f"{scheme}://{bucket}", key


def setting_of(bucket: str) -> tuple[str, str | None]:
    """Return what identifies a connection: the bucket, and its endpoint, which may change."""
    names = _ENDPOINTS.get(bucket.partition(":")[0], ())
    return bucket, next((os.environ[name] for name in names if os.environ.get(name)), None)


def connected(bucket: str, endpoint: str | None, *, is_change: bool = False) -> Any:
    """Return `obstore`'s store of a bucket; no request is sent.

    Args:
        bucket: The bucket, as `s3://bucket`, `gs://bucket` or `abfss://container@account.host`.
        endpoint: The endpoint from the environment.
        is_change: Whether objects are to be changed, which may take longer than to read a part.
    """
    try:
        from obstore.exceptions import BaseError
        from obstore.store import AzureStore, GCSStore, S3Store
    except ImportError as error:
        raise ObjectError(_INSTALL) from error
    scheme, _, name = bucket.partition("://")
    client = {
        "connect_timeout": _CONNECT_TIMEOUT,
        "timeout": _CHANGE_TIMEOUT if is_change else _REQUEST_TIMEOUT,
        "allow_http": endpoint is not None and endpoint.startswith("http://"),
    }
    # `Requests` repeats them, not the library, so that they can be counted and paced.
    options: dict[str, Any] = {"client_options": client, "retry_config": {"max_retries": 0}}
    try:
        if scheme == "gs":
            return GCSStore(name, **options)
        if endpoint is not None and not _is_url(endpoint):
            # The library would panic.
            raise ObjectError(no_url(_ENDPOINTS[scheme][-1]))
        if scheme == "abfss":
            container, _, host = name.partition("@")
            account, _, domain = host.partition(".")
            # The hosts of files have all that those of objects have, under another name.
            of_objects = f"https://{account}.blob.{domain.removeprefix('dfs.')}"
            return AzureStore(
                container, account_name=account, endpoint=endpoint or of_objects, **options
            )
        if _has_profile():
            options["credential_provider"] = _of_profile()
        return S3Store(name, **options)
    except (BaseError, ValueError) as error:
        raise ObjectError(f"cannot be read: {shortened(str(error))}") from error


def _is_url(text: str) -> bool:
    parts = urlsplit(text)
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _has_profile() -> bool:
    if "AWS_ACCESS_KEY_ID" in os.environ or "AWS_WEB_IDENTITY_TOKEN_FILE" in os.environ:
        return False
    path = os.environ.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")
    return "AWS_PROFILE" in os.environ or Path(path).expanduser().exists()


def _of_profile() -> Any:
    try:
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError as error:
        raise ObjectError(_PROFILE) from error
    return Boto3CredentialProvider()
