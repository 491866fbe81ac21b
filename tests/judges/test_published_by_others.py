"""What other projects test their readers with: Windrow has the same rows, or refuses by name."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.judges import delta_tables, duckdb_iceberg
from tests.judges.verdicts import checkout_of

pytestmark = [pytest.mark.slow, pytest.mark.nightly]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("module", "name", "most_refused"),
    [
        (duckdb_iceberg, "duckdb-iceberg", 60),
        (delta_tables, "delta-rs", 2),
        (delta_tables, "delta-kernel-rs", 2),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_no_case_of_another_project_has_other_rows(
    module: ModuleType, name: str, most_refused: int, tmp_path: Path
) -> None:
    verdicts = module.verdicts(checkout_of(name), tmp_path)

    assert [one for one in verdicts if one.kind == "other"] == []
    equal = sum(one.kind == "equal" for one in verdicts)
    assert equal > 40
    assert sum(one.kind == "refused" for one in verdicts) <= most_refused
