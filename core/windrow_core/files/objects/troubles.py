"""What an error of a store means: whether it is transient, and what to do if it is not."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

# `slow_down`: the store asks for fewer requests. `passing`: another try may succeed. `unreached`:
# the same, but nothing has answered. `changed`: the object has changed since it was listed.
TroubleKind: TypeAlias = Literal["slow_down", "passing", "unreached", "gone", "changed", "lasting"]


class Trouble(NamedTuple):
    """What is wrong.

    Attributes:
        kind: Decides whether a request is repeated.
        reason: What is wrong and what users can do, as the end of a sentence about the object.
    """

    kind: TroubleKind
    reason: str


class ObjectError(OSError):
    """An object cannot be read or changed; the error's text is the end of a sentence about the object."""


class ChangedObjectError(ObjectError):
    """An object has changed since it was listed."""


_STATUS = re.compile(r"status code: (\d{3})")
# The second form is that of one object among several that are to be removed.
_CODE = re.compile(r"(?:<Code>|\(code: )(\w+)(?:</Code>|\))")
_URL = re.compile(r"https?://\S+")
# Where cloud machines ask for the credentials of their role.
_METADATA = re.compile(r"https?://(169\.254\.1|metadata\.google\.internal)")
_SHOWN_CHARACTERS = 300

_BAD_KEY = (
    "may not be read: the credentials here are not valid; check AWS_ACCESS_KEY_ID, "
    "AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN"
)
_NO_KEY = (
    "cannot be read: there are no credentials for its store here; see docs/how-to/object-stores.md"
)
_DENIED = "may not be read: let the credentials that are used here list and read it"
_CHANGE_DENIED = (
    "may not be changed: let the credentials that are used here list, read, write and delete it"
)
_EXPIRED = "may not be read: the credentials here have expired; renew them, and read again"
_BAD_AZURE_KEY = (
    "may not be read: the credentials here are not valid; check AZURE_STORAGE_ACCOUNT_KEY, "
    "AZURE_STORAGE_SAS_TOKEN or AZURE_CLIENT_SECRET"
)
_REGION = "lies in another region than AWS_REGION: correct AWS_REGION"
_UNREACHED = (
    "cannot be reached: check the network, and AWS_ENDPOINT_URL and AWS_REGION, or the account in "
    "an address of Azure"
)
_ARCHIVED = "is archived: restore it, or move it to a class that can be read at once"
_REASONS = {
    "NoSuchBucket": "lies in a bucket that does not exist: correct the table's location",
    "ContainerNotFound": "lies in a container that does not exist: correct the table's location",
    "AuthenticationFailed": _BAD_AZURE_KEY,
    "InvalidAuthenticationInfo": _BAD_AZURE_KEY,
    "BlobArchived": _ARCHIVED,
    "AccessDenied": _DENIED,
    "AuthorizationHeaderMalformed": _REGION,
    "ExpiredToken": _EXPIRED,
    "ExpiredTokenException": _EXPIRED,
    "TokenRefreshRequired": _EXPIRED,
    "InvalidAccessKeyId": _BAD_KEY,
    "InvalidClientTokenId": _BAD_KEY,
    "InvalidToken": _BAD_KEY,
    "SignatureDoesNotMatch": _BAD_KEY,
    "InvalidObjectState": _ARCHIVED,
    "PermanentRedirect": _REGION,
    "RequestTimeTooSkewed": "may not be read: the clock of this machine is wrong; set it",
    "AllAccessDisabled": "may not be read: the store has disabled access to its bucket",
}
_SLOW_DOWN = frozenset(
    {"SlowDown", "TooManyRequests", "Throttling", "ThrottlingException", "RequestLimitExceeded"}
)
_PASSING = frozenset(
    {
        "RequestTimeout",
        "InternalError",
        "ServiceUnavailable",
        "ConditionalRequestConflict",
        "OperationAborted",
    }
)


def trouble_of(error: Exception) -> Trouble:
    """Return what an error of `obstore` means.

    Its errors are told apart by their text, because one class stands for most answers of a store.
    """
    text = str(error)
    without_credentials = _METADATA.search(text) is not None
    # Names of objects must not be taken for texts of errors.
    text = _URL.sub("", text)
    status = int(match[1]) if (match := _STATUS.search(text)) else None
    code = match[1] if (match := _CODE.search(text)) else ""
    if code in _SLOW_DOWN or status in (429, 503):
        return Trouble(
            "slow_down", f"cannot be read: its store answers {status or code} for too long"
        )
    if code in _REASONS:
        return Trouble("lasting", _REASONS[code])
    if type(error).__name__ == "PreconditionError" or status == 412:
        return Trouble("changed", "has changed")
    if isinstance(error, FileNotFoundError):
        return Trouble("gone", "is no longer there")
    if without_credentials:
        return Trouble("lasting", _NO_KEY)
    if status is not None or code:
        return _answered(status, code)
    if "redential" in text:
        return Trouble("lasting", _NO_KEY)
    if type(error).__name__ == "InvalidPathError" or "Could not parse path" in text:
        return Trouble("lasting", _unusable_name(text))
    if "redirect" in text:
        return Trouble("lasting", _REGION)
    if "builder error" in text:
        return Trouble("lasting", no_url("AWS_ENDPOINT_URL"))
    if "error sending request" in text:
        return Trouble("unreached", _UNREACHED)
    if "HTTP error" in text or "body" in text:
        return Trouble("passing", "cannot be read: its store ends answers before they are complete")
    return Trouble("lasting", f"cannot be read: {shortened(text)}")


def no_url(variable: str) -> str:
    """Return what is wrong if the endpoint that a variable of the environment gives is none."""
    return (
        f"cannot be reached: {variable} is not the URL of a server; give one such as "
        "https://storage.example.com"
    )


def as_change(trouble: Trouble) -> Trouble:
    """Return the same of a request that was to change an object."""
    if trouble.reason == _DENIED:
        return trouble._replace(reason=_CHANGE_DENIED)
    return trouble._replace(reason=trouble.reason.replace("be read", "be changed", 1))


def _unusable_name(text: str) -> str:
    if "empty path segment" in text:
        return "holds a folder without a name, as in 'a//b': rename the objects in it"
    name = match[1] if (match := re.search(r'(?:path|Path) "([^"]*)"', text)) else ""
    return f"holds an object that is named {name[:100]!r}, which is not a valid path: rename it"


def _answered(status: int | None, code: str) -> Trouble:
    if code in _PASSING or status == 408 or (status is not None and status >= 500):
        return Trouble(
            "passing", f"cannot be read: its store answers {status or code} for too long"
        )
    if status in (401, 403):
        return Trouble("lasting", _DENIED)
    text = " ".join(str(part) for part in (status, code) if part)
    return Trouble("lasting", f"cannot be read: its store answers {text}")


def shortened(text: str) -> str:
    """Return the first line of an error, without details of the request and the answer."""
    first = text.partition("\n")[0]
    return re.sub(r"https?://\S+", "the store", " ".join(first.split()))[:_SHOWN_CHARACTERS]
