"""A coordinator as its callers see it: every call that can be made over HTTP."""

from __future__ import annotations

from collections.abc import Iterable

from windrow_calls.audit import AuditCalls
from windrow_calls.cache_rules import CacheRuleCalls
from windrow_calls.compaction import CompactionCalls
from windrow_calls.engines import EngineCalls
from windrow_calls.erasures import ErasureCalls
from windrow_calls.maintenance import MaintenanceCalls
from windrow_calls.packs import PackCalls
from windrow_calls.plans import PlanCalls
from windrow_calls.refreshes import RefreshCalls
from windrow_calls.snapshots import SnapshotCalls
from windrow_calls.tables import TableCalls
from windrow_calls.tokens import TokenCalls
from windrow_calls.transport import read_answer
from windrow_calls.workers import WorkerCalls
from windrow_calls.writes import WriteCalls
from windrow_core.models import CoordinatorStatus, ServiceConfig

# Calls of agents, jobs and writers, which nobody types: completion leaves them out.
OF_PROGRAMS = frozenset(
    {
        "added_files",
        "beat",
        "claim_work",
        "erasure_files",
        "finish_erasure",
        "gained_files",
        "look_again",
        "look_if_changed",
        "packing_files",
        "probe",
        "publish_pack",
        "put_table",
        "put_write",
        "remove_partitions",
        "renew_packing_run",
        "report_cached_files",
        "report_scans",
        "set_partitions",
        "table_version",
        "update_claim",
        "write_plan",
    }
)


class Coordinator(
    AuditCalls,
    CacheRuleCalls,
    CompactionCalls,
    EngineCalls,
    ErasureCalls,
    MaintenanceCalls,
    PackCalls,
    PlanCalls,
    RefreshCalls,
    SnapshotCalls,
    TableCalls,
    TokenCalls,
    WorkerCalls,
    WriteCalls,
):
    """All calls of one coordinator; each is defined in the module of its resource."""

    def __dir__(self) -> Iterable[str]:
        return set(super().__dir__()) - OF_PROGRAMS

    @property
    def url(self) -> str:
        """URL of the coordinator."""
        return self._transport.url

    @property
    def is_closed(self) -> bool:
        """Whether the connections are closed, so that further calls fail."""
        return self._transport.is_closed

    def config(self) -> ServiceConfig:
        """Return the coordinator's defaults and limits.

        Example:
            client.config().limits.max_plan_files
        """
        return read_answer(ServiceConfig, self._transport.call("GET", "/config"))

    def status(self) -> CoordinatorStatus:
        """Return the status of the coordinator: replicas, tables, maintenance, and what went wrong.

        Example:
            client.status().troubles
        """
        return read_answer(CoordinatorStatus, self._transport.call("GET", "/status"))
