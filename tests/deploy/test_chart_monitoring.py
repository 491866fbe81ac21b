"""Alerts, dashboard and scraping: valid, and about metrics that a coordinator serves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import promql_parser as promql
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.deploy.charts import ROOT, manifests, of_kind, workloads
from tests.support.servers.coordinators import PLAIN, coordinator_process, free_port
from tests.support.tables import hive

WATCHED, MINIMAL = (
    Path(__file__).parent / "values" / f"{name}.yaml" for name in ("watched", "minimal")
)
# Labels that Prometheus adds to metrics of a ServiceMonitor's pods.
ADDED = {"namespace", "pod"}
DURATION = "^([0-9]+(ms|s|m|h|d))+$"
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
# Schemas from the documentation of the Prometheus operator, which drops unknown fields silently.
RULES = {
    "type": "object",
    "required": ["groups"],
    "additionalProperties": False,
    "properties": {
        "groups": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["name", "rules"],
                "additionalProperties": False,
                "properties": {
                    "name": {"type": "string"},
                    "rules": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["alert", "expr", "labels", "annotations"],
                            "additionalProperties": False,
                            "properties": {
                                "alert": {"type": "string", "pattern": "^Windrow[A-Z][A-Za-z]+$"},
                                "expr": {"type": "string"},
                                "for": {"type": "string", "pattern": DURATION},
                                "labels": {
                                    "type": "object",
                                    "required": ["severity"],
                                    "additionalProperties": False,
                                    "properties": {
                                        "severity": {"enum": ["critical", "warning", "info"]}
                                    },
                                },
                                "annotations": TEXTS | {"required": ["summary", "description"]},
                            },
                        },
                    },
                },
            },
        }
    },
}
MONITOR = {
    "type": "object",
    "required": ["endpoints", "selector"],
    "additionalProperties": False,
    "properties": {
        "endpoints": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["port"],
                "additionalProperties": False,
                "properties": {
                    "port": {"type": "string"},
                    "path": {"type": "string", "pattern": "^/"},
                    "interval": {"type": "string", "pattern": DURATION},
                },
            },
        },
        "selector": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"matchLabels": TEXTS},
        },
    },
}


def rules() -> list[dict[str, Any]]:
    (rule,) = of_kind("PrometheusRule", manifests(WATCHED))
    return [one for group in rule["spec"]["groups"] for one in group["rules"]]


def dashboard() -> dict[str, Any]:
    (config,) = [
        document
        for document in of_kind("ConfigMap", manifests(WATCHED))
        if "windrow.json" in document["data"]
    ]
    assert config["metadata"]["labels"]["grafana_dashboard"] == "1"
    found: dict[str, Any] = json.loads(config["data"]["windrow.json"])
    return found


def panels() -> list[dict[str, Any]]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def queries() -> Iterator[tuple[str, str]]:
    for rule in rules():
        yield rule["alert"], rule["expr"]
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"].replace("$__rate_interval", "5m")


def parts(node: Any) -> Iterator[Any]:
    """Yield an expression and all expressions within it."""
    yield node
    for name in ("lhs", "rhs", "expr", "param", "vector_selector"):
        inner = getattr(node, name, None)
        if inner is not None:
            yield from parts(inner)
    for inner in getattr(node, "args", ()):
        yield from parts(inner)


def selectors(text: str) -> Iterator[promql.VectorSelector]:
    for part in parts(promql.parse(text)):
        if isinstance(part, promql.VectorSelector):
            yield part


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The labels of each series that a coordinator in use serves, by name."""
    folder = tmp_path_factory.mktemp("watched")
    location = hive.write_events(folder / "tables" / "events")
    port = free_port()
    beat = {"host": "h", "capacity_bytes": 9, "used_bytes": 1}
    with (
        coordinator_process(
            folder / "state", folder / "tables", WINDROW_METRICS__PORT=str(port)
        ) as coordinator,
        httpx.Client(base_url=coordinator.url, verify=PLAIN) as http,
    ):
        http.put("/tables/events", json={"location": str(location)}).raise_for_status()
        http.post("/tables/events/refresh").raise_for_status()
        http.post("/plans", json={"table": "events"}).raise_for_status()
        http.put("/workers/w", json=beat).raise_for_status()
        text = httpx.get(f"http://127.0.0.1:{port}/metrics", verify=PLAIN).text
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


