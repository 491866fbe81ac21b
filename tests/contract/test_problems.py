"""Every error that callers may get has its own type of problem."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from fastapi.exceptions import RequestValidationError
from typer.main import get_command

from tests.support.api.error_samples import error_types, sample_of
from windrow.cli.app import app
from windrow.cli.remedies import in_commands
from windrow.errors import error_of
from windrow_core.errors import StatedError
from windrow_core.models import Problem
from windrow_service.api.problems import describe, problem_type
from windrow_service.usecases.plans.errors import InvalidOptionsError

ANSWERED = sorted(
    (
        error_type
        for error_type in error_types()
        if issubclass(error_type, StatedError) and error_type.fault is not None
    ),
    key=lambda error_type: error_type.__name__,
)


@pytest.mark.parametrize("error_type", ANSWERED, ids=lambda error_type: error_type.__name__)
def test_every_error_with_a_fault_has_a_problem_type(error_type: type[Exception]) -> None:
    answer = describe(sample_of(error_type)).body

    assert answer["type"] != "urn:windrow:problem:internal-error"
    assert re.fullmatch("[A-Z][^.\n]{3,60}", answer["title"])
    Problem.model_validate(answer)


@pytest.mark.parametrize("error_type", ANSWERED, ids=lambda error_type: error_type.__name__)
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
    types = Counter(problem_type(error_type).slug for error_type in ANSWERED)

    assert types.most_common(1)[0][1] == 1
    assert problem_type(InvalidOptionsError) == problem_type(RequestValidationError)
