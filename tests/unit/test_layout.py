"""The repository keeps its shape."""

from __future__ import annotations

import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest
import tomlkit

ROOT = Path(__file__).parents[2]
SOURCE_ROOTS = {
    "core": "windrow_core",
    "calls": "windrow_calls",
    "tables": "windrow_tables",
    "spark": "windrow_spark",
    "spark_jobs": "windrow_jobs",
    "client": "windrow",
    "cli": "windrow_cli",
    "service": "windrow_service",
    "examples": "windrow_demo",
}
MAX_LINES = 500
ARCHITECTURE = ROOT / "docs" / "architecture.md"
ROOMS = ROOT / "docs" / "contribute" / "rooms.md"


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
    command = [sys.executable, "-m", "tests.programs.thin_client"]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "page",
    [
        *("docs/architecture.md", "docs/contribute/rooms.md", "docs/contribute/walks.md"),
        *("docs/contribute/how-to-extend.md", "CONTRIBUTING.md", "GLOSSARY.md"),
    ],
)
def test_every_module_named_in_the_documents_exists(page: str) -> None:
    modules = [
        f"/{path.relative_to(ROOT)}"
        for folder in (*SOURCE_ROOTS, "tests", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
    ]
    named = re.findall(r"[\w/]+\.py\b", (ROOT / page).read_text())

    assert [name for name in named if not any(path.endswith(f"/{name}") for path in modules)] == []


def test_the_tree_of_rooms_is_that_of_the_packages() -> None:
    drawn = _drawn()

    rooms = {
        f"{init.parent.relative_to(ROOT)}/"
        for folder, package in SOURCE_ROOTS.items()
        for init in (ROOT / folder / package).glob("**/__init__.py")
        if init.parent.name != "versions"
    }
    assert {path for path in drawn if path.endswith("/")} == rooms
    assert [path for path in drawn if not (ROOT / path).exists()] == []
    assert len(drawn) == len(set(drawn))


def test_the_architecture_can_be_read_in_ten_minutes() -> None:
    assert len(ARCHITECTURE.read_text().split()) < 10 * 200


@pytest.mark.parametrize("way", ["a refresh", "a plan", "a read", "a write", "maintenance"])
def test_a_way_leads_through_rooms_that_exist_and_through_none_twice(way: str) -> None:
    (line,) = re.findall(rf"^\| {way} \| (.*) \|$", ARCHITECTURE.read_text(), re.M)
    rooms = re.findall(r"`([\w/]+)`", line)
    homes = [ROOT / folder / package for folder, package in SOURCE_ROOTS.items()]

    missing = [
        room
        for room in rooms
        if room not in SOURCE_ROOTS
        and not any((home / room).is_dir() or (home / f"{room}.py").exists() for home in homes)
    ]
    assert missing == []
    assert len(rooms) == len(set(rooms)) > 4


@pytest.mark.parametrize(
    ("beginning", "container"),
    [
        ("**The service.** Top to bottom: ", "windrow_service"),
        ("- `usecases/`: ", "windrow_service.usecases"),
        ("- `inventory/`: ", "windrow_service.inventory"),
        ("- `planner/`: ", "windrow_service.planner"),
        ("- `windrow_core`: ", "windrow_core"),
        ("- `windrow`: ", "windrow"),
        ("- `windrow_calls`: ", "windrow_calls"),
        ("- `windrow_tables`: ", "windrow_tables"),
        ("- `windrow_spark`: ", "windrow_spark"),
    ],
)
def test_the_page_of_rooms_says_which_layers_the_contracts_hold(
    beginning: str, container: str
) -> None:
    project = tomlkit.parse((ROOT / "pyproject.toml").read_text()).unwrap()
    (contract,) = [
        contract
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers" and contract.get("containers") == [container]
    ]

    said = ROOMS.read_text().partition(beginning)[2].partition(".")[0]

    assert [set(re.findall(r"`(\w+)`", layer)) for layer in said.split(" → ")] == [
        set(layer.split(" | ")) for layer in contract["layers"]
    ]


def test_contributors_are_told_which_tests_to_run_for_each_room() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    table = text.partition("## Which tests to run\n")[2].partition("\n## ")[0]
    folders: set[Path] = set()
    tests: set[str] = set()
    for line in re.findall(r"^\| (.*) \|$", table, re.M):
        changed, _, run = line.partition(" | ")
        tests |= set(re.findall(r"\btests/[\w/.]+\b", run))
        home = ROOT
        for name in re.findall(r"`([\w/]+/)`", changed):
            # A folder without a path is beside the one before it.
            folder = (home if name.count("/") == 1 else ROOT) / name
            folders.add(folder)
            home = folder.parent

    rooms = {
        init.parent
        for folder, package in SOURCE_ROOTS.items()
        for init in (ROOT / folder / package).glob("*/__init__.py")
    }
    assert rooms - folders == set()
    assert [folder for folder in folders if not folder.is_dir()] == []
    assert [name for name in sorted(tests) if not (ROOT / name).exists()] == []


def test_the_page_about_the_tests_lists_every_module_that_they_share() -> None:
    sections = re.split(r"^## ([\w/]+): .*$", (ROOT / "tests/README.md").read_text(), flags=re.M)
    listed = [
        f"{folder}/{module}"
        for folder, section in zip(sections[1::2], sections[2::2], strict=True)
        for module in re.findall(r"^\| `(\w+\.py)` \|", section, re.M)
    ]

    modules = [
        str(path.relative_to(ROOT / "tests"))
        for folder in ("support", "programs")
        for path in (ROOT / "tests" / folder).rglob("*.py")
        if not path.name.startswith("__")
    ]
    assert sorted(listed) == sorted(modules)


def _drawn() -> list[str]:
    """Return the paths of folders and modules that the page of rooms draws as a tree."""
    section = ROOMS.read_text().partition("## The tree\n")[2].partition("\n## ")[0]
    drawn: list[str] = []
    for tree in re.findall(r"```\n(.*?)```", section, re.S):
        folders: list[str] = []
        for indent, names in re.findall(r"^( *)((?:[\w/]+(?:/|\.py) ?)+) ", tree, re.M):
            above = "".join(folders[: len(indent) // 2])
            drawn += [above + name for name in names.split()]
            folders[len(indent) // 2 :] = [names.strip()]
    return drawn
