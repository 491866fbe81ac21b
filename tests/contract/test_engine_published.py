"""Published files of many writers: each engine returns the rows, or an error; never other rows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

import windrow
from tests.programs.other_engines import row_texts
from tests.support.engines import asking
from tests.support.servers.coordinators import running
from windrow_calls.errors import ProblemError
from windrow_core.files.errors import InventoryError
from windrow_service.settings import Settings
from windrow_tables.executor.errors import TaskReadError

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

# All published files, or those that the repository keeps.
FOLDER = Path(os.environ.get("WINDROW_PUBLISHED_FILES", Path(__file__).parents[1] / "fixtures"))
# A larger one takes minutes, and needs gigabytes.
MOST_BYTES = 2**21


@pytest.mark.filterwarnings("ignore")
def test_no_engine_returns_other_rows(tmp_path: Path) -> None:
    settings = Settings(state_dir=tmp_path / "state", allowed_locations=(str(tmp_path),))
    files = [path for path in sorted(FOLDER.rglob("*.par*")) if path.is_file()]
    rows: dict[str, list[str]] = {}
    by_name: dict[str, Path] = {}
    with running(settings) as url:
        with windrow.connect(url) as client:
            for number, file in enumerate(files):
                if file.stat().st_size > MOST_BYTES:
                    continue
                name = f"t.f{number}"
                by_name[name] = file
                (tmp_path / name).mkdir()
                shutil.copy(file, tmp_path / name / "f.parquet")
                client.register_table(name, str(tmp_path / name))
                try:
                    client.refresh(name)
                    table = client.scan(name).to_table()
                    rows[name] = row_texts(tuple(row.values()) for row in table.to_pylist())
                except (ProblemError, InventoryError, TaskReadError, OverflowError):
                    # tests/spark/test_published_files.py has what Spark reads, and Windrow refuses;
                    # Python has no days after the year 9999.
                    continue
        names = list(rows)
        sql = [f'SELECT * FROM w.t."{name[2:]}"' for name in names]
        elsewhere = asking.answers_elsewhere(url, {"duckdb": sql, "polars": names})
        answers: Mapping[str, list[object]] = {
            "DuckDB": elsewhere["duckdb"],
            "Polars, own planner": elsewhere["polars"],
            "Polars": asking.answers_here("Polars", url, names),
            "PyIceberg": asking.answers_here("PyIceberg", url, names),
        }

    others = {
        f"{by_name[name].name} in {engine}": str(answer)[:300]
        for engine, some in answers.items()
        for name, answer in zip(names, some, strict=True)
        if answer != rows[name] and not isinstance(answer, str)
    }
    assert len(names) > 20
    assert others == {}
    for engine, some in answers.items():
        # One table never ends an engine for the others.
        assert sum(not isinstance(answer, str) for answer in some) > len(names) / 2, engine
