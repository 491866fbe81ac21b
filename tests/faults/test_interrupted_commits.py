"""Whatever interrupts a commit, whoever asks next finds it, and finishes or undoes it unforced."""

from __future__ import annotations

import fcntl
import os
import signal
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from itertools import product
from pathlib import Path

import pytest

import windrow
import windrow_tables.commits
from tests.support.faults.proxies import Proxy, Verdict, proxy
from tests.support.faults.readers import ids_in, planned_ids
from tests.support.faults.writers import Writers, forking_writers, report_of, stage
from tests.support.laws import a_few, is_nightly
from tests.support.servers.coordinators import coordinator_process, running, wait_until
from tests.support.servers.databases import new_database
from windrow.client import Client
from windrow_calls.errors import WindrowError
from windrow_service import bootstrap
from windrow_service.settings import Settings
from windrow_service.store.database import database_path
from windrow_tables.commits import begin, posix
from windrow_tables.commits.errors import CommitBlockedError, UnknownCommitError
from windrow_tables.commits.inventories import list_files, take_inventory

DAYS = ("ds=2026-11-01", "ds=2026-11-02", "ds=2026-11-03")
OLD = {DAYS[0]: range(20), DAYS[1]: range(20, 40), DAYS[2]: range(40, 60)}
FLAT = {"": range(20)}
# Mode of the write that is interrupted, its rows, and the rows after it: in a table with partitions
# and in one without.
WRITES = {
    "append": ("append", OLD, {DAYS[0]: [900], "ds=new": [901]}, [*range(60), 900, 901]),
    "overwrite": ("overwrite", OLD, {DAYS[0]: [900]}, [900]),
    "flat append": ("append", FLAT, {"": [900]}, [*range(20), 900]),
    "flat overwrite": ("overwrite", FLAT, {"": [900]}, [900]),
}
STEPS_UNDONE = ("staged", "admitted")
STEPS = (*STEPS_UNDONE, "recorded", "moved in", "published", "tidied", "noted", "forgotten")


@pytest.fixture(scope="module")
def state_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def url(state_dir: Path) -> Iterator[str]:
    with running(Settings(state_dir=state_dir, allowed_locations=("/",))) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with windrow.connect(url) as client:
        yield client


class Table:
    """A table with rows, made through a client.

    Args:
        client: Client of its coordinator.
        location: A folder that does not exist.
        rows: Ids by folder.
    """

    def __init__(self, client: Client, location: Path, rows: dict[str, Sequence[int]]) -> None:
        self.name = f"t_{location.parent.name}_{location.name}".replace("-", "_").lower()
        self.location = location
        stage(str(location), named(rows, "old"))
        self.register(client, self.name)

    def register(self, client: Client, name: str) -> None:
        """Register the folder under a name, and publish its files."""
        client.register_table(name, str(self.location))
        files = list_files(str(self.location))
        partitions = ["ds"] if "/" in files["path"][0].as_py() else []
        client.publish(name, take_inventory(str(self.location), files, partitions).files)

    def assert_is_whole(self, client: Client, url: str, rows: Sequence[int]) -> None:
        """Assert that a reader with a plan and one that lists folders see each row once."""
        paths = list_files(str(self.location))["path"].to_pylist()
        assert sorted(i for path in paths for i in ids_in(self.location / path)) == sorted(rows)
        assert planned_ids(url, self.name, self.location) == sorted(rows)
        assert not (self.location / "_windrow").exists()
        assert not list(client.writes(self.name, open_only=True))
        status = client.refresh(self.name, full=True)
        assert (status.changed, status.files_added, status.files_removed) == (False, 0, 0)

    def append(self, client: Client, ids: Sequence[int]) -> None:
        """Append rows to the first folder, as the next writer does, without waiting."""
        folder = DAYS[0] if (self.location / DAYS[0]).exists() else ""
        with begin(client, self.name, wait_seconds=0) as write:
            write.commit(report_of(stage(write.folder, named({folder: ids}, f"next{ids[0]}"))))


def named(rows: dict[str, Sequence[int]], name: str) -> dict[str, Sequence[int]]:
    return {f"{folder}/{name}.parquet".strip("/"): ids for folder, ids in rows.items()}


