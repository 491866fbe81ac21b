"""Any request gets an answer listed in the published contract."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import requests
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck

from tests.support.api.contract import operations
from tests.support.api.problems import PREFIX
from tests.support.laws import examples, is_nightly
from tests.support.servers.coordinators import PLAIN, coordinator_process
from tests.support.servers.databases import new_database
from tests.support.servers.redis import redis_url
from tests.support.tables import hive
from windrow_service import administration, bootstrap
from windrow_service.settings import Settings

if TYPE_CHECKING:
    from schemathesis import Case
    from schemathesis.specs.openapi.schemas import OpenApiSchema

# Placeholders, replaced by the values of a real plan.
PLAN_ID, PAGE_TOKEN = "f" * 32, "the next page"
TABLE, WORKER, RULE = "fuzzed", "w1", "r1"
POLICY = "fuzzed.*"
_EXISTING = {
    "name": TABLE,
    "table": TABLE,
    "worker_id": WORKER,
    "rule": RULE,
    "pattern": POLICY,
    "plan_id": PLAN_ID,
    "page_token": PAGE_TOKEN,
}
# Random examples for each operation and database; many more edge cases are added to them.
_EXAMPLES = 25 if is_nightly() else 6
# Every second edge case of an operation is sent, and all of them at night.
_EVERY_NTH = 1 if is_nightly() else 2
# The first requests of an operation are repeated without a token.
_WITHOUT_TOKEN = 100 if is_nightly() else 5
# Filters have thousands of edge cases and are read alike in all requests and with any database:
# they are tested once, in plans of the embedded coordinator. So are edge cases that do not fit the
# contract, as they are refused before a database plays a part.
_ONE_COMPARISON = ("CacheRuleDefinition", "CompactionRequest", "PolicyDefinition")


@dataclass(frozen=True, slots=True)
class Service:
    """A coordinator in its own process, and how to call it."""

    url: str
    headers: dict[str, str]
    folder: Path
    log: Path
    session: requests.Session
    schema: OpenApiSchema

    def calling(self) -> dict[str, Any]:
        """Return the arguments for sending a case; reused connections save time."""
        return {"base_url": self.url, "session": self.session}


# Each call is sent to PostgreSQL by other tests, and without a token by test_access.py.
@pytest.fixture(
    scope="module",
    params=[
        "embedded",
        pytest.param("on PostgreSQL and Redis, with tokens", marks=pytest.mark.nightly),
    ],
)
def service(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Service]:
    from tests.support.api import fuzzing

    folder = tmp_path_factory.mktemp("fuzzed")
    headers: dict[str, str] = {}
    environment: dict[str, str] = {}
    with ExitStack() as stack:
        embedded = request.param == "embedded"
        if not embedded:
            server = request.getfixturevalue("postgresql_server")
            environment = {
                "WINDROW_DATABASE_URL": stack.enter_context(new_database(server)),
                "WINDROW_REDIS_URL": stack.enter_context(redis_url(folder)),
                "WINDROW_REQUIRE_TOKENS": "true",
            }
            settings = Settings.model_validate(
                {"database_url": environment["WINDROW_DATABASE_URL"]}
            )
            bootstrap.upgrade(settings)
            headers["Authorization"] = f"Bearer {_token(settings)}"
        started = stack.enter_context(
            coordinator_process(folder / "state", folder, prefix=(), **environment)
        )
        session = stack.enter_context(requests.Session())
        # Looking for a proxy in the environment would slow down each request.
        session.trust_env = False
        # Headers of the session would replace generated ones.
        session.headers.clear()
        hive.write_events(folder / TABLE)
        leaves_alone = _ONE_COMPARISON if embedded else (*_ONE_COMPARISON, "PlanRequest")
        schema = fuzzing.schema(_EXISTING, *leaves_alone, invalid_edge_cases=embedded)
        yield Service(started.url, headers, folder, started.log, session, schema)
        assert "Traceback" not in started.log.read_text()


@pytest.fixture
def real(service: Service) -> dict[str, str]:
    """A fresh table with a plan of several pages, and a worker."""
    location = service.folder / TABLE
    with httpx.Client(
        verify=PLAIN, base_url=service.url, headers=service.headers, timeout=60
    ) as http:
        http.delete(f"/tables/{TABLE}")
        http.put(f"/tables/{TABLE}", json={"location": str(location)}).raise_for_status()
        http.post(f"/tables/{TABLE}/refresh").raise_for_status()
        beat = {"host": "h1", "capacity_bytes": 10, "used_bytes": 0, "ttl_seconds": 600}
        http.put(f"/workers/{WORKER}", json=beat).raise_for_status()
        rule = {"filter": "ds >= '2026-11-02'"}
        http.put(f"/tables/{TABLE}/cache-rules/{RULE}", json=rule).raise_for_status()
        http.put(f"/policies/{POLICY}", json=rule).raise_for_status()
        options = {"max_split_size": 1}
        plan = http.post("/plans", json={"table": TABLE, "page_size": 1, "options": options})
        plan.raise_for_status()
    return {PLAN_ID: plan.json()["plan_id"], PAGE_TOKEN: plan.json()["next_page_token"]}


def _token(settings: Settings) -> str:
    async def create() -> str:
        async with administration.open_tokens(settings) as tokens:
            return (await tokens.create("anyone", ["admin", "worker"], None))[1]

    with start_blocking_portal() as portal:
        return portal.call(create)


@pytest.mark.slow
@pytest.mark.parametrize("operation", operations())
def test_every_answer_is_listed_in_the_contract(
    operation: str, service: Service, real: dict[str, str]
) -> None:
    from tests.support.api import fuzzing

    numbers = count()

    @examples(_EXAMPLES, database=None, suppress_health_check=list(HealthCheck))
    def check_answer(case: Case[Any]) -> None:
        number = next(numbers)
        if fuzzing.is_edge_case(case) and number % _EVERY_NTH:
            return
        for values in (case.path_parameters, case.query):
            for name, value in values.items():
                if isinstance(value, str) and value in real:
                    values[name] = real[value]
        case.call_and_validate(**service.calling(), headers=service.headers)
        # Whatever a request says, its token is looked at first.
        if service.headers and number < _WITHOUT_TOKEN and not case.path.startswith("/health/"):
            assert case.call(**service.calling()).status_code == 401

    fuzzing.test_of(service.schema, operation, check_answer)()


def nested(depth: int) -> str:
    return '{"op":"not","arg":' * depth + '{"op":"is_null","column":"id"}' + "}" * depth


NASTY = {
    "NaN": '{"op":"eq","column":"id","value":NaN}',
    "infinity": '{"op":"lt","column":"id","value":Infinity}',
    "a float out of range": '{"op":"lt","column":"id","value":1e999}',
    "an integer of 4,000 digits": '{"op":"eq","column":"id","value":' + "9" * 4_000 + "}",
    "an integer of 9,000 digits": '{"op":"eq","column":"id","value":' + "9" * 9_000 + "}",
    "a text of digits for an integer": '{"op":"eq","column":"id","value":"1e999999999"}',
    "nested 90 deep": nested(90),
    "nested 300 deep": nested(300),
    "nested 20,000 deep": nested(20_000),
    "lists nested 100,000 deep": "[" * 100_000,
    "a null character in a value": '{"op":"eq","column":"name","value":"a\\u0000b"}',
    "a null character in a column": '{"op":"eq","column":"i\\u0000d","value":1}',
    "half a character in a value": '{"op":"eq","column":"name","value":"\\ud800"}',
    "half a character in a column": '{"op":"eq","column":"\\ud800","value":1}',
    "half a character in text": "\"name = '\\ud800'\"",
    "half a character as a field": '{"\\ud800":1}',
    "text with a null character": "\"name = 'a\\u0000' AND \\u0000\"",
    "an empty text": '""',
    "a list of nothing": '{"op":"in","column":"id","values":[]}',
    "a list of everything": '{"op":"in","column":"id","values":[null,true,1.5,"x",1e400]}',
    "a date out of range": "\"ds = '9999999-01-01'\"",
    "a date of the year 0": "\"ds >= '0000-00-00'\"",
}


@pytest.mark.parametrize("nasty", NASTY.values(), ids=NASTY)
def test_nasty_json_in_a_filter_is_answered_with_a_plan_or_a_problem(
    http: httpx.Client, filtered: str, nasty: str
) -> None:
    check(http.post("/plans", content=f'{{"table":"{filtered}","filter":{nasty}}}', headers=JSON))


@pytest.mark.parametrize("nasty", NASTY.values(), ids=NASTY)
def test_nasty_json_anywhere_is_answered_with_a_problem(
    http: httpx.Client, filtered: str, nasty: str
) -> None:
    for body in (
        nasty,
        f'{{"table":{nasty}}}',
        f'{{"table":"{filtered}","snapshot_id":{nasty}}}',
        f'{{"table":"{filtered}","page_size":{nasty}}}',
        f'{{"table":"{filtered}","columns":[{nasty}]}}',
        f'{{"table":"{filtered}","options":{{"max_split_size":{nasty}}}}}',
    ):
        check(http.post("/plans", content=body, headers=JSON))
    for body in (nasty, f'{{"location":{nasty}}}', f'{{"location":"/","columns":[{nasty}]}}'):
        check(http.put("/tables/nasty", content=body, headers=JSON))


@pytest.mark.parametrize("value", ["1e999", "NaN", "9" * 5_000, str(2**63), str(2**31), "-1", "0"])
def test_numbers_out_of_range_are_refused(http: httpx.Client, filtered: str, value: str) -> None:
    for body in (
        f'{{"table":"{filtered}","snapshot_id":{value}}}',
        f'{{"table":"{filtered}","options":{{"parallelism":{value}}}}}',
        f'{{"table":"{filtered}","options":{{"max_small_splits_grouped":{value}}}}}',
    ):
        answer = http.post("/plans", content=body, headers=JSON)
        assert answer.status_code in (400, 422)
        check(answer)


@pytest.mark.parametrize(
    "value",
    ["1e999", "-1e999", "NaN", "-Infinity", "9" * 5_000, "7" * 10**6],
    ids=lambda value: value[:9],
)
@pytest.mark.parametrize(
    ("condition", "field"),
    [
        ('"op":"eq","column":"id","value":%s', "filter.tree.eq.value"),
        ('"op":"in","column":"id","values":[1,%s]', "filter.tree.in.values.1"),
        ('"op":"between","column":"id","low":1,"high":%s', "filter.tree.between.high"),
        ('"op":"not","arg":{"op":"lt","column":"id","value":%s}', "filter.tree.not.arg.lt.value"),
    ],
    ids=["eq", "in", "between", "not"],
)
def test_numbers_that_no_double_has_are_refused_by_the_name_of_their_field(
    http: httpx.Client, filtered: str, condition: str, field: str, value: str
) -> None:
    body = f'{{"table":"{filtered}","filter":{{{condition % value}}}}}'

    answer = http.post("/plans", content=body, headers=JSON)

    check(answer)
    assert answer.status_code == 422
    assert field in answer.json()["detail"]
    assert "it must be a number that a double has" in answer.json()["detail"]
    assert len(answer.json()["detail"]) < 1_000


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff\xfe", b"null", b"[]", b'"text"', b"{}" * 2, b'{"table": "a",}']
)
def test_a_body_that_is_not_a_json_object_is_refused(http: httpx.Client, body: bytes) -> None:
    answer = http.post("/plans", content=body, headers=JSON)

    assert answer.status_code in (400, 422)
    check(answer)


JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def filtered(url: str, tables_folder: Any) -> str:
    """A table with an integer, a string and a date column."""
    hive.write_events(tables_folder / "filtered")
    with httpx.Client(verify=PLAIN, base_url=url) as http:
        http.put("/tables/filtered", json={"location": str(tables_folder / "filtered")})
        http.post("/tables/filtered/refresh").raise_for_status()
    return "filtered"


def check(answer: httpx.Response) -> None:
    assert answer.status_code < 500, answer.text

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    body = json.loads(answer.content, parse_constant=refuse)
    if answer.status_code >= 400:
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert body["type"].startswith(PREFIX)
        assert body["detail"]
