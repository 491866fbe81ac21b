"""The `pip install` commands of README.md and messages install this distribution, and it works."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.deploy.charts import ROOT
from tests.support.servers.coordinators import PLAIN, coordinator_process
from windrow import __version__

_INSTALLED = re.compile(r"pip install (?:--\S+ )*'([^']+)'")
_SHIPPED = (
    "core",
    "calls",
    "tables",
    "spark",
    "spark_jobs",
    "client",
    "cli",
    "service",
    "docs",
    "helm",
)


def _printed() -> list[str]:
    """Return the requirements of all `pip install '…'` in documents, messages and code."""
    files = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "Dockerfile", ROOT / "Makefile"]
    for folder in _SHIPPED:
        files += [
            path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md", ".yaml")
        ]
    return [found for path in files for found in _INSTALLED.findall(path.read_text())]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the first command of README.md's "Use it" in a fresh environment; return its scripts.

    The environment sees the packages of the current one except Windrow, so that pip finds the
    dependencies without a download.
    """
    root = tmp_path_factory.mktemp("installation")
    venv.create(root, with_pip=False)
    paths = {"base": str(root), "platbase": str(root)}
    site_packages = Path(sysconfig.get_path("purelib", "venv", vars=paths))
    # Python searches the folder named here but ignores its .pth files, and so misses our Windrow.
    (site_packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    usage = (ROOT / "README.md").read_text().partition("## Use it")[2]
    (distribution, *_) = _INSTALLED.findall(usage)
    python = root / "bin" / "python"
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--python", python, "install", distribution),
            *("--no-index", "--no-build-isolation", "--quiet"),
        ],
        cwd=ROOT,
        # Modules are compiled when they are imported: most never are.
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_COMPILE": "0"},
        check=True,
        timeout=300,
    )
    return root / "bin"


def test_every_printed_command_installs_this_distribution_with_existing_extras() -> None:
    printed = _printed()
    shipped = importlib.metadata.metadata("windrow-spark").get_all("Provides-Extra")

    assert printed
    for requirement in printed:
        name, _, extras = requirement.rstrip("]").partition("[")
        assert name in ("windrow-spark", "."), requirement
        assert set(filter(None, extras.split(","))) <= {*shipped, "{extra}", "…"}, requirement


def test_the_printed_command_installs_a_wheel_whose_command_runs(scripts: Path) -> None:
    python = "import windrow, windrow_service, windrow_jobs; print(windrow.__file__)"

    version = _output_of(scripts / "windrow", "--version")
    home = _output_of(scripts / "python", "-c", python)

    assert version == f"windrow {__version__}\n"
    assert Path(home).is_relative_to(scripts.parent)
    assert "Usage: windrow" in _output_of(scripts / "windrow", "--help")


def test_a_coordinator_of_the_wheel_serves_the_guide_that_its_pages_lead_to(
    scripts: Path, tmp_path: Path
) -> None:
    with (
        coordinator_process(
            tmp_path / "state", tmp_path, executable=scripts / "python"
        ) as coordinator,
        httpx.Client(base_url=coordinator.url, verify=PLAIN) as http,
    ):
        links = set(re.findall(r"guide/[^\"#]*", http.get("/dashboard/overview").text))
        answers = {link: http.get(f"/{link}").status_code for link in links}

    assert links
    assert set(answers.values()) == {200}


_BUILT = """
import sys
sys.path.insert(0, "docs")
sys.modules["mkdocs"] = None
import wheel_with_guide as backend
print(backend.get_requires_for_build_editable(), backend.build_editable(sys.argv[1]))
backend.build_wheel(sys.argv[1])
"""


def test_only_wheels_need_what_builds_the_guide_and_say_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _BUILT, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert "mkdocs" not in done.stdout
    assert "windrow_spark-" in done.stdout
    assert done.returncode == 1
    assert "pip install 'mkdocs" in done.stderr


@pytest.mark.nightly
def test_a_first_table_is_registered_refreshed_and_planned(scripts: Path, tmp_path: Path) -> None:
    file = tmp_path / "events" / "ds=2026-11-01" / "part-0.parquet"
    file.parent.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2, 3]}), file)

    with coordinator_process(
        tmp_path / "state", tmp_path, executable=scripts / "python"
    ) as coordinator:

        def windrow(*arguments: str) -> str:
            return _output_of(scripts / "windrow", *arguments, "--url", coordinator.url)

        windrow("table", "register", "sales.events", str(tmp_path / "events"))
        windrow("table", "refresh", "sales.events")
        planned = windrow("plan", "sales.events", "--filter", "ds >= '2026-11-01'")

    assert "1 group" in planned


def _output_of(*command: str | Path) -> str:
    environment = {name: value for name, value in os.environ.items() if "PYTHON" not in name}
    done = subprocess.run(
        command, env=environment, cwd="/", capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
