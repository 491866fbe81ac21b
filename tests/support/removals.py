"""Calls that remove, rename or overwrite files anywhere else than in `windrow_core.files.roots`.

`python -m tests.support.removals` prints them, and fails if there are any. It looks at names that are
used, not only called, so that `partial(os.remove)` counts, and at names that methods of files and file
systems have, whatever they belong to.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SOURCES = ("core", "calls", "tables", "spark", "spark_jobs", "client", "cli", "service", "examples")
ROOM = "core/windrow_core/files/roots/"
# What is defined here is called by the room alone.
PRIMITIVES = ("core/windrow_core/files/hadoop.py", "core/windrow_core/files/objects/requests.py")
# Functions of modules, by their full names.
FUNCTIONS = frozenset(
    [
        *(
            f"os.{name}"
            for name in ["remove", "unlink", "rmdir", "removedirs", "rename", "renames", "replace"]
        ),
        *("os.truncate", "os.ftruncate", "os.system", "os.symlink", "os.posix_fallocate"),
        *(f"shutil.{name}" for name in ["rmtree", "move", "copy", "copy2", "copyfile", "copytree"]),
        *("tempfile.mkdtemp", "tempfile.mkstemp", "tempfile.NamedTemporaryFile"),
        *(f"obstore.{name}" for name in ["delete", "rename", "copy", "put"]),
        *(f"obstore.{name}_async" for name in ["delete", "rename", "copy", "put"]),
        *(f"windrow_core.files.hadoop.{name}" for name in ["remove", "rename", "create"]),
        *(f"pyarrow.parquet.{name}" for name in ["write_table", "ParquetWriter"]),
        *(f"pyarrow.{name}" for name in ["OSFile", "output_stream"]),
    ]
)
# Methods whose names say enough, whatever they are called on.
METHODS = frozenset(
    [
        "unlink",
        "rmdir",
        "removedirs",
        "renames",
        "rmtree",
        "write_text",
        "write_bytes",
        "hardlink_to",
        "symlink_to",
        "delete_file",
        "delete_dir",
        "delete_dir_contents",
        "delete_root_dir_contents",
        "copy_file",
        "deleteOnExit",
        "rename_if_free",
        "exchange_names",
    ]
)
# What roots do with what is there, or may be.
CHANGES = frozenset(
    [
        "bring",
        "exchange",
        "move",
        "remove_empty",
        "remove_file",
        "remove_files",
        "remove_tree",
        "upload",
        "write_file",
    ]
)
# Methods that other things have too, by the number of arguments that those of files have.
BY_ARGUMENTS = {"replace": 1, "rename": 1}
# Of `requests()`, and of anything that a module of primitives returns.
OF_REQUESTS = frozenset(("create", "upload", "copy", "remove"))
_IN_PLACE = re.compile("[wa+]")
# A name that ends a method call in Java.
_JAVA = re.compile(r"\.(delete|rename|deleteOnExit|deleteIfExists|moveTo|renameTo)\(")


class Removal(NamedTuple):
    """A call that is not allowed where it is.

    Attributes:
        path: The file, relative to the repository.
        line: Its line.
        name: What is called.
    """

    path: str
    line: int
    name: str


# What is allowed elsewhere, and why.
ALLOWED = {
    # The file of a task that merges, which it has just written, gets its own footer.
    ("tables/windrow_tables/merging/files.py", "open"),
    # The same file is written there first, in a folder that only this attempt of the task has.
    ("tables/windrow_tables/merging/files.py", "pyarrow.parquet.ParquetWriter"),
    # In memory.
    ("tables/windrow_tables/merging/writing.py", "pyarrow.parquet.ParquetWriter"),
    ("tables/windrow_tables/merging/writing.py", "pyarrow.parquet.write_table"),
    ("tables/windrow_tables/packs/writing.py", "pyarrow.parquet.ParquetWriter"),
    ("tables/windrow_tables/packs/writing.py", "pyarrow.parquet.write_table"),
    ("service/windrow_service/engines/packs.py", "pyarrow.parquet.write_table"),
    # Data of the demo, in folders that it has begun anew.
    ("examples/windrow_demo/engine_sides.py", "pyarrow.OSFile"),
    ("examples/windrow_demo/events.py", "pyarrow.parquet.write_table"),
    ("examples/windrow_demo/hive.py", "pyarrow.parquet.write_table"),
    # A lock of a state folder that the caller has named.
    ("cli/windrow_cli/serve.py", "open"),
    # Logs of programs that the demo starts, in folders that it has begun anew.
    ("examples/windrow_demo/coordinator.py", "open"),
    ("examples/windrow_demo/engines.py", "open"),
    ("examples/windrow_demo/local_session.py", "open"),
    # Classes that the driver compiles, in a temporary folder of its own.
    ("spark/windrow_spark/relation/source.py", "write_bytes"),
    # A picture of the documents, whose path the caller gives.
    ("examples/windrow_demo/pictures.py", "write_text"),
    # Answers of a process, through a pipe.
    ("core/windrow_core/files/isolated.py", "os.fdopen"),
    ("spark_jobs/windrow_jobs/tasks.py", "os.fdopen"),
    ("service/windrow_service/inventory/footers/isolation.py", "os.fdopen"),
}


def removals(root: Path = ROOT) -> list[Removal]:
    """Return the calls that are not allowed."""
    calls: list[Removal] = []
    for source in SOURCES:
        for path in sorted((root / source).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            if not name.startswith(ROOM):
                calls += _of_module(name, path.read_text())
        for path in sorted((root / source).rglob("*.java")):
            name = path.relative_to(root).as_posix()
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if (match := _JAVA.search(line)) is not None:
                    calls.append(Removal(name, number, match[1]))
    return [one for one in calls if (one.path, one.name) not in ALLOWED]


def callers(root: Path = ROOT) -> dict[str, set[str]]:
    """Return what each function or class outside the room changes through it, by module and name."""
    callers: dict[str, set[str]] = {}
    for source in SOURCES:
        for path in sorted((root / source).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            if not name.startswith(ROOM):
                for node in ast.parse(path.read_text()).body:
                    changes = {
                        one.func.attr
                        for one in ast.walk(node)
                        if isinstance(one, ast.Call)
                        and isinstance(one.func, ast.Attribute)
                        and one.func.attr in CHANGES
                    }
                    if changes:
                        title = getattr(node, "name", "module")
                        module = name.partition("/")[2].removesuffix(".py").replace("/", ".")
                        callers[f"{module}.{title}"] = changes
    return callers


def _of_module(path: str, text: str) -> Iterator[Removal]:
    tree = ast.parse(text)
    imports = _imports(tree)
    counts = _argument_counts(tree)
    is_primitive = path in PRIMITIVES
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = _opened(node, imports) or _by_name(node, imports)
            if name is not None:
                yield Removal(path, node.lineno, name)
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        full = _full_name(node, imports)
        if full in FUNCTIONS and not is_primitive:
            yield Removal(path, node.lineno, full)
        elif isinstance(node, ast.Attribute):
            count = BY_ARGUMENTS.get(node.attr)
            is_method = node.attr in METHODS or (count is not None and counts.get(node) == count)
            of_requests = (
                node.attr in OF_REQUESTS
                and isinstance(node.value, ast.Call)
                and isinstance(node.value.func, ast.Name)
                and node.value.func.id == "requests"
            )
            if (is_method or of_requests) and not is_primitive and full not in FUNCTIONS:
                yield Removal(path, node.lineno, node.attr)


def _imports(tree: ast.AST) -> dict[str, str]:
    """Return what the names of imported modules and functions mean."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                name = one.asname or one.name.partition(".")[0]
                names[name] = one.name if one.asname else name
        elif isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                names[one.asname or one.name] = f"{node.module}.{one.name}"
    return names


