"""Every deliberate error has its own kind of problem."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest
from fastapi.exceptions import RequestValidationError
from typer.main import get_command

from tests.support.api.error_samples import sample_of
from windrow.cli.app import app
from windrow.cli.remedies import in_commands
from windrow.errors import error_of
from windrow_core.models import Problem
from windrow_service.api.problems import KINDS, describe
from windrow_service.filters import errors as filters
from windrow_service.inventory import errors as inventory
from windrow_service.planner import errors as planner
from windrow_service.planner.writes import errors as write_planning
from windrow_service.usecases import errors as usecases
from windrow_service.usecases.access import errors as access
from windrow_service.usecases.caches import errors as caches
from windrow_service.usecases.plans import errors as plans
from windrow_service.usecases.snapshots import errors as snapshots
from windrow_service.usecases.tables import errors as tables
from windrow_service.usecases.upkeep import errors as upkeep
from windrow_service.usecases.writes import errors as writes


def leaves(module: Any) -> list[type[Exception]]:
    """Return the error classes of a module that have no subclasses."""
    return [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, Exception)
        and value.__module__ == module.__name__
        and not value.__subclasses__()
    ]


LEAVES = [
    leaf
    for module in (
        usecases,
        access,
        caches,
        plans,
        snapshots,
        tables,
        upkeep,
        writes,
        inventory,
        filters,
        planner,
        write_planning,
    )
    for leaf in leaves(module)
]
# The first three occur at startup; a repeated request gets the first answer.
NEVER_ANSWERED = {
    usecases.RevisionError,
    access.AuthoritiesError,
    usecases.PortTakenError,
    usecases.RepeatedRequestError,
    # Reported to callers as cancelled or abandoned.
    inventory.InventoryCancelledError,
}
ANSWERED = [leaf for leaf in LEAVES if leaf not in NEVER_ANSWERED]


@pytest.mark.parametrize("error_type", ANSWERED, ids=lambda leaf: leaf.__name__)
def test_every_error_has_a_problem_type(error_type: type[Exception]) -> None:
    answer = describe(sample_of(error_type)).body

    assert answer["type"] != "urn:windrow:problem:internal-error"
    Problem.model_validate(answer)


@pytest.mark.parametrize("error_type", ANSWERED, ids=lambda leaf: leaf.__name__)
def test_the_command_line_mentions_only_its_own_commands(error_type: type[Exception]) -> None:
    problem = Problem.model_validate(describe(sample_of(error_type)).body)

    said = in_commands(error_of(problem))

    assert not re.search("(GET|POST|PUT|DELETE) /|Bearer|windrow\\.connect", said)
    for words in re.findall("`windrow ([^`]*)`", said):
        command: Any = get_command(app)
        for word in words.split():
            if not hasattr(command, "commands"):
                break
            command = command.commands[word]


def test_no_two_problems_share_a_type() -> None:
    # Options are checked once more when those of the session and the table are known.
    kinds = {error: kind for error, kind in KINDS.items() if error is not plans.InvalidOptionsError}
    slugs = [kind.slug for kind in kinds.values()]

    assert len(slugs) == len(set(slugs))
    assert KINDS[plans.InvalidOptionsError] == KINDS[RequestValidationError]
