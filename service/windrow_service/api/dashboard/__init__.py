"""`/dashboard`: pages for operators, over the use cases that the API calls."""

from __future__ import annotations

from fastapi import APIRouter

from windrow_service.api.dashboard import signing_in, tables

PARTS = (signing_in.open_router, signing_in.router, tables.router)

router = APIRouter()
for part in PARTS:
    router.include_router(part)
