"""Who reaches a coordinator, and what it reaches: NetworkPolicy, Ingress and HTTPRoute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.deploy.charts import manifests, of_kind, workloads

MINIMAL, PRODUCTION, EMBEDDED, SHARED_TABLES = (
    Path(__file__).parent / "values" / f"{name}.yaml"
    for name in ("minimal", "production", "embedded", "shared-tables")
)
# The schema of an HTTPRoute, from the documentation of the Gateway API.
ROUTE = {
    "type": "object",
    "required": ["parentRefs", "rules"],
    "additionalProperties": False,
    "properties": {
        "parentRefs": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["name"],
                "additionalProperties": False,
                "properties": {
                    "group": {"type": "string"},
                    "kind": {"type": "string"},
                    "name": {"type": "string"},
                    "namespace": {"type": "string"},
                    "sectionName": {"type": "string"},
                    "port": {"type": "integer"},
                },
            },
        },
        "hostnames": {
            "type": "array",
            "items": {
                "type": "string",
                "pattern": r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
            },
        },
        "rules": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "matches": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "additionalProperties": False,
                            "properties": {
                                "path": {
                                    "type": "object",
                                    "additionalProperties": False,
                                    "properties": {
                                        "type": {"enum": ["Exact", "PathPrefix"]},
                                        "value": {"type": "string", "pattern": "^/"},
                                    },
                                }
                            },
                        },
                    },
                    "backendRefs": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["name", "port"],
                            "additionalProperties": False,
                            "properties": {
                                "name": {"type": "string"},
                                "port": {"type": "integer"},
                            },
                        },
                    },
                    "timeouts": {
                        "type": "object",
                        "additionalProperties": False,
                        "properties": {
                            "request": {
                                "type": "string",
                                "pattern": "^([0-9]{1,5}(h|m|s|ms)){1,4}$",
                            }
                        },
                    },
                },
            },
        },
    },
}


def test_only_named_sources_reach_the_port_and_the_release_test() -> None:
    documents = manifests(PRODUCTION)
    (policy,) = of_kind("NetworkPolicy", documents)
    (rule,) = policy["spec"]["ingress"]
    (test,) = [load for load in workloads(documents) if load.kind == "Pod"]

    assert rule["ports"] == [{"port": "http"}]
    spaces = [peer["namespaceSelector"]["matchLabels"] for peer in rule["from"][:-1]]
    assert [space["kubernetes.io/metadata.name"] for space in spaces] == ["ingress-nginx", "spark"]
    assert rule["from"][-1]["podSelector"]["matchLabels"].items() <= test.metadata["labels"].items()


@pytest.mark.parametrize("values", [MINIMAL, EMBEDDED, SHARED_TABLES], ids=lambda path: path.stem)
def test_without_named_sources_anyone_reaches_the_port_of_callers_and_no_other(
    values: Path,
) -> None:
    (policy,) = of_kind("NetworkPolicy", manifests(values))

    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert policy["spec"]["ingress"] == [{"ports": [{"port": "http"}]}]
    assert of_kind("NetworkPolicy", manifests(values, "networkPolicy.enabled=false")) == []


def test_a_coordinator_reaches_what_its_settings_need_and_nothing_else() -> None:
    anywhere = None

    assert _reached(MINIMAL) == {
        53: anywhere,
        5432: anywhere,
        6379: anywhere,
        443: anywhere,
        80: ("169.254.169.254/32", "169.254.169.252/32", "169.254.170.23/32"),
        988: ("169.254.169.254/32", "169.254.169.252/32", "169.254.170.23/32"),
    }
    assert _reached(EMBEDDED).keys() == {53, 443}
    assert _reached(SHARED_TABLES).keys() == {53, 5432, 6379, 443}
    assert _reached(MINIMAL, "replicas=1", "redis.secretName=").keys() == {53, 5432, 443, 80, 988}


def test_only_name_lookups_use_udp() -> None:
    (policy,) = of_kind("NetworkPolicy", manifests(MINIMAL))

    ports = [port for rule in policy["spec"]["egress"] for port in rule["ports"]]

    assert [port["port"] for port in ports if port["protocol"] == "UDP"] == [53]
    assert {port["port"] for port in ports if port["protocol"] == "TCP"} == set(_reached(MINIMAL))


@pytest.mark.parametrize(
    ("settings", "opened"),
    [
        (["issuers.corp.url=https://login.example.com:8443/realms/corp"], {8443}),
        (["issuers.corp.url=https://[fd00::1]:9443"], {9443}),
        (
            [
                "issuers.corp.url=https://login.example.com",
                "issuers.corp.keys_url=https://keys.example.com:7443/jwks",
            ],
            {7443},
        ),
        (["issuers.corp.url=https://kubernetes.default.svc.cluster.local"], {6443}),
        (
            ["extraEnv[0].name=AWS_ENDPOINT_URL", "extraEnv[0].value=http://minio.storage:9000"],
            {9000},
        ),
        (
            [
                "extraEnv[0].name=OTEL_EXPORTER_OTLP_ENDPOINT",
                "extraEnv[0].value=http://collector:4318/v1",
            ],
            {4318},
        ),
        (["extraEnv[0].name=AWS_ENDPOINT_URL", "extraEnv[0].value=http://minio"], {80}),
        (["extraEnv[0].name=AWS_REGION", "extraEnv[0].value=eu-north-1"], set()),
        (["allowedLocations={hdfs://names:9820/tables}"], {9820, 9866}),
        (["allowedLocations={hdfs://names/tables}"], {8020, 9866}),
        (["allowedLocations={viewfs://all/tables}"], {8020, 9866}),
        (["packs.folder=s3://lake/packs"], {80, 988}),
        (["packs.folder=hdfs://names:9820/packs"], {9820, 9866}),
        (["networkPolicy.egress.web.ports={443,8443}"], {8443}),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_ports_of_urls_in_the_settings_are_open(settings: list[str], opened: set[int]) -> None:
    if settings[0].startswith("issuers"):
        settings = [*settings, "issuers.corp.audience=windrow"]

    reached = _reached(EMBEDDED, *settings)

    assert reached.keys() == {53, 443} | opened


def test_destinations_in_the_values_replace_the_defaults() -> None:
    reached = _reached(PRODUCTION)

    assert 5432 not in reached
    assert reached[6432] == ("pgbouncer",)
    assert reached[3128] == ("10.1.2.3/32",)


def test_a_route_of_the_gateway_api_leads_to_the_service() -> None:
    documents = manifests(PRODUCTION)
    (route,) = of_kind("HTTPRoute", documents)
    ports = [
        port["port"]
        for service in of_kind("Service", documents)
        for port in service["spec"]["ports"]
        if port["name"] == "http"
    ]

    jsonschema.validate(route["spec"], ROUTE)
    assert route["apiVersion"] == "gateway.networking.k8s.io/v1"
    assert route["spec"]["hostnames"] == ["windrow.example.com", "*.lake.example.com"]
    assert [one["port"] for one in route["spec"]["rules"][0]["backendRefs"]] == ports
    assert route["spec"]["rules"][0]["timeouts"] == {"request": "300s"}
    assert of_kind("Ingress", documents)
    (plain,) = of_kind("HTTPRoute", manifests(PRODUCTION, "httpRoute.requestTimeout="))
    assert "timeouts" not in plain["spec"]["rules"][0]


def _reached(values: Path, *settings: str) -> dict[int, tuple[str, ...] | None]:
    """Return the ports that are open, each with the peers that it is open to; None is anywhere."""
    (policy,) = of_kind("NetworkPolicy", manifests(values, *settings))
    reached: dict[int, tuple[str, ...] | None] = {}
    for rule in policy["spec"]["egress"]:
        peers = tuple(_named(peer) for peer in rule["to"]) if "to" in rule else None
        reached |= {port["port"]: peers for port in rule["ports"] if port["port"] not in reached}
    return reached


def _named(peer: dict[str, Any]) -> str:
    if "ipBlock" in peer:
        return str(peer["ipBlock"]["cidr"])
    return str(peer["podSelector"]["matchLabels"]["app"])