@pytest.mark.parametrize(
    ("kind", "step"), a_few(list(product(("flat append", "flat overwrite"), STEPS)), 3)
)
def test_a_driver_that_dies_in_a_table_without_partitions_leaves_old_or_new_rows(
    writers: Writers, url: str, client: Client, tmp_path: Path, kind: str, step: str
) -> None:
    mode, before, new, after = WRITES[kind]
    table = Table(client, tmp_path / "t", dict(before))

    outcome = writers.write(url, table.name, named(dict(new), "new"), mode=mode, dies=(step, 1))
    table.append(client, [1_000])

    assert outcome == "killed"
    left = [id_ for ids in before.values() for id_ in ids] if step in STEPS_UNDONE else after
    table.assert_is_whole(client, url, [*left, 1_000])


@pytest.mark.parametrize("step", ["admitted", "recorded", "published"])
def test_a_replica_that_dies_during_a_commit_leaves_it_to_the_next_write_at_another(
    writers: Writers, replicas: tuple[str, Path], tmp_path: Path, step: str
) -> None:
    database_url, folder = replicas
    mode, before, new, after = WRITES["overwrite"]

    with ExitStack() as stack:
        one, other = (
            stack.enter_context(
                coordinator_process(folder / "state", Path("/"), WINDROW_DATABASE_URL=database_url)
            )
            for _ in range(2)
        )
        client = stack.enter_context(windrow.connect(other.url))
        table = Table(client, tmp_path / "t", dict(before))
        outcome = writers.write(
            one.url,
            table.name,
            named(dict(new), "new"),
            mode=mode,
            kills=(step, one.process.pid),
        )
        table.append(client, [1_000])

        assert "no answer from the coordinator" in outcome
        left = range(60) if step in STEPS_UNDONE else after
        table.assert_is_whole(client, other.url, [*left, 1_000])


@pytest.fixture(scope="module")
def replicas(
    postgresql_server: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path]]:
    with new_database(postgresql_server) as url:
        bootstrap.upgrade(Settings.model_validate({"database_url": url}))
        yield url, tmp_path_factory.mktemp("replicas")


def test_a_request_whose_answer_is_lost_is_made_once_if_it_is_repeated_at_another_replica(
    replicas: tuple[str, Path], tmp_path: Path
) -> None:
    database_url, folder = replicas
    mode, before, new, after = WRITES["flat overwrite"]
    with ExitStack() as stack:
        one, other = (
            stack.enter_context(
                coordinator_process(folder / "state", Path("/"), WINDROW_DATABASE_URL=database_url)
            )
            for _ in range(2)
        )
        client = stack.enter_context(windrow.connect(other.url))
        for nth in range(1, 100, 1 if is_nightly() else 2):
            table = Table(client, tmp_path / f"t{nth}", dict(before))
            with (
                proxy(address_of(one.url)) as between,
                windrow.connect(f"http://127.0.0.1:{between.port}", attempts=2, check=False) as cut,
            ):
                cuts = Cuts(between, nth, "cut after", once=True, to=address_of(other.url))
                with begin(cut, table.name, mode) as write:  # type: ignore[arg-type]
                    write.commit(report_of(stage(write.folder, named(dict(new), "new"))))
            table.assert_is_whole(client, other.url, after)
            if cuts.seen < nth:
                break
        assert nth > 5
        assert "Traceback" not in one.log.read_text() + other.log.read_text()


def address_of(url: str) -> tuple[str, int]:
    host, port = url.removeprefix("http://").split(":")
    return host, int(port)


class Cuts:
    """Cuts one request of a driver's commit, and by default all later ones.

    Args:
        between: The proxy that the driver's requests go through.
        nth: The request, counted from the first one of the commit.
        how: Whether the request is lost, or only its answer.
        once: Whether later requests, and repetitions, are let through.
        to: Address of the replica that gets later requests; by default the same one.
    """

    def __init__(
        self,
        between: Proxy,
        nth: int,
        how: Verdict,
        *,
        once: bool = False,
        to: tuple[str, int] | None = None,
    ) -> None:
        self.seen = 0
        self._between = between
        self._to = to
        self._nth = nth
        self._how = how
        self._once = once
        between.judge = self._judge

    def _judge(self, data: bytes) -> Verdict:
        if not data.startswith((b"GET ", b"PUT ", b"POST ", b"DELETE ")):
            return "pass"
        self.seen += 1
        if self.seen == self._nth:
            self._between.target = self._to or self._between.target
            return self._how
        return "pass" if self.seen < self._nth or self._once else "cut before"


