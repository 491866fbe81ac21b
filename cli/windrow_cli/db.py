"""`windrow db …`: manage the coordinator's database."""

from __future__ import annotations

import asyncio
from typing import Any

from windrow_calls.installed import require_service
from windrow_calls.terminal.consoles import show, show_json
from windrow_calls.terminal.options import AsJson, StateDir
from windrow_calls.terminal.render import message
from windrow_cli.groups import command_group

app = command_group("Manage the coordinator's database.")


@app.command()
def upgrade(state_dir: StateDir = None, as_json: AsJson = False) -> None:
    """Upgrade the database schema to this version of Windrow.

    WINDROW_DATABASE_URL names the database; without it, the embedded one is upgraded. If a step
    fails, nothing changes. Several processes may run this at the same time.
    """
    require_service()
    from windrow_service import bootstrap
    from windrow_service.settings import Settings

    settings: dict[str, Any] = {} if state_dir is None else {"state_dir": state_dir}
    done = bootstrap.upgrade(Settings.model_validate(settings))
    if as_json:
        show_json({"before": done.before, "after": done.after})
    elif done.before == done.after:
        show(message(f"the database is already at revision {done.after}"))
    else:
        show(message(f"upgraded the database from {done.before or '-'} to revision {done.after}"))


@app.command()
def trust_clock(state_dir: StateDir = None, as_json: AsJson = False) -> None:
    """Confirm that this machine's clock is right.

    The embedded database records the time, and trusts its record if the clock is set to another
    time: a wrong clock would end leases and drop partitions. PostgreSQL has its own clock.
    """
    require_service()
    from windrow_service import administration
    from windrow_service.settings import Settings

    settings: dict[str, Any] = {} if state_dir is None else {"state_dir": state_dir}
    at = asyncio.run(administration.trust_clock(Settings.model_validate(settings)))
    if as_json:
        show_json({"at": None if at is None else at.isoformat()})
    elif at is None:
        show(message("PostgreSQL's own clock counts", "set the clock of the machine that is wrong"))
    else:
        show(message("this machine's clock counts from now on"))
