"""Settings, read once from the environment: `WINDROW_PORT=8081`, `WINDROW_LIMITS__…`."""

from __future__ import annotations

import re
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
    TypeAdapter,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from windrow_core.files.limits import MAX_FIELDS, MAX_FOOTER_BYTES
from windrow_service.issuers.trust import Issuer, IssuerName, is_safe_url
from windrow_service.store.database import server_url

# A colon between locations; not a colon in a URI, which is before "//" or before a port.
_BETWEEN_LOCATIONS = re.compile(r":(?!//|[0-9]+(?:[/:]|$))")
_LOCATION_LIST = TypeAdapter(tuple[str, ...])

_Wait = Annotated[timedelta, Field(ge=timedelta(seconds=1), le=timedelta(hours=1))]


def _postgresql_url(url: SecretStr) -> SecretStr:
    server_url(url.get_secret_value())
    return url


def _base_url(url: str) -> str:
    parts = urlsplit(url)
    if not is_safe_url(url) or not re.fullmatch("[!-~]+", url) or "@" in parts.netloc:
        raise ValueError("it must begin with https://, without a user or a password")
    if parts.query or parts.fragment:
        raise ValueError("it must end with a host, a port or a path")
    return url.rstrip("/")


def _redis_url(url: SecretStr) -> SecretStr:
    if not url.get_secret_value().startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("it must begin with redis://, rediss:// or unix://")
    return url


def _absolute_or_uri(text: str) -> str:
    if "://" not in text:
        _absolute(Path(text))
    return text.rstrip("/")


