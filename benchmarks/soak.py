"""Load replicas while they are killed, their database restarts, or a new version replaces them.

    python benchmarks/soak.py [--minutes 15] [--before FOLDER] [--quick] [--json FILE]

Three replicas share PostgreSQL and Redis, behind a front that tries the next replica if one refuses
the connection. Callers plan, publish, refresh, register, and change cache rules, tokens and writes,
at two thirds of the pace that they reach without a pause. Each minute a replica other than the
first is killed and started again; PostgreSQL is restarted once. With `--before FOLDER`, replicas of
the earlier version in that folder are replaced one by one instead.

Each change is numbered. In the end the tables and the audit log must show each exactly once.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import linear_regression, median
from tempfile import mkdtemp

import psycopg
import redis
from callers import KINDS, LEFT_RULES, LEFT_TABLES, STEADY, Calls, Done
from common import ROOT, arguments, console, write_figures
from psycopg.rows import scalar_row
from rich import box
from rich.table import Table as RichTable
from servers import CoordinatorProcess, coordinator_process
from tests.support.faults.proxies import Front, front
from tests.support.processes.forks import run_forked
from tests.support.servers.databases import PostgreSQL, postgresql
from tests.support.servers.redis import redis_process

from windrow_calls.terminal.consoles import show

NAME = "soak"
_REPLICAS = 3
_SHARE = 2 / 3
# How long plans are kept; figures count as warm after 1.5 times as long or later.
_PLAN_TTL_S = 60
_SAMPLE_EVERY_S = 5.0
_SETTINGS = {
    "WINDROW_REQUIRE_TOKENS": "true",
    "WINDROW_LIMITS__PLAN_TTL": f"PT{_PLAN_TTL_S}S",
    "WINDROW_SNAPSHOTS__KEEP_LAST": "20",
    "WINDROW_SNAPSHOTS__MAX_AGE": "PT0S",
}
# Kept for longer than a run: at most a row for each request.
_KEPT_LONGER = ("idempotency_keys", "audit", "plan_history", "tokens", "writes")
_FLAT_RATIO = 1.1
_SLACK = {"MB": 10.0, "descriptors": 20.0, "rows": 100.0, "keys": 20.0}


# --- the servers -------------------------------------------------------------


class Cluster:
    """Replicas behind a front, on one database.

    Attributes:
        url: URL of the front.
        database_url: URL of the database.
        folder: Folder of the tables.
        token: Token of an administrator.
        replicas: The running replicas.
    """

    def __init__(
        self, server: PostgreSQL, redis_url: str, folder: Path, shared: Front, before: Path | None
    ) -> None:
        self.url = f"http://127.0.0.1:{shared.port}"
        self.database_url = server.url
        self.redis_url = redis_url
        self.folder = folder
        self.replicas: list[CoordinatorProcess] = []
        self._server = server
        self._front = shared
        self._running: dict[str, ExitStack] = {}
        self._started = 0
        self.run_command(before, "db", "upgrade")
        said = self.run_command(before, "token", "create", "soak", "--scope", "admin")
        self.token = said.split()[-1]

    def run_command(self, checkout: Path | None, *words: str) -> str:
        """Run a command of this version, or of an earlier one; return its output."""
        url = {"WINDROW_DATABASE_URL": self.database_url}
        if checkout is None:
            done = run_forked(self.folder.parent, "windrow_cli", *words, **url)
        else:
            command = [sys.executable, "-m", "windrow_cli", *words]
            environment = _environment(checkout) | url
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, env=environment
            )
        if done.returncode:
            raise SystemExit(done.stderr)
        return done.stdout

    def start(self, checkout: Path | None = None) -> CoordinatorProcess:
        """Start a replica, wait until it is ready, and add it to the front."""
        self._started += 1
        with ExitStack() as stack:
            replica = stack.enter_context(
                coordinator_process(
                    self.folder.parent / f"replica{self._started}",
                    self.folder,
                    prefix=() if checkout is None else ("env", f"PYTHONPATH={_path(checkout)}"),
                    WINDROW_DATABASE_URL=self.database_url,
                    WINDROW_REDIS_URL=self.redis_url,
                    **_SETTINGS,
                )
            )
            self._running[replica.url] = stack.pop_all()
        self.replicas = [*self.replicas, replica]
        self._front.targets = [*self._front.targets, _address(replica)]
        return replica

    def kill(self, number: int) -> None:
        """Kill a replica, as a crash would."""
        self._end(self.replicas[number], self.replicas[number].kill)

    def stop(self, number: int) -> None:
        """Ask a replica to finish its work and end, as an operator would."""
        self._end(self.replicas[number], self.replicas[number].stop)

    def _end(self, replica: CoordinatorProcess, how: Callable[[], object]) -> None:
        # The replica ends first, so the front notices it by refused connections.
        how()
        self._front.targets = [one for one in self._front.targets if one != _address(replica)]
        self.replicas = [one for one in self.replicas if one is not replica]
        self._running.pop(replica.url).close()

    def restart_database(self) -> None:
        """Stop PostgreSQL, which cuts all connections, and start it again."""
        self._server.stop()
        self._server.start()

    def close(self) -> None:
        """Kill all replicas."""
        while self.replicas:
            self.kill(0)

    def logs(self) -> Iterator[str]:
        """Yield the log of each replica."""
        for log in sorted(self.folder.parent.glob("replica*.log")):
            yield log.read_text()

    @contextmanager
    def called(
        self, run: str, paces: dict[str, float], checkout: Path | None = None
    ) -> Iterator[Done]:
        """Run callers until the end of the block, and then fill in the outcome of their calls.

        Args:
            run: Prefix of the names of everything that they make.
            paces: See `Calls`.
            checkout: Folder of the client's version; by default this one.
        """
        calls = Calls(run=run, url=self.url, token=self.token, folder=str(self.folder), paces=paces)
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "benchmarks" / "callers.py"), json.dumps(asdict(calls))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=_environment(checkout),
        )
        done = Done()
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield done
            output, _ = process.communicate(timeout=300)
        finally:
            process.kill()
            process.wait()
        for name, value in json.loads(output).items():
            setattr(done, name, value)


@contextmanager
def cluster(replicas: int, before: Path | None = None) -> Iterator[Cluster]:
    """Run replicas, of an earlier version if its checkout is given, until the end of the block."""
    # In a folder that the database server can enter.
    folder = Path(mkdtemp(prefix="windrow-soak-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        server = stack.enter_context(postgresql())
        store = stack.enter_context(redis_process(folder))
        (folder / "tables").mkdir()
        shared = stack.enter_context(front())
        made = Cluster(server, store.url, folder / "tables", shared, before)
        stack.callback(made.close)
        for _ in range(replicas):
            made.start(before)
        yield made


def _environment(checkout: Path | None) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if "WINDROW" not in name}
    return environment if checkout is None else environment | {"PYTHONPATH": _path(checkout)}


def _path(checkout: Path) -> str:
    return ":".join(
        str(checkout / room)
        for room in ("core", "calls", "tables", "spark", "spark_jobs", "client", "cli", "service")
    )


def _address(replica: CoordinatorProcess) -> tuple[str, int]:
    host, _, port = replica.url.removeprefix("http://").partition(":")
    return host, int(port)


# --- each change once --------------------------------------------------------


@dataclass(slots=True)
class Account:
    """The changes of a run, compared with the database.

    Attributes:
        changes: Number of expected changes.
        lost: Changes that the database does not show.
        doubled: Changes that it shows twice, or that nobody made.
    """

    changes: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)

    def compare(self, expected: Counter[str], records: Counter[str]) -> None:
        """Add expected changes, and those that were found."""
        self.changes += expected.total()
        self.lost += sorted((expected - records).elements())
        self.doubled += sorted((records - expected).elements())


def account(database_url: str, run: str, done: Done, *, audited: bool = True) -> Account:
    """Compare the calls of a run with the tables of the database and with its audit log.

    Args:
        database_url: URL of the database.
        run: Name of the run.
        done: Outcome of its calls.
        audited: Whether all replicas had an audit log.
    """
    numbers = {kind: range(1, done.made.get(kind, 0) + 1) for kind in KINDS}
    accounts = Account()
    with psycopg.connect(database_url, row_factory=scalar_row) as connection:

        def found(query: str, *values: str) -> Counter[str]:
            return Counter(connection.execute(query.encode(), values))

        def snapshots(name: str, kind: str, size: int) -> None:
            # Ids are never used twice, so the last one is the number of publications.
            last = f"SELECT '{name} ' || last_snapshot_id FROM tables WHERE name = %s"
            accounts.compare(Counter([f"{name} {len(numbers[kind])}"]), found(last, name))
            counts = (
                f"SELECT '{name} ' || snapshot_id || ' of ' || (info::json->>'size_bytes') "
                "FROM snapshots JOIN tables USING (table_id) WHERE name = %s"
            )
            there = found(counts, name)
            newest = reversed(numbers[kind])
            accounts.compare(
                Counter(f"{name} {n} of {n * size}" for n, _ in zip(newest, there, strict=False)),
                there,
            )

        snapshots(f"{run}_published", "publications", 1)
        snapshots(f"{run}_refreshed", "refreshes", 2)
        accounts.compare(
            Counter(f"{run}_new_{n}" for n in numbers["registrations"][-LEFT_TABLES:]),
            found("SELECT name FROM tables WHERE starts_with(name, %s)", f"{run}_new_"),
        )
        accounts.compare(
            Counter(f"rule {run}-{n}" for n in numbers["rules"][-LEFT_RULES:]),
            found("SELECT 'rule ' || name FROM cache_rules WHERE starts_with(name, %s)", f"{run}-"),
        )
        accounts.compare(
            Counter(f"token {run}-{n} revoked" for n in numbers["tokens"]),
            found(
                "SELECT 'token ' || name || CASE WHEN revoked_at IS NULL THEN '' ELSE ' revoked' "
                "END FROM tokens WHERE starts_with(name, %s)",
                f"{run}-",
            ),
        )
        accounts.compare(
            # The store keeps the newest thousand writes of a table.
            Counter(f"write {n:032x} undone" for n in numbers["writes"][-1_000:]),
            found(
                "SELECT 'write ' || write_id || ' ' || state FROM writes JOIN tables "
                "USING (table_id) WHERE tables.name = %s",
                f"{run}_written",
            ),
        )
        if audited:
            accounts.compare(
                _records(run, numbers),
                found(
                    "SELECT concat_ws(' ', kind, outcome, table_name, "
                    "CASE kind WHEN 'token' THEN split_part(item, ' ', 1) ELSE item END) "
                    "FROM audit WHERE principal = 'soak' AND CASE kind "
                    "WHEN 'table' THEN starts_with(table_name, %s) "
                    "WHEN 'token' THEN starts_with(item, %s) "
                    "WHEN 'cache_rule' THEN starts_with(item, %s) "
                    "ELSE starts_with(table_name, %s) END",
                    f"{run}_new_",
                    f"{run}-",
                    f"{run}-",
                    f"{run}_",
                ),
            )
    return accounts


def _records(run: str, numbers: dict[str, range]) -> Counter[str]:
    records = [
        *(f"snapshot created {run}_published {n}" for n in numbers["publications"]),
        *(f"snapshot created {run}_refreshed {n}" for n in numbers["refreshes"]),
        *(f"table created {run}_new_{n}" for n in numbers["registrations"]),
        *(f"table deleted {run}_new_{n}" for n in numbers["registrations"][:-LEFT_TABLES]),
        *(f"cache_rule created {STEADY} {run}-{n}" for n in numbers["rules"]),
        *(f"cache_rule deleted {STEADY} {run}-{n}" for n in numbers["rules"][:-LEFT_RULES]),
        *(f"token created {run}-{n}" for n in numbers["tokens"]),
        *(f"token deleted {run}-{n}" for n in numbers["tokens"]),
        *(f"write created {run}_written {n:032x}" for n in numbers["writes"]),
        *(f"write changed {run}_written {n:032x}" for n in numbers["writes"]),
    ]
    return Counter(records)


# --- figures of a cluster ----------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sample:
    """Figures of one moment: MB, descriptors, rows and keys, by name."""

    at_s: float
    figures: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """A figure after warming up: medians of the first, middle and last third, and a slope.

    Attributes:
        name: Name of the figure, such as `rows of plans`.
        unit: Its unit.
        start: Median of the first third.
        middle: Median of the second.
        end: Median of the last.
        a_minute: Growth per minute, by least squares.
        expected: `flat`; or `kept longer` for rows that are kept longer than the run.
        holds: Whether it is as expected: at the end at most a tenth above the middle, or above it
            by at most `_SLACK`; if rows are kept longer, at most one row for each request.
    """

    name: str
    unit: str
    start: float
    middle: float
    end: float
    a_minute: float
    expected: str
    holds: bool


@contextmanager
def sampled(cluster: Cluster, every_s: float) -> Iterator[list[Sample]]:
    """Take samples until the end of the block."""
    samples: list[Sample] = []
    ended = threading.Event()
    began = time.monotonic()

    def take() -> None:
        while not ended.wait(every_s):
            # A stopped server gives no figures.
            with suppress(psycopg.Error, redis.RedisError, OSError):
                samples.append(Sample(time.monotonic() - began, _figures(cluster)))

    thread = threading.Thread(target=take)
    thread.start()
    try:
        yield samples
    finally:
        ended.set()
        thread.join()


def _figures(cluster: Cluster) -> dict[str, float]:
    # The first replica is never killed, so its figures would show a leak.
    folder = Path(f"/proc/{cluster.replicas[0].process.pid}")
    resident = int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    figures = {
        "MB of a replica": resident / 2**20,
        "descriptors of a replica": float(len(list((folder / "fd").iterdir()))),
    }
    with psycopg.connect(cluster.database_url, row_factory=scalar_row) as connection:
        names = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
        ).fetchall()
        for name in names:
            count = connection.execute(f'SELECT count(*) FROM "{name}"'.encode()).fetchone()
            figures[f"rows of {name}"] = float(count or 0)
    with redis.Redis.from_url(cluster.redis_url) as store:
        figures["keys of Redis"] = float(store.dbsize())
    return figures


def trends(samples: Sequence[Sample], warm_s: float, requests: int) -> list[Trend]:
    """Return the trend of each figure after warming up."""
    warm = [sample for sample in samples if sample.at_s >= warm_s]
    third = len(warm) // 3
    if third == 0:
        return []
    lines = []
    for name in warm[-1].figures:
        series = [sample.figures[name] for sample in warm]
        start, middle, end = (
            median(part) for part in (series[:third], series[third:-third], series[-third:])
        )
        unit = name.partition(" ")[0]
        longer = name.removeprefix("rows of ") in _KEPT_LONGER
        bound = requests if longer else max(middle * _FLAT_RATIO, middle + _SLACK[unit])
        minutes = [sample.at_s / 60 for sample in warm]
        lines.append(
            Trend(
                name=name,
                unit=unit,
                start=start,
                middle=middle,
                end=end,
                a_minute=linear_regression(minutes, series).slope,
                expected="kept longer" if longer else "flat",
                holds=end <= bound,
            )
        )
    return lines


# --- a run -------------------------------------------------------------------


@dataclass(slots=True)
class Soaked:
    """The results of a run.

    Attributes:
        done: Outcome of the calls, by run.
        told: The changes of the calls, compared with the database.
        paces: Calls of each kind per second.
        events: Number of times that each event was caused.
        trends: Trends of the cluster's figures.
        tracebacks: Number of tracebacks in the logs.
    """

    done: dict[str, Done] = field(default_factory=dict)
    told: Account = field(default_factory=Account)
    paces: dict[str, float] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)
    trends: list[Trend] = field(default_factory=list)
    tracebacks: int = 0

    def note(self, event: str) -> None:
        """Count an event."""
        self.events[event] = self.events.get(event, 0) + 1

    @property
    def failed(self) -> list[str]:
        """Calls that failed after all attempts."""
        return [why for done in self.done.values() for why in done.failed]


def soak(
    shared: Cluster, seconds: float, *, measured_s: float, kills: int, restarts: int = 1
) -> Soaked:
    """Load a cluster, kill a replica again and again, and restart the database in between.

    Args:
        shared: The cluster.
        seconds: Duration of the load; more if the servers take longer to start.
        measured_s: Seconds for which the paces are measured.
        kills: How often a replica is killed, at even intervals.
        restarts: How often the database is restarted.
    """
    outcome = Soaked()
    with shared.called("m", dict.fromkeys(KINDS, 0.0)) as measured:
        time.sleep(measured_s)
    paces = {kind: n / measured.seconds * _SHARE for kind, n in measured.made.items()}
    outcome.paces = paces
    console.print(f"paces: { {kind: round(pace, 1) for kind, pace in paces.items()} }")
    outcome.done["measured"] = measured
    interval_s = seconds / (kills + 1)
    began = time.monotonic()
    with sampled(shared, _SAMPLE_EVERY_S) as samples, shared.called("s", paces) as done:
        for number in range(kills):
            _sleep_until(began + interval_s * (number + 1))
            # The oldest of those that may be killed.
            shared.kill(1)
            outcome.note("killed")
            shared.start()
            if number < restarts:
                _sleep_until(began + interval_s * (number + 1.5))
                shared.restart_database()
                outcome.note("database restarted")
            console.print(f"{time.monotonic() - began:.0f} s: {outcome.events}")
        _sleep_until(began + seconds)
    outcome.done["soak"] = done
    for run, calls in (("m", measured), ("s", done)):
        _add(outcome.told, account(shared.database_url, run, calls))
    outcome.trends = trends(samples, max(_PLAN_TTL_S * 1.5, seconds / 5), done.requests)
    outcome.tracebacks = _tracebacks(shared)
    return outcome


def roll(shared: Cluster, seconds: float, pace: float, *, before: Path | None = None) -> Soaked:
    """Replace replicas one by one under load.

    Args:
        shared: The cluster.
        seconds: Duration of the load before, between and after, together.
        pace: Calls of each kind per second.
        before: Checkout of the earlier version of the replicas and the callers; the database is
            upgraded before the first replica is replaced.
    """
    outcome = Soaked()
    # Earlier versions lack some calls, and clients are upgraded after their coordinators.
    kinds = KINDS if before is None else [kind for kind in KINDS if kind != "tokens"]
    outcome.paces = dict.fromkeys(kinds, pace)
    replicas = len(shared.replicas)
    with shared.called("r", outcome.paces, before) as done:
        pause_s = seconds / (replicas + 2)
        time.sleep(pause_s)
        if before is not None:
            shared.run_command(None, "db", "upgrade")
            outcome.note("database upgraded")
            time.sleep(pause_s)
        for _ in range(replicas):
            shared.stop(0)
            shared.start()
            outcome.note("replaced")
            time.sleep(pause_s)
    outcome.done["roll"] = done
    outcome.told = account(shared.database_url, "r", done, audited=before is None)
    outcome.tracebacks = _tracebacks(shared)
    return outcome


def _sleep_until(at: float) -> None:
    time.sleep(max(at - time.monotonic(), 0))


def _add(whole: Account, part: Account) -> None:
    whole.changes += part.changes
    whole.lost += part.lost
    whole.doubled += part.doubled


def _tracebacks(shared: Cluster) -> int:
    return sum(log.count("Traceback") for log in shared.logs())


# --- the report --------------------------------------------------------------


def main() -> None:
    """Run and report; exit with 1 if anything is not as expected."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument(
        "--pace", type=float, default=5.0, help="with --before: calls of each kind per second"
    )
    parser.add_argument(
        "--before", type=Path, metavar="FOLDER", help="checkout of the version to be replaced"
    )
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    seconds = 20.0 if options.quick else options.minutes * 60
    if options.before is not None:
        before = options.before.resolve()
        with cluster(2, before) as shared:
            outcome = roll(shared, seconds, options.pace, before=before)
    else:
        kills = 2 if options.quick else int(options.minutes)
        with cluster(_REPLICAS) as shared:
            outcome = soak(shared, seconds, measured_s=min(30.0, seconds / 4), kills=kills)
    _show(outcome)
    if options.json is not None:
        load = [load_before, *os.getloadavg()]
        write_figures(options.json, NAME, load_average=load, **asdict(outcome))
    account = outcome.told
    whole = not (account.lost or account.doubled or outcome.failed)
    sys.exit(0 if whole and all(trend.holds for trend in outcome.trends) else 1)


