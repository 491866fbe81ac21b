"""The repository keeps its shape."""

from __future__ import annotations

import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
SOURCE_ROOTS = {"service": "windrow_service", "client": "windrow", "spark_jobs": "windrow_jobs"}
MAX_LINES = 500


@pytest.mark.parametrize(("folder", "package"), SOURCE_ROOTS.items())
def test_a_source_root_holds_its_package_and_nothing_else(folder: str, package: str) -> None:
    # An __init__.py here would let every module be imported under two names.
    assert {child.name for child in (ROOT / folder).iterdir()} == {package}


@pytest.mark.parametrize("folder", SOURCE_ROOTS)
def test_every_module_can_be_read_in_one_sitting(folder: str) -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in (ROOT / folder).rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > MAX_LINES
    }

    assert long == {}


@pytest.mark.parametrize("folder", SOURCE_ROOTS)
def test_every_module_starts_with_a_docstring(folder: str) -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in (ROOT / folder).rglob("*.py")
        if not path.read_text().startswith('"""')
    ]

    assert silent == []


def test_no_module_imports_itself_through_others() -> None:
    # The contracts find cycles between siblings; this finds those through an __init__ too.
    graph = grimp.build_graph(*SOURCE_ROOTS.values(), cache_dir=None)
    imports = {
        module: graph.find_modules_directly_imported_by(module) - {module}
        for module in graph.modules
    }

    circle: list[str] = []
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        circle = error.args[1]

    assert circle == []


def test_the_client_can_be_imported_without_service_and_spark() -> None:
    # A fresh interpreter in which the extras cannot be imported.
    code = (
        "import sys\n"
        "for name in ('fastapi', 'numpy', 'pyspark', 'sqlalchemy', 'sqlglot', 'uvicorn'):\n"
        "    sys.modules[name] = None\n"
        "import windrow\n"
        "windrow.connect('http://127.0.0.1:1').close()\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md", "GLOSSARY.md"])
def test_every_module_named_in_the_documents_exists(page: str) -> None:
    modules = [
        f"/{path.relative_to(ROOT)}"
        for folder in (*SOURCE_ROOTS, "tests", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
    ]
    named = re.findall(r"[\w/]+\.py\b", (ROOT / page).read_text())

    assert [name for name in named if not any(path.endswith(f"/{name}") for path in modules)] == []


def test_every_package_has_its_line_in_the_architecture() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()

    rooms = {
        init.parent.name
        for folder, package in SOURCE_ROOTS.items()
        for init in (ROOT / folder / package).glob("**/__init__.py")
    } - {"migrations", "versions"}
    assert {room for room in rooms if f"{room}/" not in text} == set()
