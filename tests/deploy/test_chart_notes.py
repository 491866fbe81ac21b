"""The notes that helm shows after an installation: first steps, and warnings of risks."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pytest

from tests.deploy.charts import CHART, RELEASE, manifests, of_kind

MINIMAL = Path(__file__).parent / "values" / "minimal.yaml"
DIGEST = "0" * 64


@cache
def _notes(chart: Path, *settings: str) -> str:
    (notes,) = of_kind("Notes", manifests(MINIMAL, *settings, chart=chart))
    return str(notes["text"])


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the chart with its notes in a manifest: helm shows notes only when it installs."""
    chart = tmp_path_factory.mktemp("notes") / "windrow"
    shutil.copytree(CHART, chart)
    shutil.move(chart / "templates" / "NOTES.txt", chart / "NOTES.txt")
    (chart / "templates" / "notes.yaml").write_text(
        'kind: Notes\ntext: {{ tpl (.Files.Get "NOTES.txt") . | quote }}\n'
    )
    return chart


def test_the_notes_explain_how_to_make_the_first_token(chart: Path) -> None:
    notes = _notes(chart)

    assert f"exec deploy/{RELEASE}-windrow -- \\\n    windrow token create" in notes
    assert "s3://lake/tables" in notes


def test_the_notes_name_the_gateway(chart: Path) -> None:
    notes = _notes(
        chart,
        "httpRoute.enabled=true",
        "httpRoute.parentRefs[0].name=public",
        "httpRoute.hostnames={windrow.example.com}",
    )

    assert "through the gateway public at windrow.example.com" in notes


@pytest.mark.parametrize(
    ("setting", "warned"),
    [
        ("image.tag=latest", "image.tag"),
        ("serveWithoutAuthentication=true", "serveWithoutAuthentication"),
        ("metrics.enabled=true", "metrics.from"),
    ],
)
def test_the_notes_warn_of_risky_values(chart: Path, setting: str, warned: str) -> None:
    (line,) = [line for line in _notes(chart, setting).splitlines() if "WARNING" in line]

    assert warned in line


@pytest.mark.parametrize("setting", ["image.tag=0.1.0", f"image.tag=latest@sha256:{DIGEST}"])
def test_the_notes_do_not_warn_without_a_risk(chart: Path, setting: str) -> None:
    assert "WARNING" not in _notes(chart, setting)
