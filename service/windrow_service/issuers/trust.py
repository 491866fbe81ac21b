"""Which issuers are trusted, with what, what their callers may do, and how people sign in."""

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

from windrow_service.usecases.access.errors import AuthoritiesError, InvalidTokenError
from windrow_service.usecases.access.grants import grant_of
from windrow_service.usecases.access.sessions import LONGEST

# Those with a public key alone: with a shared secret, whoever checks tokens could make them.
Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]


def is_safe_url(url: str) -> bool:
    """Tell whether what comes from a URL can be trusted: by TLS, or because it is this machine."""
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
    """Return what trusts the authorities that vouch for an issuer.

    Args:
        name: What the settings call the issuer.
        issuer: The issuer.

    Raises:
        AuthoritiesError: Its `ca_file` cannot be read.
    """
    if issuer.ca_file is None:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cafile=str(issuer.ca_file))
    except OSError as error:
        reason = error.strerror or "it has no certificate"
        raise AuthoritiesError(name, str(issuer.ca_file), reason) from None


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
        client_id: What the issuer calls this coordinator.
        client_secret: What the coordinator proves that with; none if the issuer asks for none.
        client_secret_file: A file that has it instead, read anew each time.
        scopes: What is asked for, so that the ID token has the claims that grants depend on.
        title: What people call the issuer; its name in the settings by default.
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
            raise ValueError("without the scope `openid` an issuer tells nobody's name: add it")
        return self


class Issuer(BaseModel):
    """An issuer of access tokens.

    Attributes:
        url: What its tokens call it (`iss`), letter by letter.
        audience: What its tokens must be for (`aud`).
        algorithms: Those that it may sign with.
        keys_url: Where its public keys are; by default, where its own description says.
        leeway: How far its clock may be off.
        keys_kept_for: How long keys are trusted after they were last fetched.
        name_claim: The claim that names the caller; it must never name two.
        groups_claim: The claim that lists the caller's groups.
        scopes_claim: A claim that says what the caller may do, as grants; none by default.
        groups: Grants by group.
        subjects: Grants by `sub`.
        ca_file: Certificates of the authority that vouches for the issuer.
        token_file: A token to be sent when keys are fetched, read anew each time.
        sign_in: How people sign in to pages with it; they do not by default.
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
    def _send_tokens_only_where_told(self) -> Issuer:
        if self.token_file is not None and self.keys_url is None:
            raise ValueError("token_file is sent to keys_url alone: set that too")
        return self
