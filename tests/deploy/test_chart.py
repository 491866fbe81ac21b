"""Requirements on every manifest that the chart renders."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from tests.deploy.charts import (
    CHART,
    RELEASE,
    ROOT,
    VALUES,
    Manifest,
    coordinator,
    helm,
    manifests,
    of_kind,
    rendered,
    workloads,
)
from windrow import __version__

MINIMAL, PRODUCTION, EMBEDDED, SHARED_TABLES = (
    Path(__file__).parent / "values" / f"{name}.yaml"
    for name in ("minimal", "production", "embedded", "shared-tables")
)
KUBERNETES = ["1.27.0", "1.31.0", kubernetes_validate.latest_version()]
# API groups that Kubernetes itself does not know: see test_chart_monitoring and test_chart_network.
EXTENSIONS = {"monitoring.coreos.com", "gateway.networking.k8s.io"}
SECRET_VARIABLES = {"WINDROW_DATABASE_URL", "WINDROW_REDIS_URL"}

every_values_file = pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)


def test_the_chart_has_the_version_of_the_package() -> None:
    chart = helm("show", "chart", str(CHART)).stdout

    assert f"appVersion: {__version__}" in chart.replace('"', "")


def test_the_chart_passes_lint_without_values() -> None:
    done = helm("lint", "--strict", str(CHART))

    assert done.returncode == 0, done.stdout


@every_values_file
def test_the_chart_passes_lint_with_values(values: Path) -> None:
    done = helm("lint", "--strict", str(CHART), "--values", str(values))

    assert done.returncode == 0, done.stdout


@every_values_file
@pytest.mark.parametrize("kubernetes", KUBERNETES)
def test_every_manifest_is_valid_on_old_and_new_kubernetes(values: Path, kubernetes: str) -> None:
    documents = manifests(values, kubernetes=kubernetes)

    for document in documents:
        if document["apiVersion"].split("/")[0] in EXTENSIONS:
            continue
        kubernetes_validate.validate(document, kubernetes, strict=True)

    assert {"ConfigMap", "Deployment", "Service", "ServiceAccount"} <= {
        document["kind"] for document in documents
    }


@every_values_file
def test_no_pod_has_privileges_that_it_does_not_need(values: Path) -> None:
    for load in workloads(manifests(values)):
        pod, container = load.spec["securityContext"], load.container["securityContext"]
        assert pod["runAsNonRoot"] is True
        assert pod["runAsUser"] > 0
        assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert load.spec["automountServiceAccountToken"] is False
        assert not {"hostNetwork", "hostPID", "hostIPC"} & load.spec.keys()
        assert not any("hostPath" in volume for volume in load.spec.get("volumes", []))


@every_values_file
def test_no_pod_gets_settings_from_service_links(values: Path) -> None:
    # Service links would set WINDROW_PORT to tcp://… if a Service is called windrow.
    assert all(load.spec["enableServiceLinks"] is False for load in workloads(manifests(values)))


@every_values_file
def test_every_pod_declares_its_memory(values: Path) -> None:
    for load in workloads(manifests(values)):
        resources = load.container["resources"]
        assert {"cpu", "memory"} <= resources["requests"].keys()
        assert "memory" in resources["limits"]


@every_values_file
def test_a_database_outage_never_restarts_a_replica(values: Path) -> None:
    container = coordinator(manifests(values)).container

    probed = {
        name: container[name]["httpGet"]
        for name in ("startupProbe", "livenessProbe", "readinessProbe")
    }

    assert probed == {
        "startupProbe": {"path": "/health/live", "port": "http"},
        "livenessProbe": {"path": "/health/live", "port": "http"},
        "readinessProbe": {"path": "/health/ready", "port": "http"},
    }


def test_probes_request_paths_that_the_coordinator_serves() -> None:
    served = (ROOT / "openapi.yaml").read_text()

    assert all(f"\n  {path}:\n" in served for path in ("/health/live", "/health/ready"))


@every_values_file
def test_a_replica_gets_time_to_finish(values: Path) -> None:
    load = coordinator(manifests(values))

    waiting_s = int(load.container["lifecycle"]["preStop"]["exec"]["command"][1])

    # Running requests get 10 s to finish, and closing connections takes up to 5 s.
    assert load.spec["terminationGracePeriodSeconds"] >= waiting_s + 10 + 5


@every_values_file
def test_urls_with_passwords_come_only_from_secrets(values: Path) -> None:
    documents = manifests(values)

    assert of_kind("Secret", documents) == []
    assert not any(
        SECRET_VARIABLES & document["data"].keys() for document in of_kind("ConfigMap", documents)
    )
    for load in workloads(documents):
        for variable in load.container.get("env", []):
            if variable["name"] in SECRET_VARIABLES:
                assert variable.keys() == {"name", "valueFrom"}
                assert variable["valueFrom"].keys() == {"secretKeyRef"}


@every_values_file
def test_no_text_of_the_chart_looks_like_a_url_with_a_password(values: Path) -> None:
    text = rendered(values)

    assert "postgres://" not in text
    assert "postgresql://" not in text
    assert "redis://" not in text
    assert "rediss://" not in text


@every_values_file
def test_selectors_match_only_pods_of_the_coordinator(values: Path) -> None:
    documents = manifests(values)
    selectors = [
        *(
            document["spec"]["selector"]["matchLabels"]
            for document in _all(documents, "Deployment")
        ),
        *(document["spec"]["selector"] for document in _all(documents, "Service")),
        *(
            document["spec"]["selector"]["matchLabels"]
            for document in of_kind("PodDisruptionBudget", documents)
        ),
        *(
            document["spec"]["podSelector"]["matchLabels"]
            for document in of_kind("NetworkPolicy", documents)
        ),
        *(
            constraint["labelSelector"]["matchLabels"]
            for constraint in coordinator(documents).spec["topologySpreadConstraints"]
        ),
    ]

    for selector in selectors:
        selected = [
            load.kind
            for load in workloads(documents)
            if selector.items() <= load.metadata["labels"].items()
        ]
        assert selected == ["Deployment"]


@every_values_file
def test_every_name_referenced_by_a_manifest_exists(values: Path) -> None:
    documents = manifests(values)
    load = coordinator(documents)
    named = {(document["kind"], document["metadata"]["name"]) for document in documents}

    assert ("ServiceAccount", load.spec["serviceAccountName"]) in named
    assert ("ConfigMap", load.container["envFrom"][0]["configMapRef"]["name"]) in named
    for document in of_kind("HorizontalPodAutoscaler", documents):
        target = document["spec"]["scaleTargetRef"]
        assert (target["kind"], target["name"]) in named
    for document in of_kind("HTTPRoute", documents):
        (backend,) = document["spec"]["rules"][0]["backendRefs"]
        assert ("Service", backend["name"]) in named
    for document in of_kind("Ingress", documents):
        backend = document["spec"]["rules"][0]["http"]["paths"][0]["backend"]
        assert ("Service", backend["service"]["name"]) in named
    ports = {port["name"] for port in load.container["ports"]}
    targets = [
        port["targetPort"]
        for service in of_kind("Service", documents)
        for port in service["spec"]["ports"]
    ]
    assert sorted(targets) == sorted(ports)


@pytest.mark.parametrize("values", [MINIMAL, PRODUCTION, SHARED_TABLES], ids=lambda p: p.stem)
def test_the_database_is_migrated_by_the_same_image_before_anything_changes(values: Path) -> None:
    documents = manifests(values)
    (job,) = of_kind("Job", documents)
    (migration,) = [load for load in workloads(documents) if load.kind == "Job"]

    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert migration.container["command"] == ["windrow", "db", "upgrade"]
    assert migration.container["image"] == coordinator(documents).container["image"]
    assert _variable(migration.container, "WINDROW_DATABASE_URL") == _variable(
        coordinator(documents).container, "WINDROW_DATABASE_URL"
    )


@pytest.mark.parametrize("values", [MINIMAL, PRODUCTION, SHARED_TABLES], ids=lambda p: p.stem)
def test_a_hook_that_runs_first_needs_nothing_of_the_release(values: Path) -> None:
    (migration,) = [load for load in workloads(manifests(values)) if load.kind == "Job"]

    assert "serviceAccountName" not in migration.spec
    assert "envFrom" not in migration.container


def test_an_embedded_coordinator_is_one_process_with_its_own_volume() -> None:
    documents = manifests(EMBEDDED)
    (deployment,) = of_kind("Deployment", documents)
    (claim,) = of_kind("PersistentVolumeClaim", documents)
    load = coordinator(documents)

    assert deployment["spec"]["replicas"] == 1
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    assert of_kind("Job", documents) == []
    assert of_kind("PodDisruptionBudget", documents) == []
    assert "env" not in load.container
    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    volumes = {volume["name"]: volume for volume in load.spec["volumes"]}
    assert volumes["state"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    mounts = {mount["name"]: mount["mountPath"] for mount in load.container["volumeMounts"]}
    assert mounts["state"] == _config(documents)["WINDROW_STATE_DIR"]
    assert load.spec["securityContext"]["fsGroup"] == load.spec["securityContext"]["runAsGroup"]


def test_an_embedded_coordinator_uses_an_existing_claim() -> None:
    documents = manifests(EMBEDDED, "embedded.existingClaim=mine")

    assert of_kind("PersistentVolumeClaim", documents) == []
    assert {
        "name": "state",
        "persistentVolumeClaim": {"claimName": "mine"},
    } in coordinator(documents).spec["volumes"]


@pytest.mark.parametrize("values", [MINIMAL, PRODUCTION, SHARED_TABLES], ids=lambda p: p.stem)
def test_the_chart_never_changes_the_group_of_table_files(values: Path) -> None:
    assert "fsGroup" not in coordinator(manifests(values)).spec["securityContext"]


def test_replicas_are_never_all_removed_at_once() -> None:
    (budget,) = of_kind("PodDisruptionBudget", manifests(MINIMAL))
    (deployment,) = of_kind("Deployment", manifests(MINIMAL))

    assert budget["spec"]["maxUnavailable"] == 1
    assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert of_kind("PodDisruptionBudget", manifests(MINIMAL, "replicas=1")) == []


def test_an_upgrade_keeps_a_replica_count_set_elsewhere() -> None:
    documents = manifests(PRODUCTION)

    assert "replicas" not in of_kind("Deployment", documents)[0]["spec"]
    assert of_kind("HorizontalPodAutoscaler", documents)[0]["spec"]["minReplicas"] == 3


def test_new_settings_start_new_pods_and_the_same_settings_do_not() -> None:
    def checksum(*settings: str) -> Any:
        load = coordinator(manifests(MINIMAL, *settings))
        return load.metadata["annotations"]["checksum/config"]

    assert checksum() == checksum("service.port=81")
    assert checksum() != checksum("plannerThreads=5")


def test_callers_need_a_token_unless_explicitly_disabled() -> None:
    name = "WINDROW_SERVE_WITHOUT_AUTHENTICATION"

    assert name not in _config(manifests(MINIMAL))
    assert _config(manifests(MINIMAL, "serveWithoutAuthentication=true"))[name] == "true"


def test_every_pod_has_the_priority_that_is_given() -> None:
    classes = {load.spec.get("priorityClassName") for load in workloads(manifests(PRODUCTION))}

    assert classes == {"services"}
    assert not any("priorityClassName" in load.spec for load in workloads(manifests(MINIMAL)))


def test_a_single_replica_needs_no_redis() -> None:
    documents = manifests(MINIMAL, "replicas=1", "redis.secretName=")

    assert _variable(coordinator(documents).container, "WINDROW_REDIS_URL") is None


def test_a_platform_may_choose_the_user() -> None:
    load = coordinator(manifests(MINIMAL, "runAs.user=null", "runAs.group=null"))

    assert load.spec["securityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def test_everything_has_the_namespace_and_name_of_its_release() -> None:
    for document in manifests(PRODUCTION):
        assert document["metadata"]["name"].startswith(RELEASE)
        assert document["metadata"]["labels"]["app.kubernetes.io/instance"] == RELEASE
        assert "namespace" not in document["metadata"]


def test_the_values_in_the_guide_are_valid_for_the_chart(tmp_path: Path) -> None:
    pages = ("deploy", "secure", "sign-in", "back-up")
    blocks = [
        block
        for page in pages
        for block in (ROOT / "docs" / "how-to" / f"{page}.md").read_text().split("```yaml\n")[1:]
    ]

    assert len(blocks) > len(pages)
    for number, block in enumerate(blocks):
        values = tmp_path / f"{number}.yaml"
        values.write_text(textwrap.dedent(block.partition("```")[0].rstrip(" ")))
        assert manifests(values)


def test_every_value_is_in_the_schema_and_every_key_of_the_schema_has_a_default() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    text = (CHART / "values.yaml").read_text()

    assert schema["additionalProperties"] is False
    for name in schema["properties"].keys() - {"global"}:
        assert f"\n{name}:" in text


def _all(documents: list[Manifest], kind: str) -> list[Manifest]:
    found = of_kind(kind, documents)
    assert found
    return found


def _config(documents: list[Manifest]) -> dict[str, str]:
    (config,) = of_kind("ConfigMap", documents)
    return dict(config["data"])


def _variable(container: Manifest, name: str) -> Manifest | None:
    return next((item for item in container.get("env", []) if item["name"] == name), None)