@pytest.mark.parametrize(
    ("kind", "how"), [("append", "cut after"), ("flat overwrite", "cut before")]
)
def test_a_coordinator_that_is_away_from_any_request_on_leaves_the_commit_to_the_next_write(
    url: str, client: Client, tmp_path: Path, kind: str, how: Verdict
) -> None:
    mode, before, new, after = WRITES[kind]
    old = [id_ for ids in before.values() for id_ in ids]
    outcomes = set()
    # Of the two ways, one cuts the odd requests, and the other one the even ones.
    first, step = (1, 1) if is_nightly() else (1 if how == "cut after" else 2, 2)
    for nth in range(first, 100, step):
        table = Table(client, tmp_path / f"t{nth}", dict(before))
        with (
            proxy(address_of(url)) as between,
            windrow.connect(f"http://127.0.0.1:{between.port}", attempts=1, check=False) as cut,
        ):
            write = begin(cut, table.name, mode)  # type: ignore[arg-type]
            rows = stage(write.folder, named(dict(new), "new"))
            cuts = Cuts(between, nth, how)
            try:
                write.commit(report_of(rows))
                outcome = "committed"
            except WindrowError as error:
                outcome = type(error).__name__
        table.append(client, [1_000])

        outcomes.add(outcome)
        finished = outcome in ("committed", "CommitInterruptedError")
        table.assert_is_whole(client, url, [*(after if finished else old), 1_000])
        if cuts.seen < nth:
            break
    assert outcomes == {"CoordinatorUnreachableError", "CommitInterruptedError", "committed"}


@pytest.mark.parametrize("step", a_few(["staged", "exchanged", "noted"], 2))
def test_recoveries_that_race_finish_or_undo_a_commit_once(
    writers: Writers, url: str, client: Client, tmp_path: Path, step: str
) -> None:
    mode, before, new, after = WRITES["append"]
    table = Table(client, tmp_path / "t", dict(before))
    writers.write(url, table.name, named(dict(new), "new"), mode=mode, dies=(step, 1))

    with ThreadPoolExecutor(3) as threads, ExitStack() as stack:
        racing = [stack.enter_context(forking_writers()) for _ in range(3)]
        outcomes = threads.map(
            lambda one: racing[one].write(
                url, table.name, {f"{DAYS[1]}/racing{one}.parquet": [2_000 + one]}
            ),
            range(3),
        )
        assert list(outcomes) == ["committed"] * 3

    left = range(60) if step == "staged" else after
    table.assert_is_whole(client, url, [*left, 2_000, 2_001, 2_002])


@contextmanager
def paused_write(
    writers: Writers,
    client: Client,
    url: str,
    table: str,
    files: Mapping[str, Sequence[int]],
    *,
    mode: str,
    step: str,
    pid: Path,
) -> Iterator[Future[str]]:
    """Pause a write at a step until its lease has expired, and for the block; yield its outcome."""
    with ThreadPoolExecutor(1) as threads:
        pauses = (step, str(pid))
        outcome = threads.submit(
            writers.write, url, table, files, mode=mode, pauses=pauses, lease_seconds=1
        )
        try:
            wait_until(pid.exists)
            wait_until(lambda: not any(one.alive for one in client.writes(table)))
            yield outcome
        finally:
            os.kill(int(pid.read_text()), signal.SIGCONT)


PAUSES = (
    "staged",
    "admitted",
    "linked",
    "recorded",
    "exchanging",
    "moved in",
    "published",
    "noted",
)


@pytest.mark.parametrize("step", ["admitted", "exchanging", "noted"])
def test_a_paused_driver_keeps_its_commit_on_its_machine(
    writers: Writers, url: str, client: Client, tmp_path: Path, step: str
) -> None:
    mode, before, new, after = WRITES["append"]
    table = Table(client, tmp_path / "t", dict(before))
    files = named(dict(new), "new")
    paused = paused_write(
        writers, client, url, table.name, files, mode=mode, step=step, pid=tmp_path / "pid"
    )
    with paused as outcome:
        (left,) = windrow_tables.commits.recover(client, table.name)

    assert (left.outcome, left.reason) == ("left", "its driver is running")
    assert outcome.result() == "committed"
    table.append(client, [1_000])
    table.assert_is_whole(client, url, [*after, 1_000])


