"""Runs tests of DuckDB's extension for Iceberg on tables that a coordinator serves.

    python -m tests.programs.judged_sqllogic URL CHECKOUT

takes a JSON list of paths of tests from its input. It prints a JSON object for each query: the test,
the line, and the verdict with a detail; then one for each table that Windrow's own client reads.
Tables are registered when a test first reads them.
"""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import windrow
from tests.judges.sqllogic import Record, equal, records
from tests.programs.other_engines import duckdb_reader, row_texts
from windrow_calls.errors import WindrowError

_SCAN = re.compile(r"\biceberg_scan\s*\(\s*'([^']*)'((?:\s*,[^()]*)?)\)", re.I)
_OPTION = re.compile(r"(\w+)\s*=>?\s*'?([^',]*)'?")
# What is asked of a table but its rows.
_ELSE = {
    "asks for the metadata itself": r"\biceberg_(?!scan\b)\w+\s*\(",
    "looks at DuckDB's log": r"duckdb_logs",
    "looks at a plan": r"^\s*explain\b",
}
_REFUSAL = re.compile(r"cannot be read by other engines: (.*)", re.DOTALL)
_VERSIONS = ("v{}{}.metadata.json", "{}{}.metadata.json")

Read = Callable[[str], list[tuple[Any, ...]]]


class Site:
    """A coordinator, and a checkout whose tables it knows."""

    def __init__(self, url: str, checkout: Path) -> None:
        """Connect to a coordinator.

        Args:
            url: Its address.
            checkout: The folder with `data/persistent`.
        """
        self.url, self.checkout = url, checkout
        self.client = windrow.connect(url)
        self.names: dict[Path, str] = {}
        self.refreshed: dict[Path, str] = {}

    def table(self, path: str, options: str) -> str:
        """Return what SQL calls a table in the catalog, which is registered if it is not yet."""
        settings = dict(_OPTION.findall(options))
        metadata = self._metadata(path, settings)
        if metadata not in self.names:
            # Tests of one run have one coordinator.
            self.names[metadata] = name = f"t.t{os.getpid()}_{len(self.names)}"
            location, version = str(metadata.parent.parent), {"metadata": str(metadata)}
            self.client.register_table(name, location, "iceberg", format_options=version)
            # The catalog says why a table has no snapshot.
            with suppress(WindrowError):
                self.client.refresh(name)
                self.refreshed[metadata] = name
        name = f"w.{self.names[metadata]}"
        if "snapshot_from_id" in settings:
            return f"{name} AT (VERSION => {settings['snapshot_from_id']})"
        if at := re.search(r"snapshot_from_timestamp\s*=>?\s*('[^']*'[:\w]*)", options):
            return f"{name} AT (TIMESTAMP => {at[1]})"
        return name

    def _metadata(self, path: str, options: dict[str, str]) -> Path:
        table = self.checkout / path
        if path.endswith(".json"):
            return table
        names = sorted(file.name for file in (table / "metadata").glob("*.metadata.json*"))
        version = options.get("version", "")
        if version in ("", "?"):
            hint = table / "metadata" / "version-hint.text"
            version = hint.read_text().strip() if hint.exists() else ""
        suffix = ".gz" if "gzip" in options.get("metadata_compression_codec", "").lower() else ""
        likely = (form.format(version, suffix) for form in _VERSIONS)
        return table / "metadata" / next((name for name in likely if name in names), names[-1])


