"""What the product answers, prints, stores and plans is what the golden files hold.

A change on purpose: `python -m tests.support.golden` writes them anew, and the diff shows it.
"""

from __future__ import annotations

import pytest

from tests.support.golden.files import GOLDENS

_QUICK = {"outputs", "problems"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in _QUICK else pytest.mark.slow) for name in GOLDENS],
)
def test_nothing_differs_from_the_golden_file(name: str) -> None:
    golden = GOLDENS[name]
    stored = golden.path.read_text(encoding="utf-8")
    if not stored.startswith(golden.first_line()):
        pytest.skip(f"{golden.file} was written with other packages: {stored.splitlines()[0]}")

    assert golden.text().splitlines() == stored.splitlines()
