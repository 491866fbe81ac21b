"""Serves one request when imported, so that forked coordinators inherit what libraries then build.

FastAPI builds a schema for each operation at the first request. With the first uses of Pydantic and
SQLAlchemy, that was more than half of the CPU time that each forked coordinator took to start.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import httpx

from tests.support.servers.coordinators import PLAIN, running
from windrow_service.settings import Settings

# Whoever forks the first coordinator may have set these; each coordinator gets its own variables.
for _name in [name for name in os.environ if name.startswith("WINDROW_")]:
    del os.environ[_name]
with tempfile.TemporaryDirectory() as _folder, running(Settings(state_dir=Path(_folder))) as _url:
    # A path that no route matches is compared with every route, which builds all of them.
    # The default would end the process of all forks on a busy machine.
    assert httpx.get(f"{_url}/none", timeout=60, verify=PLAIN).status_code == 404
