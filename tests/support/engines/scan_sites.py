"""A coordinator that plans scans for engines, and clients that ask it for plans."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from anyio.from_thread import start_blocking_portal
from pyiceberg.catalog.rest import RestCatalog

from tests.support.servers.coordinators import PLAIN, running
from windrow_service import administration
from windrow_service.settings import Settings
from windrow_service.wiring import rooms

PLAN = "/iceberg/v1/namespaces/mine/tables/{}/plan"
TASKS = "/iceberg/v1/namespaces/mine/tables/{}/tasks"


@dataclass(frozen=True, slots=True)
class ScanSite:
    """A coordinator that requires tokens, and its clients.

    Attributes:
        url: Where it is.
        http: A client of it.
        admin: A token for everything.
        mine: A token to read the tables of the namespace `mine`.
        others: Another one.
        by_server: The catalog, for PyIceberg that leaves planning to the coordinator.
        by_client: The catalog, for PyIceberg that plans.
        most_tasks: Most tasks in an answer.
    """

    url: str
    http: httpx.Client
    admin: str
    mine: str
    others: str
    by_server: RestCatalog
    by_client: RestCatalog
    most_tasks: int

    def post(
        self, path: str, body: Any, token: str = "", engine: str = "test", method: str = "POST"
    ) -> httpx.Response:
        """Send a request."""
        headers = {"Authorization": f"Bearer {token or self.mine}", "User-Agent": engine}
        return self.http.request(method, path, json=body, headers=headers)

    def plan(self, name: str, filter: Any = None, **more: Any) -> dict[str, Any]:
        """Return the plan of a scan."""
        body = {**({} if filter is None else {"filter": filter}), **more}
        answer = self.post(PLAN.format(name), body)
        assert answer.status_code == 200, answer.text
        plan: dict[str, Any] = answer.json()
        assert plan["status"] == "completed"
        return plan

    def answers(self, name: str, plan: dict[str, Any]) -> list[dict[str, Any]]:
        """Return a plan and all of its pages: what has tasks, and the delete files that they name."""
        answers = [plan]
        for page in plan["plan-tasks"]:
            answer = self.post(TASKS.format(name), {"plan-task": page}).json()
            assert 0 < len(answer["file-scan-tasks"]) <= self.most_tasks
            answers.append(answer)
        return answers

    def tasks(self, name: str, plan: dict[str, Any]) -> list[dict[str, Any]]:
        """Return all tasks of a plan."""
        return [task for one in self.answers(name, plan) for task in one["file-scan-tasks"]]


@contextmanager
def scan_site(folder: Path, most_tasks: int, **more: Any) -> Iterator[ScanSite]:
    """Start a coordinator for tables in a folder.

    Args:
        folder: The folder.
        most_tasks: Most tasks in an answer.
        **more: Further settings.
    """
    usual: dict[str, Any] = {"state_dir": folder / "state", "allowed_locations": (str(folder),)}
    settings = Settings(port=0, require_tokens=True, **(usual | more))

    async def create(name: str, grant: str) -> str:
        async with administration.open_tokens(settings) as tokens:
            return (await tokens.create(name, (grant,), None))[1]

    with (
        pytest.MonkeyPatch.context() as patch,
        start_blocking_portal() as portal,
        httpx.Client(verify=PLAIN, timeout=60) as http,
    ):
        patch.setattr(rooms, "_MOST_TASKS", most_tasks)
        with running(settings) as url:
            admin, mine, others = (
                portal.call(create, name, grant)
                for name, grant in (("all", "admin"), ("mine", "read:mine.*"), ("o", "read:mine.*"))
            )
            http.base_url = httpx.URL(url)
            by_server, by_client = (
                RestCatalog("w", uri=f"{url}/iceberg", token=mine, **{"scan-planning-mode": mode})
                for mode in ("server", "client")
            )
            yield ScanSite(url, http, admin, mine, others, by_server, by_client, most_tasks)
            by_server.close()
            by_client.close()
