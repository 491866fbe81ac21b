"""Whatever is sent, the answer is one that the published contract lists."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import CHECKS

from tests.support import hive
from tests.support.problems import PREFIX
from windrow_service.openapi import document

# The others judge whether data was accepted that should not be; `test_tables`, `test_plans` do.
_NAMES = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)


@schemathesis.serializer("application/vnd.apache.arrow.stream")
def _any_bytes(_: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


_schema = schemathesis.openapi.from_dict(document())
_schema.config.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])


@_schema.parametrize()
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_an_answer_is_one_that_the_contract_lists(case: Case, url: str) -> None:
    answer = case.call(base_url=url)

    case.validate_response(answer, checks=[CHECKS.get_one(name) for name in _NAMES])


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
    "body", [b"", b"{", b"\xff\xfe", b"null", b"[]", b'"text"', b"{}" * 2, b'{"table": "a",}']
)
def test_a_body_that_is_not_a_json_object_is_refused(http: httpx.Client, body: bytes) -> None:
    answer = http.post("/plans", content=body, headers=JSON)

    assert answer.status_code in (400, 422)
    check(answer)


JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def filtered(url: str, tables_folder: Any) -> str:
    """A table with an integer, a text and a date to filter by."""
    hive.write_events(tables_folder / "filtered")
    with httpx.Client(base_url=url) as http:
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