def _absolute(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError("it must be an absolute path")
    return path


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class LimitSettings(_Section):
    """Limits on what callers may request."""

    max_body_bytes: Annotated[int, Field(ge=1024)] = 16 * 2**20
    """Most bytes of a request's body, except for published inventories."""
    max_publish_bytes: Annotated[int, Field(ge=1024)] = 512 * 2**20
    """Most bytes of a published inventory."""
    max_publish_decoded_bytes: Annotated[int, Field(ge=2**20, le=2**40)] = 512 * 2**20
    """Most memory of a published inventory after decoding."""
    max_footer_bytes: Annotated[int, Field(ge=2**16, le=2**31)] = MAX_FOOTER_BYTES
    """Longest footer of a data file that a refresh reads."""
    max_fields: Annotated[int, Field(ge=100, le=1_000_000)] = MAX_FIELDS
    """Most fields of a table or of a file's schema; lists, maps, structs and their fields count."""
    max_filter_nodes: Annotated[int, Field(ge=1)] = 2_000
    """Most comparisons and connectives of a filter."""
    max_filter_depth: Annotated[int, Field(ge=1, le=200)] = 90
    """Deepest nesting of a filter."""
    max_plan_files: Annotated[int, Field(ge=1)] = 20_000_000
    """Most files of one plan, after the filter."""
    max_page_groups: Annotated[int, Field(ge=1, le=10_000)] = 10_000
    """Most groups in one page of a plan."""
    default_page_groups: Annotated[int, Field(ge=1)] = 1_000
    """Groups in a page of a plan unless the caller says otherwise."""
    max_page_splits: Annotated[int, Field(ge=1)] = 100_000
    """Most splits in one page of a plan."""
    max_plan_bytes: Annotated[int, Field(ge=2**20)] = 8 * 2**30
    """Most memory of one plan's groups."""
    plan_ttl: Annotated[timedelta, Field(ge=timedelta(seconds=1), le=timedelta(days=365))] = (
        timedelta(hours=1)
    )
    """How long the groups of a plan are kept."""
    max_connections: Annotated[int, Field(ge=10)] = 500
    """Most open connections of a replica."""
    max_head_bytes: Annotated[int, Field(ge=8192)] = 64 * 2**10
    """Longest request line with its headers."""
    max_headers: Annotated[int, Field(ge=20)] = 100
    """Most headers of a request."""
    head_timeout: _Wait = timedelta(seconds=10)
    """How long the head of a request may take."""
    body_timeout: _Wait = timedelta(seconds=20)
    """How long a body may arrive at less than 1,024 bytes per second."""
    requests_per_minute: Annotated[int, Field(ge=0)] = 0
    """Most requests of one caller in a minute; 0 means any number."""
    wrong_tokens_per_minute: Annotated[int, Field(ge=0)] = 30
    """Most wrong tokens from one address, or with one client id, in a minute; 0: any number."""

    @model_validator(mode="after")
    def _fit_pages(self) -> LimitSettings:
        if self.default_page_groups > self.max_page_groups:
            raise ValueError(
                f"default_page_groups ({self.default_page_groups}) is above max_page_groups "
                f"({self.max_page_groups}): lower it"
            )
        return self


class SnapshotSettings(_Section):
    """How long, and how many, snapshots other than the current one are kept."""

    keep_last: Annotated[int, Field(ge=1)] = 100
    """Newest snapshots of a table that are always kept."""
    max_age: Annotated[timedelta, Field(ge=timedelta(0), le=timedelta(days=36_500))] = timedelta(
        days=7
    )
    """How long other snapshots are kept."""
    max_count: Annotated[int, Field(ge=1)] = 10_000
    """Most snapshots of a table."""

    @model_validator(mode="after")
    def _fit(self) -> SnapshotSettings:
        if self.max_count < self.keep_last:
            raise ValueError(
                f"max_count ({self.max_count}) is below keep_last ({self.keep_last}): raise it"
            )
        return self


class AuditSettings(_Section):
    """How long, and how many, records of changes are kept."""

    max_age: Annotated[timedelta, Field(ge=timedelta(hours=1), le=timedelta(days=36_500))] = (
        timedelta(days=365)
    )
    """How long records are kept."""
    max_records: Annotated[int, Field(ge=1)] = 1_000_000
    """Most records."""


class HistorySettings(_Section):
    """How long, and for how many plans, figures are kept after the groups have expired."""

    max_age: Annotated[timedelta, Field(ge=timedelta(0), le=timedelta(days=36_500))] = timedelta(
        days=7
    )
    """How long figures of plans are kept; `PT0S` keeps none."""
    max_plans: Annotated[int, Field(ge=1)] = 100_000
    """Most plans."""


class MaintenanceSettings(_Section):
    """How often maintenance is decided about, and how long its receipts are kept."""

    every: Annotated[timedelta, Field(ge=timedelta(seconds=1), le=timedelta(days=1))] = timedelta(
        minutes=5
    )
    """Time between decisions about all tables that have a policy."""
    max_age: Annotated[timedelta, Field(ge=timedelta(days=30), le=timedelta(days=36_500))] = (
        timedelta(days=90)
    )
    """How long receipts are kept."""
    max_receipts: Annotated[int, Field(ge=1_000)] = 100_000
    """Most receipts."""


class MetricsSettings(_Section):
    """Where metrics are served, and how many series they have."""

    port: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None,
        description="Port of `host` on which `GET /metrics` answers, to anyone who reaches it; by "
        "default nothing is measured.",
    )
    max_tables: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=20, description="Most tables that are named: those with the most excess files."
    )
    max_workers: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=100, description="Most workers that are named: those that read the most files."
    )


class EngineSettings(_Section):
    """How tables are described for engines other than Spark, at `/iceberg`."""

    metadata_folder: Annotated[Path, AfterValidator(_absolute)] | None = Field(
        default=None,
        description="Folder for the metadata, which the engines must find under the same path; by "
        "default `engines` in `state_dir` if the database is there too, else none, and no table is "
        "described.",
    )


class PackSettings(_Section):
    """Packs: files that hold the rows of many small files of a table."""

    folder: Annotated[str, AfterValidator(_absolute_or_uri)] | None = Field(
        default=None,
        description="Folder for packs, outside of all tables, as a path or a URI such as "
        "s3://bucket/packs, which readers must find under the same name; by default `packs` in "
        "`state_dir` if the database is there too, else none, and no packs are made.",
    )
    erase_within: Annotated[timedelta, Field(ge=timedelta(0), le=timedelta(days=30))] = timedelta(
        hours=24
    )
    """How long the rows of a file that is gone may stay in packs; 0 means no time at all."""


