"""Lists and maps of any shape: every engine returns the rows, or the table is refused to it by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import SystemRandom
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow
from tests.programs.other_engines import row_texts
from tests.support.engines import asking
from tests.support.files.footers import LONG, Fields, edit
from tests.support.files.shapes import write_drawn
from tests.support.laws import is_nightly, times
from tests.support.servers.coordinators import running
from windrow_calls.errors import ProblemError
from windrow_core.files.errors import InventoryError
from windrow_service.settings import Settings
from windrow_tables.executor.errors import TaskReadError

pytestmark = pytest.mark.slow

SEED = str(SystemRandom().randrange(2**32)) if is_nightly() else "day"
COUNT = times(400, by_day=40)
# The field of FileMetaData.
ROW_COUNT = 3
REFUSAL = "cannot be read by other engines"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shapes")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    settings = Settings(state_dir=folder / "state", port=0, allowed_locations=(str(folder),))
    with running(settings) as url:
        yield url


@pytest.fixture(scope="module")
def rows(folder: Path, url: str) -> Mapping[str, list[str]]:
    """The rows of tables that were drawn, as Windrow reads them, which is as Spark does."""
    rows = {}
    with windrow.connect(url) as client:
        for number in range(COUNT):
            name = f"t.t{number}"
            (folder / name).mkdir()
            for file in range(number % 3 + 1):
                write_drawn(folder / name / str(file), f"{SEED} {number}", file)
            client.register_table(name, str(folder / name))
            try:
                client.refresh(name)
                table = client.scan(name).to_table()
            except (ProblemError, InventoryError, TaskReadError):
                # Some shapes are no Parquet, or not the same type in all files.
                continue
            rows[name] = row_texts(zip(*(one.to_pylist() for one in table.columns), strict=True))
    assert len(rows) > COUNT / 2
    return rows


def wrong(rows: Mapping[str, list[str]], answers: Sequence[Any]) -> dict[str, str]:
    """Return what an engine answers instead of the rows, or of a refusal."""
    pairs = zip(rows.items(), answers, strict=True)
    others = {name: answer for (name, own), answer in pairs if answer != own}
    assert len(others) < len(rows) * 0.8, "hardly a table is served"
    return {name: str(one)[:500] for name, one in others.items() if REFUSAL not in str(one)}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", ["PyIceberg", "Polars"])
def test_pyiceberg_and_polars_are_right_or_refused(
    url: str, rows: Mapping[str, list[str]], engine: str
) -> None:
    assert wrong(rows, asking.answers_here(engine, url, list(rows))) == {}, SEED


def test_duckdb_is_right_or_refused(url: str, rows: Mapping[str, list[str]]) -> None:
    sql = [f'SELECT * FROM w.t."{name[2:]}"' for name in rows]

    assert wrong(rows, asking.answers_elsewhere(url, {"duckdb": sql})["duckdb"]) == {}, SEED


@pytest.mark.nightly
def test_spark_with_icebergs_runtime_is_right_or_refused(
    url: str, rows: Mapping[str, list[str]]
) -> None:
    answers = asking.answers_on_spark("Spark with Iceberg", url, list(rows))

    assert wrong(rows, answers) == {}, SEED


@pytest.mark.filterwarnings("ignore")
def test_a_footer_that_states_other_rows_than_its_groups_is_refused_to_polars(
    folder: Path, url: str
) -> None:
    (folder / "miscounts").mkdir()
    path = folder / "miscounts" / "f"
    pq.write_table(pa.table({"v": [1, 2]}), path)

    def forget(footer: Fields) -> None:
        footer[ROW_COUNT] = LONG, 0

    edit(path, forget)
    with windrow.connect(url) as client:
        client.register_table("t.miscounts", str(path.parent))
        client.refresh("t.miscounts")

    (by_polars,) = asking.answers_here("Polars", url, ["t.miscounts"])

    assert "'f': its footer states another number of rows" in by_polars
