"""Any request to the catalog for engines gets an answer that Iceberg's published contract lists."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import HealthCheck

import windrow
from tests.support.engines.scan_sites import ScanSite, scan_site
from tests.support.laws import examples, is_nightly, times
from windrow_service.api.iceberg import _ENDPOINTS

if TYPE_CHECKING:
    from schemathesis import Case
    from schemathesis.specs.openapi.schemas import OpenApiSchema

pytestmark = pytest.mark.slow

_CONTRACT = Path(__file__).parents[1] / "fixtures" / "apache-iceberg" / "rest-catalog-open-api.yaml"
# The coordinator's paths have no prefix.
_OPERATIONS = ("GET /v1/config", *(one.replace("/{prefix}", "") for one in _ENDPOINTS))
_EXAMPLES = times(100, by_day=5)
# Filters have hundreds of edge cases.
_EVERY_NTH = 1 if is_nightly() else 20


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScanSite]:
    folder = tmp_path_factory.mktemp("contract")
    for kind in ("a", "__HIVE_DEFAULT_PARTITION__"):
        for number in range(3):
            path = folder / "t" / f"kind={kind}" / f"{number}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table({"id": [number], "name": ["n"]}), path)
    with scan_site(folder, 2) as one:
        with windrow.connect(one.url, token=one.admin) as client:
            client.register_table("mine.t", str(folder / "t"))
            client.refresh("mine.t")
        yield one


@pytest.fixture(scope="module")
def contract() -> OpenApiSchema:
    import schemathesis

    from tests.support.api import fuzzing

    fuzzing.load_all_checks()
    schema = schemathesis.openapi.from_dict(_published())
    # Well-formed requests may name snapshots and columns that the table does not have.
    schema.config.checks.positive_data_acceptance.expected_statuses = ["2xx", "400", "404", "406"]
    return schema


def _published() -> dict[str, Any]:
    """Return the contract, of calls that the coordinator lists alone, with a likely table."""
    contract: dict[str, Any] = yaml.safe_load(_CONTRACT.read_text())
    shared = contract["components"]
    for name, value in (("namespace", "mine"), ("table", "t")):
        parameter = shared["parameters"][name]
        parameter.pop("example", None)
        parameter.pop("examples", None)
        parameter["schema"] = {"anyOf": [{"enum": [value]}, parameter["schema"]]}
    # Their examples, and Iceberg's clients, have the wrapper that these schemas leave out.
    views = contract["paths"]["/v1/{prefix}/namespaces/{namespace}/views"]["get"]["responses"]
    for error in (shared["responses"]["UnsupportedOperationResponse"], views[404]):
        wrapper = {"$ref": "#/components/schemas/IcebergErrorResponse"}
        error["content"]["application/json"]["schema"] = wrapper
    # Partition values may be null, which it has no type for, and any text is of several of its types.
    values = shared["schemas"]["PrimitiveTypeValue"]
    values["anyOf"] = [*values.pop("oneOf"), {"type": "null"}]
    # The test adds a token: a generated one would never be valid.
    del contract["security"], shared["securitySchemes"]
    paths: dict[str, Any] = {}
    for path, item in contract["paths"].items():
        ours = path.replace("/{prefix}", "")
        for method in {"get", "head", "post", "put", "delete"} & set(item):
            if f"{method.upper()} {ours}" in _OPERATIONS:
                item[method].pop("security", None)
                paths[ours] = paths.get(ours, {}) | {method: item[method]}
        if ours in paths:
            paths[ours]["parameters"] = [
                one
                for one in item.get("parameters", ())
                if not one.get("$ref", "").endswith("/prefix")
            ]
    return {**contract, "paths": paths}


@pytest.mark.parametrize("operation", _OPERATIONS)
def test_every_answer_is_one_of_icebergs_contract(
    operation: str, site: ScanSite, contract: OpenApiSchema
) -> None:
    from schemathesis.checks import CHECKS

    from tests.support.api import fuzzing

    headers = {"Authorization": f"Bearer {site.mine}"}
    # Iceberg's readers and servers ignore what they do not know.
    left_out = [CHECKS.get_one("negative_data_rejection")]
    numbers = count()

    @examples(_EXAMPLES, database=None, suppress_health_check=list(HealthCheck))
    def check(case: Case[Any]) -> None:
        if fuzzing.is_edge_case(case) and next(numbers) % _EVERY_NTH:
            return
        case.call_and_validate(
            base_url=f"{site.url}/iceberg", headers=headers, excluded_checks=left_out
        )

    fuzzing.test_of(contract, operation, check)()


def test_answers_with_rows_and_pages_are_those_of_icebergs_contract(
    site: ScanSite, contract: OpenApiSchema
) -> None:
    table = "/v1/namespaces/{namespace}/tables/{table}"
    names = {"namespace": "mine", "table": "t"}

    def asked(method: str, path: str, **sent: Any) -> Any:
        case = contract[path][method].Case(path_parameters=names, **sent)
        answer = case.call_and_validate(
            base_url=f"{site.url}/iceberg", headers={"Authorization": f"Bearer {site.mine}"}
        )
        assert answer.status_code == 200
        return answer.json()

    def tasks(**scan: Any) -> list[int]:
        """Return how many tasks a plan and each of its pages have."""
        plan = asked("POST", f"{table}/plan", body=scan, media_type="application/json")
        pages = [
            asked("POST", f"{table}/tasks", body={"plan-task": one}, media_type="application/json")
            for one in plan["plan-tasks"]
        ]
        return [len(one["file-scan-tasks"]) for one in (plan, *pages)]

    asked("GET", table)
    assert sum(tasks()) == 6
    assert len(tasks()) > 2
    assert sum(tasks(filter={"type": "not-null", "term": "kind"})) == 3