def judged(site: Site, test: str) -> Iterator[tuple[int, str, str]]:
    """Run a test; yield the lines of queries, and verdicts with a detail."""
    ours, own = (duckdb_reader(site.url, "") for _ in range(2))
    target = str(site.checkout / "written")
    variables = {"WORKING_DIRECTORY": str(site.checkout), "TEST_DIR": target}
    tables = r"\biceberg_scan\b"
    for record in records((site.checkout / test).read_text(), variables):
        is_read = re.search(tables, record.sql, re.I) is not None
        kind = next((k for k, one in _ELSE.items() if re.search(one, record.sql, re.I | re.M)), "")
        if target in record.sql:
            # Some have 250,000,000 rows.
            kind = "reads what the test writes"
        if kind or (not is_read and record.kind == "query"):
            if record.kind == "query":
                yield record.line, "not applicable", kind or "reads no table"
            continue
        if creation := re.match(r"\s*create .*?(?:view|table)\s+([\w.]+)\s+as\b", record.sql, re.I):
            tables += rf"|\b{re.escape(creation[1])}\b" if is_read else ""
        if record.kind != "query":
            _outcome(own, record, record.sql)
            _outcome(ours, record, _served(site, record.sql))
        else:
            outcome = _outcome(ours, record, _served(site, record.sql))
            yield (record.line, *_verdict(record, outcome, own))


def _served(site: Site, sql: str) -> str:
    """Return SQL that reads the tables of the catalog; unchanged if it reads one that is nowhere."""
    try:
        return _SCAN.sub(lambda scan: site.table(scan[1], scan[2]), sql)
    except (OSError, IndexError):
        return sql


def _verdict(record: Record, ours: Any, own: Read) -> tuple[str, str]:
    if not isinstance(ours, str) and equal(record, ours):
        return "equal", ""
    if isinstance(ours, str) and (refusal := _REFUSAL.search(ours)):
        return "refused", refusal[1]
    theirs = _outcome(own, record, record.sql)
    detail = json.dumps([record.sql, record.expected[:5], ours, theirs], default=str)[:2000]
    if isinstance(ours, str):
        if isinstance(theirs, str):
            return "refused by both", f"DuckDB 1.5.5: {theirs.splitlines()[0]}"
        return "other", detail
    if not isinstance(theirs, str) and sorted(map(str, ours)) == sorted(map(str, theirs)):
        return "not applicable", "DuckDB 1.5.5 itself answers otherwise"
    return "other", detail


def _outcome(read: Read, record: Record, sql: str) -> Any:
    """Return rows as texts, or an error as a text."""
    try:
        if record.kind != "query":
            return read(sql)
        try:
            return read(f"SELECT COLUMNS(*)::VARCHAR FROM ({sql.rstrip().rstrip(';')})")
        except Exception as error:
            if "Parser" not in type(error).__name__:
                raise
            return [tuple(None if v is None else str(v) for v in row) for row in read(sql)]
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def read_by_client(site: Site) -> Iterator[tuple[str, str, str]]:
    """Read whole tables with Windrow's client; yield their paths, and verdicts with a detail."""
    own = duckdb_reader(site.url, "")
    for metadata, name in site.refreshed.items():
        case = str(metadata.relative_to(site.checkout))
        try:
            table = site.client.scan(name).to_table()
        except Exception as error:
            yield case, "refused", f"client.scan: {error}"
            continue
        columns = ", ".join(f'"{column}"' for column in table.column_names)
        try:
            theirs = row_texts(own(f"SELECT {columns} FROM iceberg_scan('{metadata}')"))
        except Exception as error:
            yield case, "read by Windrow alone", f"client.scan: {str(error).splitlines()[0]}"
            continue
        ours = row_texts(tuple(row.values()) for row in table.to_pylist())
        detail = "" if ours == theirs else json.dumps([ours[:3], theirs[:3]], default=str)
        yield case, "other" if detail else "equal", detail


def main() -> None:
    """Run all tests."""
    warnings.simplefilter("ignore")
    site = Site(sys.argv[1], Path(sys.argv[2]))
    os.chdir(site.checkout)

    def tell(test: str, line: int, *verdict: str) -> None:
        sys.stdout.write(json.dumps({"test": test, "line": line, "verdict": verdict}) + "\n")

    for test in json.load(sys.stdin):
        for line, *verdict in judged(site, test):
            tell(test, line, *verdict)
    for case, *verdict in read_by_client(site):
        tell(case, 0, *verdict)


if __name__ == "__main__":
    main()
