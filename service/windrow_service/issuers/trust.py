"""Settings of trusted issuers: their tokens, their callers' grants, and how people sign in."""

from __future__ import annotations

import ssl
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    model_validator,
)

from windrow_service.usecases.access.errors import InvalidTokenError
from windrow_service.usecases.access.grants import grant_of
from windrow_service.usecases.access.sessions import LONGEST
from windrow_service.usecases.errors import StartError

# Only algorithms with public keys: whoever checks tokens by a shared secret could also make them.
Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]


def is_safe_url(url: str) -> bool:
    """Return whether answers from a URL can be trusted: by TLS, or because they are local."""
    parts = urlsplit(url)
    if parts.scheme == "https":
        return bool(parts.hostname)
    if parts.scheme != "http" or not parts.hostname:
        return False
    try:
        return ip_address(parts.hostname).is_loopback
    except ValueError:
        return parts.hostname == "localhost"


def authorities_of(name: str, issuer: Issuer) -> ssl.SSLContext:
    """Return a TLS context that trusts the certificate authorities of an issuer."""
    if issuer.ca_file is None:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cafile=str(issuer.ca_file))
    except OSError as error:
        reason = error.strerror or "it has no certificate"
        raise StartError(
            f"the certificates for issuer {name!r} cannot be read from {str(issuer.ca_file)!r} "
            f"({reason}): correct its ca_file"
        ) from None


def _safe(url: str) -> str:
    if not is_safe_url(url):
        raise ValueError("it must begin with https://")
    return url


def _grant(text: str) -> str:
    try:
        grant_of(text)
    except InvalidTokenError as error:
        raise ValueError(str(error)) from None
    return text


_Url = Annotated[str, AfterValidator(_safe)]
_Scope = Annotated[str, StringConstraints(pattern=r"^[!#-\[\]-~]+$", max_length=256)]
_Grants = tuple[Annotated[str, AfterValidator(_grant)], ...]
IssuerName = Annotated[str, StringConstraints(pattern="^[a-z0-9][a-z0-9-]{0,31}$")]


class SignIn(BaseModel):
    """How people sign in to pages with an issuer: by its authorization code flow.

    Attributes:
        client_id: Id of this coordinator at the issuer.
        client_secret: Secret that proves the id; None if the issuer requires none.
        client_secret_file: File that contains the secret instead; read again each time.
        scopes: Scopes to request, so that the ID token has the claims that grants depend on.
        title: Name of the issuer for people; by default its name in the settings.
        lasts: How long somebody stays signed in.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    client_id: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    client_secret: SecretStr | None = None
    client_secret_file: Path | None = None
    scopes: tuple[_Scope, ...] = ("openid",)
    title: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    lasts: Annotated[timedelta, Field(ge=timedelta(minutes=5), le=LONGEST)] = timedelta(hours=8)

    @model_validator(mode="after")
    def _fit(self) -> SignIn:
        if self.client_secret is not None and self.client_secret_file is not None:
            raise ValueError("client_secret and client_secret_file are two secrets: unset one")
        if "openid" not in self.scopes:
            raise ValueError("without the scope `openid` an issuer identifies nobody: add it")
        return self


class Issuer(BaseModel):
    """An issuer of access tokens.

    Attributes:
        url: The issuer exactly as its tokens name it (`iss`).
        audience: Audience that its tokens must have (`aud`).
        algorithms: Algorithms that it may sign with.
        keys_url: URL of its public keys; by default, the one in its own description.
        leeway: How far its clock may be off.
        keys_kept_for: How long keys are trusted after they were last fetched.
        name_claim: The claim that names the caller; two callers must never have the same name.
        groups_claim: The claim that lists the caller's groups.
        scopes_claim: A claim that lists the caller's grants; none by default.
        groups: Grants by group.
        subjects: Grants by `sub`.
        ca_file: Certificates of the authority that vouches for the issuer.
        token_file: File with a token to send when keys are fetched; read again each time.
        sign_in: How people sign in to pages with it; by default they cannot.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: _Url
    audience: Annotated[str, StringConstraints(min_length=1)]
    algorithms: Annotated[tuple[Algorithm, ...], Field(min_length=1)] = ("RS256", "ES256")
    keys_url: _Url | None = None
    leeway: Annotated[timedelta, Field(ge=timedelta(0), le=timedelta(minutes=5))] = timedelta(
        seconds=30
    )
    keys_kept_for: Annotated[timedelta, Field(ge=timedelta(minutes=10), le=timedelta(days=7))] = (
        timedelta(hours=12)
    )
    name_claim: str = "sub"
    groups_claim: str = "groups"
    scopes_claim: str | None = None
    groups: dict[str, _Grants] = {}
    subjects: dict[str, _Grants] = {}
    ca_file: Path | None = None
    token_file: Path | None = None
    sign_in: SignIn | None = None

    @model_validator(mode="after")
    def _require_keys_url(self) -> Issuer:
        if self.token_file is not None and self.keys_url is None:
            raise ValueError("token_file is sent only to keys_url: set that too")
        return self
