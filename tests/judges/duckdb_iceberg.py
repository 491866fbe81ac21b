"""The tests of DuckDB's extension for Iceberg, on tables that a coordinator serves."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.judges.verdicts import Verdict
from tests.support.engines.environment import python_with_engines
from tests.support.servers.coordinators import running
from tests.support.tables.iceberg_files import read_avro, write_avro
from windrow_service.settings import Settings

JUDGES = {"duckdb-iceberg": "tests of DuckDB's extension for Iceberg"}
_ROOT = Path(__file__).parents[2]
_TABLES = Path("data", "persistent")
# What metadata calls the places of the tables, which are not where it says.
_HOMES = {
    "file://data/persistent/": "",
    "data/persistent/": "",
    "./lineitem_iceberg": "iceberg/lineitem_iceberg",
    "lineitem_iceberg": "iceberg/lineitem_iceberg",
}
# Why the tests of other folders say nothing about tables that Windrow serves.
_OTHER_TESTS = {
    "test/sql/cloud/": "needs a catalog in a cloud",
    "test/sql/local/catalog_custom_setup/": "sets a catalog of its own up",
    "test/sql/local/catalog_test_config_setup/": "writes to a catalog, or reads what was",
    "": "reads tables that must be generated first",
}


def verdicts(checkout: Path, folder: Path) -> list[Verdict]:
    """Run the tests that read the repository's tables, and list the others.

    Args:
        checkout: The checkout of the repository.
        folder: Where its tables are copied to, with the paths in their metadata changed.
    """
    copy = copied(checkout, folder / "checkout")
    tests, others = [], Counter[str]()
    for path in sorted(copy.glob("test/sql/**/*.test*")):
        name = str(path.relative_to(copy))
        if _TABLES.as_posix() in path.read_text():
            tests.append(name)
        else:
            others[next(why for home, why in _OTHER_TESTS.items() if name.startswith(home))] += 1
    settings = Settings(state_dir=folder / "state", allowed_locations=(str(folder),))
    with running(settings) as url:
        outcomes = _judged(url, copy, tests)
    return outcomes + [
        Verdict("", "not applicable", f"whole test: {why}") for why in others.elements()
    ]


def _judged(url: str, copy: Path, tests: list[str]) -> list[Verdict]:
    outcomes: list[Verdict] = []
    program = [python_with_engines(), "-u", "-m", "tests.programs.judged_sqllogic", url, str(copy)]
    while tests:
        done = subprocess.run(
            program,
            input=json.dumps(tests),
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": str(_ROOT)},
        )
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        outcomes += [Verdict(f"{one['test']}:{one['line']}", *one["verdict"]) for one in answers]
        if not done.returncode:
            break
        # A query has killed the process, which has noted the test.
        assert answers, done.stderr[-2000:]
        outcomes.append(Verdict(answers[-1]["test"], "not applicable", "DuckDB 1.5.5 crashes"))
        tests = tests[tests.index(answers[-1]["test"]) + 1 :]
    return outcomes


def copied(checkout: Path, target: Path) -> Path:
    """Copy tests and tables, and change the paths in the metadata to where the copies lie."""
    for part in ("test", "data"):
        shutil.copytree(checkout / part, target / part)
    home = target / _TABLES
    for path in sorted(home.rglob("*.metadata.json")):
        content = path.read_bytes()
        is_zipped = content.startswith(b"\x1f\x8b")
        try:
            metadata = json.loads(gzip.decompress(content) if is_zipped else content)
        except ValueError:
            continue
        content = json.dumps(_moved(metadata, home)).encode()
        path.write_bytes(gzip.compress(content) if is_zipped else content)
    # Lists of manifests state the lengths of manifests.
    for path in sorted(home.rglob("*.avro"), key=lambda path: path.name.startswith("snap-")):
        _or_nothing(_move_avro, path, home)
    for path in sorted(home.rglob("*.parquet")):
        _or_nothing(_move_positions, path, home)
    return target


def _or_nothing(move: Callable[[Path, Path], None], path: Path, home: Path) -> None:
    try:
        move(path, home)
    except (ValueError, OSError, TypeError, pa.ArrowException):
        # Some are damaged on purpose.
        return


def _moved(value: Any, home: Path) -> Any:
    if isinstance(value, dict):
        return {name: _moved(one, home) for name, one in value.items()}
    if isinstance(value, list):
        return [_moved(one, home) for one in value]
    if isinstance(value, bytes):
        return _moved(value.decode("latin-1"), home).encode("latin-1")
    if isinstance(value, str):
        for old, new in _HOMES.items():
            if value.startswith(old):
                return f"{home}/{new}{value.removeprefix(old)}"
    return value


def _move_avro(path: Path, home: Path) -> None:
    schema, head, records = read_avro(path)
    records = _moved(records, home)
    for record in records:
        if (manifest := record.get("manifest_path")) and Path(manifest).exists():
            record["manifest_length"] = Path(manifest).stat().st_size
    write_avro(path, schema, head, records)


def _move_positions(path: Path, home: Path) -> None:
    if pq.read_schema(path).names[:2] == ["file_path", "pos"]:
        table = pq.read_table(path)
        field = table.schema.field(0)
        paths = pa.array(_moved(table["file_path"].to_pylist(), home), field.type)
        pq.write_table(table.set_column(0, field, paths), path)
