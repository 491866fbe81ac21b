"""What the product answers, prints, stores and plans is what the golden files hold.

A change on purpose: `python -m tests.support.golden` writes them anew, and the diff shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from rich.cells import cell_len

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


def _outputs() -> Iterator[tuple[str, list[str]]]:
    """Yield the outputs of commands, by name and width."""
    blocks = re.split(r"^--- (.*) ---\n", GOLDENS["outputs"].path.read_text("utf-8"), flags=re.M)
    for name, text in zip(blocks[1::2], blocks[2::2], strict=True):
        yield name, text.splitlines()


def test_no_output_of_a_command_is_wider_than_its_terminal() -> None:
    for name, lines in _outputs():
        if width := re.search(r"([0-9]+) columns$", name):
            assert max(map(cell_len, lines)) <= int(width[1]), name


def test_nothing_is_padded_or_drawn_in_a_pipe() -> None:
    pipes = {name: lines for name, lines in _outputs() if name.endswith("in a pipe")}

    assert len(pipes) > 20
    for name, lines in pipes.items():
        padded = [line for line in lines if "  " in line or line != line.strip(" ")]
        drawn = [line for line in lines if re.search("[\u2500-\u259f]", line)]
        assert (padded, drawn) == ([], []), name
