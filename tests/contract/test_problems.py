"""Every error that callers may get has its own type of problem."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from fastapi.exceptions import RequestValidationError
from typer.main import get_command

from tests.support.api.contract import operations, schemas
from tests.support.api.error_samples import error_types, sample_of, samples_of
from windrow_calls.errors import error_of
from windrow_cli.app import app
from windrow_cli.remedies import in_commands
from windrow_core.errors import StatedError
from windrow_core.models import Problem
from windrow_service.api.problems import describe, problem_type
from windrow_service.planner.writes.errors import NoEstimateError
from windrow_service.usecases.plans.errors import InvalidOptionsError
from windrow_service.usecases.snapshots.errors import TableNotRefreshedError

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


@pytest.mark.parametrize("error_type", ANSWERED, ids=lambda error_type: error_type.__name__)
def test_a_remedy_is_a_call_of_the_contract_and_part_of_the_detail(
    error_type: type[Exception],
) -> None:
    for error in samples_of(error_type):
        problem = Problem.model_validate(describe(error).body)
        if problem.remedy is None:
            continue
        assert problem.remedy.text in problem.detail
        if problem.remedy.call != "repeat":
            assert set(problem.remedy.arguments) <= parameters()[problem.remedy.call]


def parameters() -> dict[str, set[str]]:
    """Return the names of each operation's parameters, and of the fields of two bodies."""
    by_operation = {
        operation["operationId"]: {one["name"] for one in operation.get("parameters", ())}
        for operation in operations().values()
    }
    by_operation["plan_write"] |= set(schemas()["WritePlanRequest"]["properties"])
    by_operation["protect_table"] |= set(schemas()["TableProtection"]["properties"])
    return by_operation


def test_each_edge_has_its_own_words_for_a_remedy() -> None:
    error = TableNotRefreshedError("sales.events")
    problem = Problem.model_validate(describe(error).body)

    assert problem.remedy is not None
    assert problem.remedy.call == "refresh_table"
    assert problem.remedy.arguments == {"name": "sales.events"}
    said = "table 'sales.events' has no snapshot yet: "
    assert problem.detail == f"{said}POST /tables/sales.events/refresh first"
    assert str(error_of(problem)) == f"{said}client.refresh('sales.events') first"
    assert in_commands(error_of(problem)) == f"{said}`windrow table refresh sales.events` first"


def test_the_command_line_names_its_options_instead_of_fields() -> None:
    error = NoEstimateError("nothing is known", "give {rows}, {keys}, {keys_from} or {files}")
    problem = Problem.model_validate(describe(error).body)

    assert problem.detail == "nothing is known: give rows, keys, keys_from or files"
    assert in_commands(error_of(problem)) == (
        "nothing is known: give --rows, --counts, --keys-from or --files"
    )


def test_no_two_problems_share_a_type() -> None:
    types = Counter(problem_type(error_type).slug for error_type in ANSWERED)

    assert types.most_common(1)[0][1] == 1
    assert problem_type(InvalidOptionsError) == problem_type(RequestValidationError)
