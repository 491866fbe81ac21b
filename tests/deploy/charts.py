"""The chart as the real helm renders it, and its workloads."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "helm" / "windrow"
VALUES = sorted((Path(__file__).parent / "values").glob("*.yaml"))
RELEASE = "lake"

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Workload:
    """A manifest that runs pods: its `kind` and `name`, and the metadata and spec of the pod."""

    kind: str
    name: str
    metadata: Manifest
    spec: Manifest

    @property
    def container(self) -> Manifest:
        """The only container of the pod."""
        (container,) = self.spec["containers"]
        return dict(container)


class _Strict(yaml.CSafeLoader):
    """Refuses duplicate keys, as Kubernetes does; the usual YAML readers keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"a key appears twice: {sorted(keys)}"
        return super().construct_mapping(node, deep)


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the real helm without a cluster, even if this machine has access to one."""
    command = Path(sysconfig.get_path("scripts")) / "helm"
    return subprocess.run(
        [str(command), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=os.environ | {"KUBECONFIG": os.devnull},
    )


@cache
def rendered(values: Path, *settings: str, kubernetes: str = "1.32.0", chart: Path = CHART) -> str:
    """Return the text of all manifests for a values file and `--set` arguments."""
    given = [word for setting in settings for word in ("--set", setting)]
    done = helm(
        "template",
        RELEASE,
        str(chart),
        "--values",
        str(values),
        "--kube-version",
        kubernetes,
        *given,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def manifests(
    values: Path, *settings: str, kubernetes: str = "1.32.0", chart: Path = CHART
) -> list[Manifest]:
    """Return all manifests; fail if one has a duplicate key."""
    text = rendered(values, *settings, kubernetes=kubernetes, chart=chart)
    return [document for document in yaml.load_all(text, Loader=_Strict) if document]


def of_kind(kind: str, documents: list[Manifest]) -> list[Manifest]:
    """Return the manifests of one kind."""
    return [document for document in documents if document["kind"] == kind]


def workloads(documents: list[Manifest]) -> Iterator[Workload]:
    """Yield the manifests that run pods."""
    for document in documents:
        kind, name = document["kind"], document["metadata"]["name"]
        if kind == "Pod":
            yield Workload(kind, name, document["metadata"], document["spec"])
        spec = document.get("spec", {})
        if kind == "CronJob":
            spec = spec["jobTemplate"]["spec"]
        if template := spec.get("template"):
            yield Workload(kind, name, template["metadata"], template["spec"])


def coordinator(documents: list[Manifest]) -> Workload:
    """Return the one Deployment."""
    (found,) = [load for load in workloads(documents) if load.kind == "Deployment"]
    return found
