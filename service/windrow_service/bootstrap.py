"""Start the application, upgrade its database, and check whether it can start."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from fastapi import FastAPI

from windrow_core.files.without_pandas import keep_pandas_out
from windrow_service.administration import database_url
from windrow_service.api.app import create_app
from windrow_service.api.bodies import BodyLimits
from windrow_service.api.html.loading import load_pages
from windrow_service.api.services import Services
from windrow_service.issuers.trust import authorities_of
from windrow_service.settings import Settings
from windrow_service.store.clock import machine_clock
from windrow_service.store.database import open_database, upgrade_database
from windrow_service.store.migrate import Upgraded
from windrow_service.usecases.ports import Clock
from windrow_service.wiring.access import open_access
from windrow_service.wiring.adapters import open_adapters
from windrow_service.wiring.erasures import open_erasures
from windrow_service.wiring.maintenance import open_maintenance
from windrow_service.wiring.operations import open_operations
from windrow_service.wiring.packs import open_packing, open_packs, open_table_packs
from windrow_service.wiring.rooms import (
    open_added_files,
    open_caches,
    open_caching,
    open_engines,
    open_manifests,
    open_partitions,
    open_plans,
    open_snapshots,
    open_tables,
    open_upkeep,
    open_writes,
)

_SWITCH_S = 0.001


def build_app(
    settings: Settings, *, owns_process: bool = False, machine: Clock = machine_clock
) -> FastAPI:
    """Return the coordinator's application; nothing is opened before it starts.

    Args:
        settings: All settings.
        owns_process: Whether the process runs only the coordinator; it is then tuned, and pages
            are loaded at its start.
        machine: The clock of this machine.
    """

    @asynccontextmanager
    async def opened() -> AsyncIterator[Services]:
        async with open_services(settings, machine) as services:
            if owns_process:
                _tune_the_process()
                # In a thread, because it must not delay requests.
                asyncio.get_running_loop().run_in_executor(None, load_pages)
            yield services

    return create_app(
        opened,
        body_limits=BodyLimits(
            max_bytes=settings.limits.max_body_bytes,
            max_published_bytes=settings.limits.max_publish_bytes,
            # The chart's memory limit counts as many.
            max_held_bytes=settings.planner_threads * settings.limits.max_body_bytes,
        ),
    )


def upgrade(settings: Settings) -> Upgraded:
    """Upgrade the database to the revision that this version needs.

    Raises:
        StartError: The database belongs to a later version of Windrow, or is not Windrow's.
        StoreUnavailableError: The database does not answer, or is full.
    """
    return upgrade_database(database_url(settings))


async def check(settings: Settings) -> None:
    """Make sure that the database, and the files and ports in the settings, are ready for use.

    An embedded database is created, or upgraded to the newest revision.

    Raises:
        StartError: The database is at another revision, or a file or port cannot be used.
        StoreUnavailableError: The database does not answer, or cannot be created.
    """
    for name, issuer in settings.issuers.items():
        authorities_of(name, issuer)
    database = await open_database(database_url(settings))
    await database.aclose()
    if settings.metrics.port is not None:
        from windrow_service.api.metrics import listening

        listening(settings.host, settings.metrics.port).close()


@asynccontextmanager
async def open_services(
    settings: Settings, machine: Clock = machine_clock
) -> AsyncIterator[Services]:
    """Open every adapter, and close them in reverse order on exit.

    Args:
        settings: All settings.
        machine: The clock of this machine.
    """
    async with AsyncExitStack() as stack:
        adapters = await open_adapters(settings, machine, stack)
        manifests = open_manifests(adapters)
        partitions = open_partitions(adapters, manifests)
        added_files = open_added_files(adapters, manifests)
        caching = open_caching(adapters, manifests)
        tables = open_tables(adapters)
        packs = open_table_packs(adapters)
        engines = await open_engines(adapters, manifests, packs)
        plan_packing = open_packing(adapters, manifests, packs)
        yield Services(
            access=await open_access(adapters),
            tables=tables,
            snapshots=open_snapshots(adapters, manifests, partitions, added_files, packs),
            plans=open_plans(
                adapters, manifests, partitions, added_files, caching, tables.refreshes, packs
            ),
            writes=open_writes(adapters, manifests),
            packs=open_packs(adapters, manifests, plan_packing),
            erasures=await open_erasures(adapters, manifests, plan_packing, engines.describe),
            upkeep=open_upkeep(adapters, manifests, plan_packing),
            caches=open_caches(adapters, manifests, caching),
            maintenance=open_maintenance(adapters, manifests, partitions, plan_packing),
            engines=engines,
            operations=await open_operations(adapters),
        )


def _tune_the_process() -> None:
    keep_pandas_out()
    # Planning in small steps must not hold the interpreter lock for long while calls wait.
    sys.setswitchinterval(_SWITCH_S)
    # A full collection looks at every module's objects and stops all threads for 0.1 s, and a
    # page of many splits starts several: docs/decisions/0004-plan-in-threads.md.
    gc.collect()
    gc.freeze()