def _show(outcome: Soaked) -> None:
    calls = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("calls", "run", "per second", "made", "slowest"):
        calls.add_column(title)
    for run, done in outcome.done.items():
        for kind, count in done.made.items():
            pace, slowest_s = count / done.seconds, done.slowest_s[kind]
            calls.add_row(kind, run, f"{pace:.1f}", f"{count:,}", f"{slowest_s:.1f} s")
    show(calls)
    for run, done in outcome.done.items():
        console.print(f"{run}: {done.requests:,} requests, answers {done.answers}")
        console.print(f"failed after all attempts: {len(done.failed)}", *done.failed[:5])
    account = outcome.told
    console.print(
        f"{outcome.events}; {account.changes:,} facts compared: {len(account.lost)} lost, "
        f"{len(account.doubled)} doubled; {outcome.tracebacks} tracebacks",
        *account.lost[:5],
        *account.doubled[:5],
    )
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("figure", "start", "middle", "end", "a minute", "expected", "holds"):
        table.add_column(title, justify="left" if title == "figure" else "right")
    for one in outcome.trends:
        figures = (f"{figure:,.0f}" for figure in (one.start, one.middle, one.end))
        table.add_row(
            one.name, *figures, f"{one.a_minute:+,.2f}", one.expected, "yes" if one.holds else "NO"
        )
    show(table)


if __name__ == "__main__":
    main()
