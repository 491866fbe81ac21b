"""The tests that a change can reach.

    python -m tests.support.changed

runs those that the work since `main` can reach: by imports, those of fixtures and of programs that tests
start among them, and by the names of other files. The planner has no input and output, so a change to it
reaches tests of processes, faults, browsers and Spark by values alone, which quick tests check: of files
that do not import what is changed there, only the quick tests are run.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import grimp
import pytest
import tomlkit

from tests.support.distribution import SLOW_FOLDERS
from tests.support.removals import SOURCES

_ROOT = Path(__file__).parents[2]
_PURE = "windrow_service.planner"
# Says how all tests run.
_CONFIGURATION = "pyproject.toml"
_NAMED = re.compile(r"[\"'](?:-m )?((?:tests|windrow)[\w.]*)[\"' ]")
# Files of tests for which more processes pay.
_FEW = 10

Users = dict[str, set[str]]


class Selection(NamedTuple):
    """Files of tests that a change reaches.

    Attributes:
        whole: Those of which all tests run.
        quick: Those of which only the quick ones do.
        why: Why all files are among them; empty if a change reaches only some.
    """

    whole: list[str]
    quick: list[str]
    why: str = ""


@cache
def users_of_modules() -> Users:
    """Return for each module those that can change with it, as they import it or name it."""
    configuration = tomlkit.parse((_ROOT / _CONFIGURATION).read_text()).unwrap()
    packages = configuration["tool"]["importlinter"]["root_packages"]
    graph = grimp.build_graph(
        "tests", *packages, exclude_type_checking_imports=True, cache_dir=None
    )
    users = {name: set(graph.find_modules_that_directly_import(name)) for name in graph.modules}
    for name in users:
        text = _text(name)
        if 'import_module(f"' in text:
            package = name if _path(name).name == "__init__.py" else name.rpartition(".")[0]
            for one in _within(package, users):
                users[one].add(name)
        for other in set(_NAMED.findall(text)) & users.keys():
            # To the packages, `windrow` is also another name.
            if "." in other or name.startswith("tests."):
                for one in {other, f"{other}.__main__"} & users.keys():
                    users[one].add(name)
    for name in [one for one in users if one.endswith(".conftest")]:
        _add_fixtures(name, graph, users)
    return users


def _add_fixtures(conftest: str, graph: grimp.ImportGraph, users: Users) -> None:
    """Let tests change with a conftest, but with what single fixtures import only if they name these."""
    below = [one for one in users if one.startswith(conftest.removesuffix("conftest"))]
    users[conftest].update(one for one in below if one != conftest)
    functions = [
        node
        for node in ast.parse(_text(conftest)).body
        if isinstance(node, ast.FunctionDef) and "autouse" not in ast.unparse(node)
    ]
    for other in graph.find_modules_directly_imported_by(conftest):
        lines = [
            one["line_number"]
            for one in graph.get_import_details(importer=conftest, imported=other)
        ]
        around = [
            [node.name for node in functions if node.lineno <= line <= (node.end_lineno or 0)]
            for line in lines
        ]
        if all(names and not names[0].startswith("pytest_") for names in around):
            names = {name for [name] in around}
            for node in functions:
                # Fixtures that use others come after them.
                if names & set(re.findall(r"\w+", ast.unparse(node.args))):
                    names.add(node.name)
            word = re.compile(rf"\b({'|'.join(sorted(names))})\b")
            users[other].discard(conftest)
            users[other].update(one for one in below if one != conftest and word.search(_text(one)))


def _path(module: str) -> Path:
    folders = ("", *SOURCES)
    paths = (_ROOT.joinpath(folder, *module.split(".")) for folder in folders)
    path = next(one for one in paths if one.is_dir() or one.with_suffix(".py").exists())
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _text(module: str) -> str:
    return _path(module).read_text()


def modules_of(file: str, users: Users) -> set[str] | None:
    """Return the modules that change with a file; None if it may affect all tests."""
    if file == _CONFIGURATION:
        return None
    path = Path(file)
    parts = path.with_suffix("").parts
    parts = (parts[1:] if parts[0] in SOURCES else parts)[: -1 if path.stem == "__init__" else None]
    around = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
    own = next((one for one in around if one in users and one != "tests"), None)
    is_module = own == around[0]
    if path.name.startswith("test_") and not is_module:
        return set()
    # Tests also read files that they find by their names, by those of their folders, or all of a kind.
    names = [rf"glob\(\"[^\"]*\*{re.escape(path.suffix)}\"" if path.suffix else "(?!)"]
    if not is_module:
        names.append(rf"\b{re.escape(path.name)}\b")
    if own is None and len(path.parts) > 1:
        names.append(f"[\"'/]{path.parts[1 if parts[0] == 'tests' else 0]}[\"'/]")
    word = re.compile("|".join(names))
    modules = {one for one in users if one.startswith("tests.") and word.search(_text(one))}
    if own is not None:
        # Whoever imports a module runs the packages around it, too.
        modules |= {own} if is_module and path.stem != "__init__" else _within(own, users)
    return modules or None


def _within(package: str, users: Users) -> set[str]:
    return {one for one in users if f"{one}.".startswith(f"{package}.")}


def reached(starts: Iterable[str], users: Users) -> set[str]:
    """Return modules, and those that can change with them."""
    modules, todo = set(starts), list(starts)
    while todo:
        new = users[todo.pop()] - modules
        modules |= new
        todo += new
    return modules


def select(files: Collection[str]) -> Selection:
    """Return the files of tests that changed files reach, relative to the repository."""
    users = users_of_modules()
    everything = list(_tests(users))
    pure: set[str] = set()
    others: set[str] = set()
    for file in files:
        modules = modules_of(file, users)
        if modules is None:
            return Selection(everything, [], file)
        for name in modules:
            (pure if f"{name}.".startswith(f"{_PURE}.") else others).add(name)
    whole = set(_tests(reached(others, users).union(*(users[name] for name in pure))))
    quick = set(_tests(reached(pure, users))) - whole
    return Selection(sorted(whole), sorted(quick))


def _tests(modules: Iterable[str]) -> Iterator[str]:
    names = [one for one in modules if one.rpartition(".")[2].startswith("test_")]
    return (one.replace(".", "/") + ".py" for one in sorted(names))


def changed_files(root: Path = _ROOT) -> list[str]:
    """Return the files that the work since `main` has changed, made or removed, committed or not."""

    def git(*arguments: str) -> list[str]:
        command = ["git", "-c", "core.quotePath=false", *arguments]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        return done.stdout.splitlines()

    bases = (git("merge-base", "HEAD", one) for one in ("main", "origin/main", "HEAD"))
    differences = git("diff", "--name-only", "--no-renames", *next(filter(None, bases)))
    return [*differences, *git("ls-files", "--others", "--exclude-standard")]


def runs_of(selection: Selection) -> list[list[str]]:
    """Return the arguments of each run of pytest, quick tests first."""
    if selection.why:
        return [[]]
    if not selection.quick:
        return [_shared(selection.whole)] if selection.whole else []
    files = [*selection.whole, *selection.quick]
    quick = [one for one in files if one.split("/")[1] not in SLOW_FOLDERS]
    slow = [one for one in selection.whole if one not in quick or _has_slow(one)]
    # Quick tests wait less, so that fewer processes keep two cores busy.
    runs = [["-m", "not slow and not spark", *_shared(quick, "3")]]
    return [*runs, ["-m", "slow or spark", *_shared(slow)]] if slow else runs


def _has_slow(file: str) -> bool:
    return bool(re.search(r"mark\.(slow|spark)\b", (_ROOT / file).read_text()))


def _shared(files: list[str], processes: str = "4") -> list[str]:
    """Return files with the options by which processes share them, if they are many."""
    several = ["-n", processes, "--dist", "loadfile", "--no-loadscope-reorder"]
    return [*several, *files] if len(files) > _FEW else files


def line_of(selection: Selection, files: Sequence[str]) -> str:
    """Return what is run and why."""
    whole, quick = len(selection.whole), len(selection.quick)
    what = files[0] if len(files) == 1 else f"{len(files)} changed files"
    if selection.why:
        return f"All tests: {selection.why} may affect any"
    if not whole + quick:
        return f"No tests: nothing leads from {what} to one"
    some = f"; of {quick} that do not import it only the quick ones" if quick else ""
    return f"The tests of {whole + quick} files, where imports and names lead from {what}{some}"


def main() -> int:
    """Run what the work since `main` can reach; return 0 if no test failed."""
    files = changed_files()
    selection = select(files)
    sys.stdout.write(line_of(selection, files) + "\n")
    sys.stdout.flush()
    codes = [
        subprocess.run([sys.executable, "-m", "pytest", *arguments], cwd=_ROOT).returncode
        for arguments in runs_of(selection)
    ]
    # Files may have no tests of the marks of a run.
    return max((code for code in codes if code != pytest.ExitCode.NO_TESTS_COLLECTED), default=0)


if __name__ == "__main__":
    argparse.ArgumentParser(
        description="Run the tests that the work since main can reach."
    ).parse_args()
    sys.exit(main())
