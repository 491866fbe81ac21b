"""`/dashboard`: pages for operators, over the use cases that the API calls."""

from __future__ import annotations

from fastapi import APIRouter

from windrow_service.api.dashboard import access, caches, issuers, plans, signing_in, tables, work

PARTS = (
    signing_in.open_router,
    issuers.open_router,
    signing_in.router,
    tables.router,
    work.router,
    plans.router,
    caches.router,
    access.router,
)

router = APIRouter()
for part in PARTS:
    router.include_router(part)
