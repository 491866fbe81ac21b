"""Serves a request, when imported, so that forked coordinators inherit what the first one takes.

Libraries build much on first use, among it a schema for each operation: more than half of the CPU
time that a forked coordinator would take to start.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import httpx

from tests.support.servers import PLAIN, running
from windrow_service.settings import Settings

# Settings of whoever starts the first coordinator; each is started with variables of its own.
for _name in [name for name in os.environ if name.startswith("WINDROW_")]:
    del os.environ[_name]
with tempfile.TemporaryDirectory() as _folder, running(Settings(state_dir=Path(_folder))) as _url:
    # A path that no route matches is compared with every route, which builds all of them.
    assert httpx.get(f"{_url}/none", verify=PLAIN).status_code == 404
