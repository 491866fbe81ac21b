"""Workers: list them, and send the reports of their agents."""

from __future__ import annotations

from urllib.parse import quote

from windrow_calls.listing import Listing
from windrow_calls.transport import Calls, read_answer
from windrow_core.models import (
    CachedFilesCount,
    CachedFilesReport,
    Heartbeat,
    WorkerInfo,
    WorkerPage,
)


class WorkerCalls(Calls):
    """Calls about workers; the last two are for their agents."""

    def workers(self) -> Listing[WorkerInfo]:
        """Return the live workers by id.

        Example:
            [worker.host for worker in client.workers()]
        """
        return self._transport.listing(WorkerPage, "workers", "/workers")

    def forget_worker(self, worker_id: str) -> None:
        """Forget a worker and the files that it holds, until its next heartbeat.

        Example:
            client.forget_worker("node-3")
        """
        self._transport.call("DELETE", _path_of(worker_id))

    def beat(self, worker_id: str, heartbeat: Heartbeat) -> WorkerInfo:
        """Send a worker's heartbeat; repeat it well within `heartbeat.ttl_seconds`.

        Returns:
            The worker, with its session. If the session differs from the previous one, the worker
            had been forgotten and should report all files that it holds.
        """
        answer = self._transport.call("PUT", _path_of(worker_id), body=heartbeat.model_dump_json())
        return read_answer(WorkerInfo, answer)

    def report_cached_files(self, worker_id: str, report: CachedFilesReport) -> CachedFilesCount:
        """Report which files of a table a worker holds, or no longer holds.

        Raises:
            NotFoundError: There is no such table, or the worker is in another session.
        """
        path = f"{_path_of(worker_id)}/cached-files"
        answer = self._transport.call("POST", path, body=report.model_dump_json())
        return read_answer(CachedFilesCount, answer)


def _path_of(worker_id: str) -> str:
    return f"/workers/{quote(worker_id, safe='')}"
