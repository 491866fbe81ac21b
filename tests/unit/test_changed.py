"""`make test-changed` runs what a change can reach, and says what it leaves out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.changed import changed_files, line_of, runs_of, select


@pytest.mark.parametrize(
    ("file", "reached", "not_reached"),
    [
        # By imports, and by those within functions.
        ("core/windrow_core/sizes.py", "property/test_plan_laws", "unit/test_decisions"),
        (
            "service/windrow_service/orc/__init__.py",
            "unit/inventory/test_orc_footers",
            "unit/test_night",
        ),
        # By a name that a package imports.
        ("cli/windrow_cli/serve.py", "unit/cli/test_help", "unit/planner/test_cut"),
        # By a program that a test starts.
        ("tests/programs/scanning.py", "contract/test_scans", "contract/test_tokens"),
        # By fixtures: by all of a folder, and by those that a test names.
        ("tests/spark/conftest.py", "spark/test_orc", "contract/test_scans"),
        ("tests/support/servers/databases.py", "contract/test_stores", "unit/planner/test_cut"),
        ("tests/conftest.py", "unit/planner/test_cut", ""),
        # By what compiles, renders, reads or compares files that are no modules.
        (
            "spark/windrow_spark/relation/TableIndex.java",
            "spark/test_relation",
            "unit/planner/test_cut",
        ),
        (
            "service/windrow_service/api/html/templates/page.html",
            "browser/test_docs",
            "unit/test_night",
        ),
        ("tests/golden/plans.jsonl", "contract/test_golden", "contract/test_scans"),
        ("helm/windrow/values.yaml", "deploy/test_chart", "contract/test_scans"),
        ("docs/how-to/read.md", "unit/test_documents", "unit/planner/test_cut"),
        # By reading all modules.
        ("service/windrow_service/gone.py", "unit/test_layout", ""),
    ],
)
def test_a_change_selects_the_tests_that_it_can_reach(
    file: str, reached: str, not_reached: str
) -> None:
    files = select([file]).whole

    assert f"tests/{reached}.py" in files
    assert f"tests/{not_reached}.py" not in files


@pytest.mark.parametrize("file", ["pyproject.toml", ".gitignore"])
def test_what_may_affect_any_test_selects_all(file: str) -> None:
    selection = select(["tests/golden/plans.jsonl", file])

    assert runs_of(selection) == [[]]
    assert line_of(selection, [file]) == f"All tests: {file} may affect any"


def test_of_files_that_a_change_to_the_planner_only_reaches_quick_tests_run() -> None:
    file = "service/windrow_service/planner/plan.py"

    selection = select([file])
    quick, slow = runs_of(selection)

    assert quick[:2] == ["-m", "not slow and not spark"]
    assert {"tests/unit/planner/test_phases.py", "tests/contract/test_plans.py"} <= {*quick}
    assert not [one for one in quick if one.startswith(("tests/spark/", "tests/faults/"))]
    assert "tests/faults/test_client_plans.py" in slow
    assert "tests/faults/test_kills.py" in selection.quick
    assert f"of {len(selection.quick)} that do not import it only the quick ones" in line_of(
        selection, [file]
    )


def test_slow_tests_run_where_another_change_reaches_them() -> None:
    planner = "service/windrow_service/planner/plan.py"

    assert "tests/faults/test_kills.py" in select([planner, "tests/support/faults/kills.py"]).whole


def test_a_test_that_is_removed_selects_none() -> None:
    file = "tests/unit/test_gone.py"

    selection = select([file])

    assert runs_of(selection) == []
    assert line_of(selection, [file]) == f"No tests: nothing leads from {file} to one"


def test_the_files_of_a_change_are_those_since_main_whether_or_not_they_are_committed(
    tmp_path: Path,
) -> None:
    def git(*arguments: str) -> None:
        name = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *name, *arguments], cwd=tmp_path, check=True, capture_output=True)

    def write(name: str, text: str) -> None:
        (tmp_path / name).write_text(text)

    git("init", "--initial-branch", "main")
    for name in ("same", "landed", "committed", "edited", "renamed", "gone"):
        write(name, name)
    git("add", ".")
    git("commit", "--message", "first")
    git("switch", "--create", "work")
    write("committed", "anew")
    git("mv", "renamed", "moved")
    git("commit", "--all", "--message", "second")
    git("switch", "main")
    write("landed", "by others")
    git("commit", "--all", "--message", "third")
    git("switch", "work")
    write("edited", "anew")
    write("größe", "new")
    (tmp_path / "gone").unlink()

    files = changed_files(tmp_path)

    assert sorted(files) == ["committed", "edited", "gone", "größe", "moved", "renamed"]