def _full_name(node: ast.expr, imports: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return imports.get(node.id)
    if isinstance(node, ast.Attribute):
        above = _full_name(node.value, imports)
        return None if above is None else f"{above}.{node.attr}"
    return None


def _argument_counts(tree: ast.AST) -> dict[ast.expr, int]:
    """Return the number of positional arguments of each function that is called.

    With keywords, as `dataclasses.replace` and `datetime.replace` have them, it is none of files. What is
    handed on, as in `partial(path.rename, target)`, may get any number.
    """
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    counts = {
        one: BY_ARGUMENTS.get(one.attr, -1)
        for call in calls
        for one in call.args
        if isinstance(one, ast.Attribute)
    }
    return counts | {call.func: -1 if call.keywords else len(call.args) for call in calls}


def _opened(node: ast.Call, imports: dict[str, str]) -> str | None:
    """Return a name if a call opens a file to write into it, and not only to make a new one."""
    full = _full_name(node.func, imports)
    if isinstance(node.func, ast.Name) and node.func.id == "open":
        name, position = "open", 1
    elif full == "os.fdopen":
        name, position = full, 1
    elif isinstance(node.func, ast.Attribute) and node.func.attr == "open" and full is None:
        name, position = "open", 0
    else:
        return None
    modes = [one.value for one in node.keywords if one.arg == "mode"] + node.args[position:]
    mode = modes[0] if modes else None
    if isinstance(mode, ast.Constant) and isinstance(mode.value, str):
        is_mode = re.fullmatch("[rwxabt+]+", mode.value) is not None
        return name if is_mode and _IN_PLACE.search(mode.value) else None
    return None


def _by_name(node: ast.Call, imports: dict[str, str]) -> str | None:
    """Return what `getattr(os, "remove")` and writers that overwrite name."""
    first = node.args[-1] if node.args else None
    text = first.value if isinstance(first, ast.Constant) else None
    if isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) > 1:
        owner, name = _full_name(node.args[0], imports), node.args[1]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            full = f"{owner}.{name.value}"
            return full if full in FUNCTIONS or name.value in METHODS else None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "mode" and text == "overwrite":
        return "mode('overwrite')"
    return None


def main() -> int:
    """Print what is not allowed; return the number to exit with."""
    calls = removals()
    for one in calls:
        sys.stderr.write(
            f"{one.path}:{one.line}: {one.name}: change files through windrow_core.files.roots, "
            "with a proof that they are ours\n"
        )
    return bool(calls)


if __name__ == "__main__":
    sys.exit(main())