@pytest.mark.parametrize(
    ("kind", "step"),
    a_few(
        [("overwrite", step) for step in PAUSES]
        + [("flat overwrite", step) for step in ("admitted", "recorded", "published")],
        3,
    ),
)
def test_a_paused_driver_moves_nothing_after_another_machine_has_ended_its_commit(
    writers: Writers,
    url: str,
    client: Client,
    tmp_path: Path,
    kind: str,
    step: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mode, before, new, after = WRITES[kind]
    table = Table(client, tmp_path / "t", dict(before))
    files = named(dict(new), "new")
    paused = paused_write(
        writers, client, url, table.name, files, mode=mode, step=step, pid=tmp_path / "pid"
    )
    with paused as outcome:
        # Locks of a file system that machines do not share say nothing to each other.
        monkeypatch.setattr(fcntl, "flock", lambda descriptor, operation: None)
        monkeypatch.setattr(posix, "_machine", lambda: b"another")
        table.append(client, [1_000])
        # What the paused driver wanted to remove is there again.
        for folder in before:
            again = named({folder: [2_000 + len(folder)]}, "again")
            with begin(client, table.name) as write:
                write.commit(report_of(stage(write.folder, again)))
            if folder:
                break
        monkeypatch.undo()
    answer = outcome.result()

    undone = step in ("staged", "admitted", "linked")
    left = [id_ for ids in before.values() for id_ in ids] if undone else after
    if undone:
        assert answer.startswith(("WriteLostError", "WriteConflictError")), answer
    else:
        assert answer == "committed" or answer.startswith("CommitInterruptedError"), answer
    again_id = 2_000 + len(next(iter(before)))
    windrow_tables.commits.recover(client, table.name)
    table.assert_is_whole(client, url, [*left, 1_000, again_id])


@pytest.mark.parametrize("step", ["recorded", "exchanged"])
def test_a_commit_is_finished_if_the_database_is_restored_from_before_its_admission(
    writers: Writers, url: str, client: Client, tmp_path: Path, state_dir: Path, step: str
) -> None:
    mode, before, new, after = WRITES["append"]
    table = Table(client, tmp_path / "t", dict(before))
    writers.write(url, table.name, named(dict(new), "new"), mode=mode, dies=(step, 1))
    (record,) = client.writes(table.name)
    with closing(sqlite3.connect(database_path(state_dir))) as database, database:
        database.execute(
            "UPDATE writes SET state = 'staging' WHERE write_id = ?", (record.write_id,)
        )

    table.append(client, [1_000])

    table.assert_is_whole(client, url, [*after, 1_000])


def test_only_a_database_that_never_knew_a_commit_refuses_it(
    writers: Writers, url: str, client: Client, tmp_path: Path
) -> None:
    mode, before, new, after = WRITES["append"]
    table = Table(client, tmp_path / "t", dict(before))
    with (
        running(Settings(state_dir=tmp_path / "another", allowed_locations=("/",))) as another_url,
        windrow.connect(another_url) as another,
    ):
        table.register(another, table.name)
        writers.write(url, table.name, named(dict(new), "new"), mode=mode, dies=("exchanged", 1))

        with pytest.raises(UnknownCommitError, match="recover it there"):
            table.append(another, [999])
        table.append(client, [1_000])
        another.refresh(table.name)
        table.append(another, [1_001])

        client.refresh(table.name)
        table.assert_is_whole(client, url, [*after, 1_000, 1_001])
        table.assert_is_whole(another, another_url, [*after, 1_000, 1_001])


@pytest.mark.parametrize("step", ["staged", "exchanged", "forgotten"])
def test_a_write_to_one_of_two_tables_over_a_folder_finishes_a_commit_to_the_other(
    writers: Writers, url: str, client: Client, tmp_path: Path, step: str
) -> None:
    mode, before, new, after = WRITES["append"]
    table = Table(client, tmp_path / "t", dict(before))
    other = f"{table.name}_other"
    table.register(client, other)
    writers.write(url, table.name, named(dict(new), "new"), mode=mode, dies=(step, 1))

    with begin(client, other, wait_seconds=0) as write:
        write.commit(report_of(stage(write.folder, {f"{DAYS[1]}/other.parquet": [1_000]})))
    windrow_tables.commits.recover(client, table.name)

    left = [*range(60)] if step == "staged" else after
    assert planned_ids(url, table.name, table.location) == sorted(left)
    for name in (table.name, other):
        client.refresh(name)
        assert planned_ids(url, name, table.location) == sorted([*left, 1_000])


def test_a_staging_folder_without_a_lock_is_recovered_once_the_lease_has_run_out(
    writers: Writers, url: str, client: Client, tmp_path: Path
) -> None:
    mode, before, new, after = WRITES["append"]
    table = Table(client, tmp_path / "t", dict(before))
    files = named(dict(new), "new")
    writers.write(url, table.name, files, mode=mode, dies=("exchanged", 1), lease_seconds=2)
    (staging,) = (table.location / "_windrow" / "writes").iterdir()
    (staging / "lock").unlink()

    (left,) = windrow_tables.commits.recover(client, table.name)
    assert left.outcome == "left"
    wait_until(lambda: not any(one.alive for one in client.writes(table.name)))
    table.append(client, [1_000])

    table.assert_is_whole(client, url, [*after, 1_000])


def test_a_commit_whose_folder_somebody_removed_needs_a_person(
    writers: Writers, url: str, client: Client, tmp_path: Path
) -> None:
    mode, before, new, after = WRITES["append"]
    table = Table(client, tmp_path / "t", dict(before))
    files = named(dict(new), "new")
    writers.write(url, table.name, files, mode=mode, dies=("moved in", 1), lease_seconds=1)
    (table.location / "_windrow").rename(tmp_path / "removed")
    wait_until(lambda: not any(one.alive for one in client.writes(table.name)))

    with pytest.raises(CommitBlockedError, match="is gone: if it cannot be restored"):
        table.append(client, [1_000])
    (tmp_path / "removed").rename(table.location / "_windrow")
    table.append(client, [1_000])

    table.assert_is_whole(client, url, [*after, 1_000])


@pytest.mark.parametrize("waiting", [False, True])
def test_a_write_that_cannot_finish_another_says_that_its_own_rows_are_not_written(
    writers: Writers, url: str, client: Client, tmp_path: Path, waiting: bool
) -> None:
    mode, before, new, after = WRITES["append"]
    table = Table(client, tmp_path / "t", dict(before))
    files = named(dict(new), "new")
    with (
        proxy(address_of(url)) as between,
        windrow.connect(f"http://127.0.0.1:{between.port}", attempts=1, check=False) as cut,
        ExitStack() as stack,
    ):
        begun = stack.enter_context(begin(cut, table.name)) if waiting else None
        writers.write(url, table.name, files, mode=mode, dies=("exchanged", 1))
        (dead,) = (one for one in client.writes(table.name) if one.state == "committing")
        # The other commit cannot be published.
        between.judge = lambda data: "cut before" if data.startswith(b"POST ") else "pass"

        def write_on() -> None:
            write = begin(cut, table.name) if begun is None else begun
            write.commit(report_of(stage(write.folder, {f"{DAYS[1]}/mine.parquet": [1]})))

        with pytest.raises(CommitBlockedError, match=f"nothing was changed: .* {dead.write_id} "):
            write_on()
    table.append(client, [1_000])

    table.assert_is_whole(client, url, [*after, 1_000])


def test_records_of_open_writes_are_never_dropped(
    writers: Writers, url: str, client: Client, tmp_path: Path, state_dir: Path
) -> None:
    mode, before, new, after = WRITES["append"]
    table = Table(client, tmp_path / "t", dict(before))
    writers.write(url, table.name, named(dict(new), "new"), mode=mode, dies=("exchanged", 1))
    # As if thousands of writes had begun and ended since.
    with closing(sqlite3.connect(database_path(state_dir))) as database, database:
        database.execute(
            "UPDATE writes SET number = -5000 WHERE table_id ="
            " (SELECT table_id FROM tables WHERE name = ?)",
            (table.name,),
        )

    table.append(client, [1_000])

    table.assert_is_whole(client, url, [*after, 1_000])