# One test for all queries: as parameters, each process that collects tests would render them.
def test_each_query_is_valid_and_about_metrics_that_are_served(
    served: dict[str, set[str]],
) -> None:
    for where, query in queries():
        found = list(selectors(query))

        assert found, where
        labels: set[str] = set(ADDED)
        for selector in found:
            assert selector.name in served, where
            own = served[selector.name] | ADDED
            labels |= own
            matchers = selector.matchers.matchers
            assert {matcher.name for matcher in matchers} <= own, where
            # Other installations in the cluster are not counted.
            assert "namespace" in {matcher.name for matcher in matchers}, where
        by = [part.modifier.labels for part in parts(promql.parse(query)) if grouped(part)]
        assert {label for group in by for label in group} <= labels, where


def grouped(part: Any) -> bool:
    return isinstance(part, promql.AggregateExpr) and part.modifier is not None


def test_each_alert_shows_only_labels_that_its_query_keeps_and_is_in_the_guide() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names)) > 0
    guide = (ROOT / "docs" / "how-to" / "monitor.md").read_text()
    for rule in rules():
        said = " ".join(rule["annotations"].values())
        told = set(re.findall(r"\$labels\.(\w+)", said))
        kept = set(re.findall(r"by \(([^)]*)\)", rule["expr"]))
        labels = {label.strip() for group in kept for label in group.split(",")}

        assert told <= labels | {"pod"}, rule["alert"]
        assert f"| `{rule['alert']}` |" in guide


def test_panels_are_complete_and_do_not_overlap() -> None:
    board = dashboard()
    taken: set[tuple[int, int]] = set()
    ids = [panel["id"] for panel in board["panels"]]

    assert len(ids) == len(set(ids))
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    for panel in panels():
        refs = [target["refId"] for target in panel["targets"]]
        assert len(refs) == len(set(refs)) > 0
        assert panel["fieldConfig"]["defaults"]["unit"]
    variables = {variable["name"] for variable in board["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]+)", json.dumps(board)))
    assert used - {"label"} <= variables


def test_every_metric_of_windrow_is_on_the_dashboard(served: dict[str, set[str]]) -> None:
    shown = {
        selector.name for _, query in queries() for selector in selectors(query) if selector.name
    }
    suffix = re.compile("_(bucket|count|sum)$")

    own = {suffix.sub("", name) for name in served if name.startswith("windrow_")}

    assert own == {suffix.sub("", name) for name in shown if name.startswith("windrow_")}


def test_the_resources_of_the_operator_have_no_unknown_field() -> None:
    documents = manifests(WATCHED)
    (rule,), (monitor,) = of_kind("PrometheusRule", documents), of_kind("ServiceMonitor", documents)

    jsonschema.validate(rule["spec"], RULES)
    jsonschema.validate(monitor["spec"], MONITOR)
    for document in (rule, monitor):
        assert document["apiVersion"] == "monitoring.coreos.com/v1"
        assert document["metadata"]["labels"]["release"] == "prometheus"


def test_the_monitor_finds_the_port_of_metrics_and_no_other() -> None:
    documents = manifests(WATCHED)
    (monitor,) = of_kind("ServiceMonitor", documents)
    wanted = monitor["spec"]["selector"]["matchLabels"]
    (service,) = [
        document
        for document in of_kind("Service", documents)
        if wanted.items() <= document["metadata"]["labels"].items()
    ]
    (port,) = service["spec"]["ports"]
    (container,) = [load.container for load in workloads(documents) if load.kind == "Deployment"]

    assert [endpoint["port"] for endpoint in monitor["spec"]["endpoints"]] == [port["name"]]
    assert {"name": port["targetPort"], "containerPort": port["port"]} in container["ports"]
    assert service["spec"]["clusterIP"] == "None"


def test_only_named_sources_reach_the_port_of_metrics() -> None:
    (policy,) = of_kind("NetworkPolicy", manifests(WATCHED))
    calls, metrics = policy["spec"]["ingress"]

    assert calls["ports"] == [{"port": "http"}]
    assert metrics["ports"] == [{"port": "metrics"}]
    assert [peer["namespaceSelector"]["matchLabels"] for peer in metrics["from"]] == [
        {"kubernetes.io/metadata.name": "monitoring"}
    ]
    (closed,) = of_kind("NetworkPolicy", manifests(WATCHED, "metrics.from=null"))
    assert [rule["ports"] for rule in closed["spec"]["ingress"]] == [[{"port": "http"}]]


def test_without_metrics_the_chart_renders_nothing_about_them() -> None:
    documents = manifests(MINIMAL)
    text = yaml.safe_dump_all(documents)

    assert "metrics" not in text.lower()
    assert {"ServiceMonitor", "PrometheusRule"}.isdisjoint(one["kind"] for one in documents)
