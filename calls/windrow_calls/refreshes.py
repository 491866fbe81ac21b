"""Refreshes of tables: start one, follow it to its end, or stop it."""

from __future__ import annotations

import time
from collections.abc import Callable

from windrow_calls.arguments import checked
from windrow_calls.errors import RefreshFailedError
from windrow_calls.transport import Calls, read_answer, table_path
from windrow_core.cards import count_text
from windrow_core.models import Problem, RefreshProgress, RefreshRequest, RefreshStatus

_POLL_S = 0.1
_MAX_POLL_S = 1.0
# If the coordinator that runs a refresh stops, the refresh is requested again.
_ATTEMPTS = 5
_ABANDONED = "urn:windrow:problem:refresh-abandoned"


class RefreshCalls(Calls):
    """Calls about refreshes."""

    def refresh(
        self,
        name: str,
        *,
        full: bool = False,
        valid_write_ids: str | None = None,
        version: str | int | None = None,
        on_progress: Callable[[RefreshProgress], None] | None = None,
    ) -> RefreshStatus:
        """List a table's files again, and wait until the new snapshot is published.

        Args:
            name: Name of the table.
            full: Whether to compare every file, also of a table with `trust_folder_times`. Other
                tables are always compared in full.
            valid_write_ids: For transactional tables: the valid write ids, as Hive's metastore
                reports them, or `on-disk`. By default everything on disk is read. If the current
                snapshot was made with write ids, they must be given again.
            version: A version of a Delta table; or a snapshot id, branch or tag of an Iceberg
                table. It becomes an additional snapshot, which `read(…, version=…)` finds. By
                default, the newest version becomes the current snapshot.
            on_progress: Called with the progress while the refresh runs, about once a second or
                more often; by default, it is shown in a terminal or a notebook.

        Only one refresh of a table runs at a time: if one is running, this waits for it. The
        refresh continues if this program stops; `cancel_refresh` stops it.

        Raises:
            RefreshFailedError: The files cannot be read as a table, or the refresh was cancelled.
                Nothing was published, and the previous snapshot is still current.

        Example:
            status = client.refresh("sales.events")
            status.files_added, status.files_removed
        """
        path = _refresh_of(name)
        params: dict[str, str | int] = {"full": "true"} if full else {}
        body = None
        if valid_write_ids is not None or version is not None:
            request = {
                "valid_write_ids": valid_write_ids,
                "version": None if version is None else str(version),
            }
            body = checked(RefreshRequest, request).model_dump_json()
        if on_progress is not None:
            return self._refreshed(path, params, body, on_progress)
        with self._waiting(f"{name}: refreshing") as show:
            return self._refreshed(
                path, params, body, lambda now: show(f"{name}: {describe_refresh(now)}")
            )

    def _refreshed(
        self,
        path: str,
        params: dict[str, str | int],
        body: str | None,
        on_progress: Callable[[RefreshProgress], None],
    ) -> RefreshStatus:
        headers = {"Prefer": "respond-async"}
        attempt = 1
        while True:
            answer = self._transport.call("POST", path, params=params, headers=headers, body=body)
            status = self._follow(read_answer(RefreshStatus, answer), on_progress)
            if status.problem is None:
                return status
            problem = Problem.model_validate(status.problem)
            if problem.type != _ABANDONED or attempt == _ATTEMPTS:
                raise RefreshFailedError(problem)
            attempt += 1

    def cancel_refresh(self, name: str) -> RefreshStatus:
        """Stop the running refresh of a table, whoever started it, and wait for its end.

        Returns:
            The final status: `cancelled`, or `done` if the refresh was already being published.

        Raises:
            NotFoundError: No refresh of the table is running.

        Example:
            client.cancel_refresh("sales.events")
        """
        answer = self._transport.call("DELETE", _refresh_of(name))
        return self._follow(read_answer(RefreshStatus, answer), None)

    def _follow(
        self, status: RefreshStatus, on_progress: Callable[[RefreshProgress], None] | None
    ) -> RefreshStatus:
        poll_s = _POLL_S
        while status.status == "running":
            if on_progress is not None:
                on_progress(status.progress)
            time.sleep(poll_s)
            poll_s = min(poll_s * 1.5, _MAX_POLL_S)
            answer = self._transport.call("GET", _refresh_of(status.table))
            status = read_answer(RefreshStatus, answer)
        if on_progress is not None:
            on_progress(status.progress)
        return status


def _refresh_of(table: str) -> str:
    return f"{table_path(table)}/refresh"


def describe_refresh(now: RefreshProgress) -> str:
    """Describe the progress of a refresh in a few words."""
    if now.phase == "listing":
        return (
            f"listing, {count_text(now.files_found, 'file')} in "
            f"{count_text(now.folders_listed, 'folder')}"
        )
    if now.phase == "reading footers":
        return f"reading footers, {now.footers_read:,} of {now.footers_total:,}"
    return now.phase
