"""The chart's job of maintenance: off by default, and able to reach the coordinator."""

from __future__ import annotations

from pathlib import Path

from tests.deploy.charts import manifests, of_kind, workloads
from windrow_cli.app import run

MINIMAL, PRODUCTION = (
    Path(__file__).parent / "values" / f"{name}.yaml" for name in ("minimal", "production")
)
JOB = (
    "maintenance.job.enabled=true",
    "maintenance.job.image=registry.example.com/data/spark:4.3",
    "maintenance.job.tokenSecretName=maintainer",
    "maintenance.job.tables=sales.*",
)


def test_no_job_of_maintenance_runs_by_default() -> None:
    assert of_kind("CronJob", manifests(MINIMAL)) == []


def test_the_job_runs_a_command_that_exists_with_the_token_of_a_secret() -> None:
    documents = manifests(MINIMAL, *JOB)
    (load,) = [load for load in workloads(documents) if load.kind == "CronJob"]
    (service,) = of_kind("Service", documents)
    program, *command = load.container["command"]
    env = {one["name"]: one for one in load.container["env"]}

    assert program == "windrow"
    # Of a command that is not complete, only that is said.
    assert run([*command, "--explain"]) == 2
    url = f"http://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
    assert f"--url={url}" in command
    assert {"--once", "--tables=sales.*", "--master=local[*]"} <= set(command)
    assert env["WINDROW_TOKEN"]["valueFrom"]["secretKeyRef"] == {
        "name": "maintainer",
        "key": "token",
    }
    assert load.container["securityContext"]["readOnlyRootFilesystem"]
    assert {"name": "tmp", "mountPath": "/tmp"} in load.container["volumeMounts"]
    assert load.container["resources"]["limits"]["memory"] == "4Gi"


def test_a_job_without_spark_only_packs_files_and_drops_partitions() -> None:
    documents = manifests(MINIMAL, *JOB, "maintenance.job.withoutSpark=true")
    (load,) = [load for load in workloads(documents) if load.kind == "CronJob"]
    _, *command = load.container["command"]

    assert "--without-spark" in command
    assert not any(one.startswith("--master") for one in command)
    assert run([*command, "--explain"]) == 2


def test_the_job_may_call_a_coordinator_that_only_named_sources_reach() -> None:
    source = "networkPolicy.from[0].podSelector.matchLabels.app=etl"
    documents = manifests(PRODUCTION, source, *JOB)
    (load,) = [load for load in workloads(documents) if load.name.endswith("-maintenance")]
    (policy,) = of_kind("NetworkPolicy", documents)

    labels = [
        peer["podSelector"]["matchLabels"]
        for peer in policy["spec"]["ingress"][0]["from"]
        if "podSelector" in peer
    ]
    pod = load.metadata["labels"].items()
    assert any(one.items() <= pod for one in labels)