class Settings(BaseSettings):
    """All settings of the coordinator."""

    model_config = SettingsConfigDict(
        env_prefix="WINDROW_",
        env_nested_delimiter="__",
        frozen=True,
        extra="forbid",
        # A rejected value may contain a password.
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )

    host: str = "127.0.0.1"
    """Address to listen on. On anything but loopback, every caller needs a token."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """Port to listen on; 0 for any free port."""
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The lowest level that is logged; health checks are `debug`."
    )
    database_url: Annotated[SecretStr, AfterValidator(_postgresql_url)] | None = Field(
        default=None,
        description="PostgreSQL, as postgresql://user:password@host/database, with parameters of "
        "libpq after a question mark; by default, a database embedded in `state_dir`.",
    )
    redis_url: Annotated[SecretStr, AfterValidator(_redis_url)] | None = Field(
        default=None,
        description="Redis for the cache map, as redis://user:password@host/0 or rediss://…; by "
        "default, the cache map is in the process, which allows only one replica.",
    )
    state_dir: Path = Field(
        default=Path(".windrow"), description="Folder of the embedded database."
    )
    allowed_locations: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Folders that tables may be in, as paths or URIs such as "
        "s3://bucket/tables; several are joined with ':' or given as a JSON list.",
    )
    serve_without_authentication: bool = Field(
        default=False,
        description="Require no tokens, even on an address that other machines can reach.",
    )
    require_tokens: bool = Field(
        default=False, description="Require tokens on a loopback address too."
    )
    issuers: dict[IssuerName, Issuer] = Field(
        default={},
        description="Issuers whose access tokens are accepted besides Windrow's own, by name.",
    )
    public_url: Annotated[str, AfterValidator(_base_url)] | None = Field(
        default=None,
        description="Where browsers find the coordinator, such as https://windrow.example.com; "
        "needed to sign in with an issuer, which sends them back there.",
    )
    planner_threads: Annotated[int, Field(ge=1, le=256)] = 4
    """Plans that a replica makes at the same time."""
    max_waiting: Annotated[int, Field(ge=0)] = 64
    """Plans that may wait for a thread; beyond that a caller gets 503."""
    manifest_cache_bytes: Annotated[int, Field(ge=0)] = Field(
        default=512 * 2**20,
        description="Most bytes of decoded manifests that are kept in memory; 12.5 % of them are "
        "for the partition values of snapshots, and 12.5 % for the files that snapshots add.",
    )
    limits: LimitSettings = LimitSettings()
    snapshots: SnapshotSettings = SnapshotSettings()
    audit: AuditSettings = AuditSettings()
    history: HistorySettings = HistorySettings()
    maintenance: MaintenanceSettings = MaintenanceSettings()
    metrics: MetricsSettings = MetricsSettings()
    engines: EngineSettings = EngineSettings()
    packs: PackSettings = PackSettings()

    @model_validator(mode="before")
    @classmethod
    def _split_locations(cls, values: dict[str, object]) -> dict[str, object]:
        raw = values.get("allowed_locations")
        if isinstance(raw, str):
            values = values | {"allowed_locations": _locations(raw)}
        return values

    @model_validator(mode="after")
    def _check_token_settings(self) -> Settings:
        if self.require_tokens and self.serve_without_authentication:
            raise ValueError(
                "require_tokens and serve_without_authentication contradict each other: unset one"
            )
        return self

    @model_validator(mode="after")
    def _require_public_url(self) -> Settings:
        signing_in = [name for name, issuer in self.issuers.items() if issuer.sign_in]
        if signing_in and self.public_url is None:
            raise ValueError(
                f"people sign in with issuer {signing_in[0]!r}, which must know where to send them "
                "back: set WINDROW_PUBLIC_URL"
            )
        return self

    @property
    def metadata_folder(self) -> Path | None:
        """Where engines find metadata; None if no table is described."""
        if self.engines.metadata_folder is None and self.database_url is None:
            return self.state_dir.absolute() / "engines"
        return self.engines.metadata_folder

    @property
    def packs_folder(self) -> str | None:
        """Where packs lie; None if none are made."""
        if self.packs.folder is None and self.database_url is None:
            return str(self.state_dir.absolute() / "packs")
        return self.packs.folder

    @property
    def tokens_required(self) -> bool:
        """Whether callers must send a token."""
        if self.serve_without_authentication:
            return False
        return self.require_tokens or not is_loopback(self.host)


def _locations(text: str) -> tuple[str, ...]:
    if text.lstrip().startswith("["):
        return _LOCATION_LIST.validate_json(text)
    return tuple(part for part in _BETWEEN_LOCATIONS.split(text) if part)


def is_loopback(host: str) -> bool:
    """Return whether a host name or address refers to this machine only."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
