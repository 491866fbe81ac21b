"""A program that erases rows, and dies at a step of the commit.

`python -m tests.programs.dying_erasure URL TABLE STEP NTH ID …`: the step is one of
`tests.support.faults.writers.STEPS`, or `finishing`, when the coordinator is about to erase the rest.
"""

from __future__ import annotations

import sys

import windrow
from tests.support.faults.writers import at_step, die
from windrow_calls.erasures import ErasureCalls


def main(url: str, table: str, step: str, nth: int, ids: list[int]) -> None:
    """Erase the rows of some ids."""
    if step == "finishing":
        setattr(ErasureCalls, "finish_erasure", lambda *_: die())  # noqa: B010 - of another type
    else:
        at_step(step, nth, die)
    with windrow.connect(url) as client:
        client.erase(table, key="id", values=ids, processes=1)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), list(map(int, sys.argv[5:])))
