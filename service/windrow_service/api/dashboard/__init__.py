"""`/dashboard`: pages for operators, over the use cases that the API calls."""

from __future__ import annotations

from fastapi import APIRouter

from windrow_service.api.dashboard import (
    access,
    caches,
    issuers,
    maintenance,
    overview,
    plans,
    policies,
    signing_in,
    table,
    tables,
    work,
)
from windrow_service.api.html.rendering import ROOT, MenuItem

# The first path of each page in the menu, its title, and its router.
_PAGES = (
    (MenuItem(f"{ROOT}/overview", "Overview"), overview.router),
    (MenuItem(f"{ROOT}/tables", "Tables"), tables.router),
    (MenuItem(f"{ROOT}/work", "Work"), work.router),
    (MenuItem(f"{ROOT}/maintenance", "Maintenance"), maintenance.router),
    (MenuItem(f"{ROOT}/plans", "Plans"), plans.router),
    (MenuItem(f"{ROOT}/cache", "Cache"), caches.router),
    (MenuItem(f"{ROOT}/access", "Access", needs_admin=True), access.router),
)
MENU = [item for item, _ in _PAGES]
PARTS = (
    signing_in.open_router,
    issuers.open_router,
    signing_in.router,
    *(pages for _, pages in _PAGES),
    table.router,
    policies.router,
)

router = APIRouter()
for part in PARTS:
    router.include_router(part)
