"""The pages of reference that are made from the code.

    python -m tests.support.documents.reference

writes them anew; `tests/unit/test_documents.py` compares them.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

import windrow
import windrow.spark
from windrow.reads import SparkReads
from windrow_calls.coordinator import OF_PROGRAMS
from windrow_core.models.options import PlanDefaults, PlanOptions
from windrow_service.settings import Settings
from windrow_tables.scans.rows import Rows
from windrow_tables.scans.scan import Scan
from windrow_tables.scans.splits import ScanSplit

ROOT = Path(__file__).parents[3]
REFERENCE = ROOT / "docs" / "reference"
_WIDTH = 88
_NONE = "none"
# Options that the sizes of the files decide unless they are set.
_BY_SIZE = {"cached_splits"}
_MADE = "<!-- Made from the code by `make reference`. -->\n"


def pages() -> Mapping[str, str]:
    """Return the text of each page by its name."""
    makers: Mapping[str, Callable[[], Iterable[str]]] = {
        "plan-options.md": _plan_options,
        "settings.md": _settings,
        "commands.md": _commands,
        "python.md": _python,
        "problems.md": _problems,
    }
    return {name: _MADE + "\n".join(maker()) + "\n" for name, maker in makers.items()}


# --- plan options -----------------------------------------------------------

_OPTIONS = """\
# Plan options

The options of a plan decide how files are divided into groups, and how tasks read them. A read's own options come first, then the session's, then the table's, then the defaults; `windrow explain` says where each value comes from.

| set for | how |
|---|---|
| one read | `client.read(spark, table, max_split_size="128MB")`, `windrow plan TABLE --max-split-size 128MB`, `options` in `POST /plans` |
| a session of Spark | `SET spark.windrow.max_split_size=128MB`; a `spark.windrow.` setting that is not an option makes the read fail |
| a table | `windrow table alter TABLE --option max_split_size=128MB` |

Sizes are bytes, or text such as `64MB` in units of 1024. In a session that does not set it, `parallelism` is Spark's default parallelism.
"""


def _plan_options() -> Iterator[str]:
    yield _OPTIONS
    yield from _table("option", "values", "default", "meaning")
    for name, field in PlanOptions.model_fields.items():
        meaning = PlanDefaults.model_fields[name].description or field.description or ""
        default = "by size" if name in _BY_SIZE else _default(field)
        yield _row(f"`{name}`", _values(field), default, _cell(meaning))


# --- settings ---------------------------------------------------------------

_SETTINGS = """\
# Settings

A coordinator reads its settings once, from the environment. The chart and the options of `windrow serve` set the same ones. A setting of a group has two underscores: `WINDROW_LIMITS__MAX_PLAN_FILES=1000000`. Sizes are in bytes; times are in ISO 8601, such as `PT30S` for 30 seconds or `P7D` for 7 days. `GET /config` shows the limits. [Sign callers in with an identity provider](../how-to/sign-in.md) explains `WINDROW_ISSUERS`.
"""


def _settings() -> Iterator[str]:
    yield _SETTINGS
    groups = {
        name: field.annotation
        for name, field in Settings.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
    }
    yield from _fields(Settings, "WINDROW_", leave_out=groups)
    for name, group in groups.items():
        assert group is not None
        yield f"\n## `WINDROW_{name.upper()}__…`\n\n{_first_paragraph(group)}\n"
        yield from _fields(group, f"WINDROW_{name.upper()}__")


def _fields(model: type[BaseModel], prefix: str, leave_out: Iterable[str] = ()) -> Iterator[str]:
    yield from _table("setting", "values", "default", "meaning")
    for name, field in model.model_fields.items():
        if name not in leave_out:
            field_name = f"`{prefix}{name.upper() if prefix else name}`"
            yield _row(field_name, _values(field), _default(field), _cell(field.description or ""))


# --- commands ---------------------------------------------------------------

_COMMANDS = """\
# Commands

Every command takes `--help`. Those that call a coordinator take `--url`, or `WINDROW_URL`, and send the token of `WINDROW_TOKEN` or of the file that `WINDROW_TOKEN_FILE` names; with `--json` they print one JSON document for programs. Exit codes: 0 success, 1 failure, 2 wrong usage, 130 interrupted.
"""


def _commands() -> Iterator[str]:
    yield _COMMANDS
    text = (ROOT / "tests/golden/commands.txt").read_text()
    helps = re.findall(r"^\$ (windrow[^\n]*) --help\n(.*?)^exit code 0$", text, re.M | re.S)
    for name, help_text in helps:
        # Groups only list their commands.
        if name != "windrow" and "\nCommands:\n" not in help_text:
            yield f"\n## `{name}`\n\n```text\n{help_text.rstrip()}\n```"


# --- the client -------------------------------------------------------------

_PYTHON = """\
# Python client

```python
import windrow

with windrow.connect("http://127.0.0.1:8080") as client:
    client.refresh("sales.events")
```

A client needs no Spark, except for the methods that take a session of it. Every method raises `windrow.errors.ProblemError`, or a subclass, when the coordinator [refuses](problems.md), and `CoordinatorUnreachableError` when it does not answer. Requests and answers are the models of `windrow.models`.
"""


def _python() -> Iterator[str]:
    yield _PYTHON
    for title, functions in (*public_functions().items(), (_FOR_PROGRAMS, _of_programs())):
        yield f"## {title}\n"
        for name, function in functions.items():
            yield from _function(name, function)


_FOR_PROGRAMS = "For agents, jobs and writers"


def public_functions() -> dict[str, dict[str, FunctionType]]:
    """Return what people call, by name, in sections by title."""
    starts = (windrow.connect, windrow.embedded, windrow.register, windrow.accelerate)
    without_spark = {"client.scan": windrow.Client.scan}
    for method in (*_methods(Rows), *_methods(Scan)):
        if not getattr(method, "__isabstractmethod__", False):
            without_spark[f"scan.{method.__name__}"] = method
    sections: dict[str, dict[str, Any]] = {
        "Connect": {f"windrow.{each.__name__}": each for each in starts},
        "Without Spark": {**without_spark, "split.read": ScanSplit.read},
    }
    for owner in (SparkReads, *windrow.Client.__mro__[:-1]):
        methods = {f"client.{each.__name__}": each for each in _methods(owner)}
        names = methods.keys() - {"client.scan"} - _of_programs().keys()
        if names:
            sections[_title(owner)] = {name: methods[name] for name in methods if name in names}
    parts = {name: getattr(windrow.spark, name) for name in windrow.spark.__all__}
    sections["windrow.spark"] = {
        f"windrow.spark.{name}": each
        for name, each in parts.items()
        if isinstance(each, FunctionType)
    }
    return sections


def _of_programs() -> dict[str, FunctionType]:
    return {f"client.{name}": getattr(windrow.Client, name) for name in sorted(OF_PROGRAMS)}


def _methods(owner: type) -> Iterable[FunctionType]:
    return [
        each
        for name, each in vars(owner).items()
        if isinstance(each, FunctionType) and name[0] != "_"
    ]


def _title(owner: type) -> str:
    module = sys.modules[owner.__module__]
    titles: dict[type, str] = {SparkReads: "Read on Spark", windrow.Client: "Write and compact"}
    return titles.get(owner) or _subject(module)


def _subject(module: ModuleType) -> str:
    name = module.__name__.rpartition(".")[2].replace("_", " ")
    return name[0].upper() + name[1:]


def _function(name: str, function: Callable[..., Any]) -> Iterator[str]:
    signature = inspect.signature(function)
    parameters = [_parameter(each) for each in signature.parameters.values() if each.name != "self"]
    kinds = [each.kind for each in signature.parameters.values() if each.name != "self"]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        parameters.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    answer = f" -> {signature.return_annotation}"
    text = f"{name}({', '.join(parameters)}){answer}"
    if len(text) > _WIDTH:
        lines = "".join(f"    {each},\n" for each in parameters)
        text = f"{name}(\n{lines}){answer}"
    yield f"### `{name}`\n\n```text\n{text}\n```\n"
    yield _docstring(inspect.getdoc(function) or "")


def _parameter(parameter: inspect.Parameter) -> str:
    """Return a parameter as it stands in the code: annotations are texts."""
    stars: dict[object, str] = {
        inspect.Parameter.VAR_POSITIONAL: "*",
        inspect.Parameter.VAR_KEYWORD: "**",
    }
    text = f"{stars.get(parameter.kind, '')}{parameter.name}: {parameter.annotation}"
    if parameter.default is inspect.Parameter.empty:
        return text
    return f"{text} = {parameter.default!r}"


def _docstring(text: str) -> str:
    """Return Google's sections as lists, and the example as a block of code."""
    beginning, *rest = re.split(r"^(Args|Returns|Raises|Yields|Example):\n", text, flags=re.M)
    lines = [_prose(beginning), ""]
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        entries = re.findall(r"^    (\S.*(?:\n {5,}.*)*)", body, re.M)
        if title == "Example":
            lines.append(f"```python\n{textwrap.dedent(body).strip()}\n```")
        elif title in ("Args", "Raises"):
            if title == "Raises":
                lines += ["Raises:", ""]
            for entry in entries:
                name, _, meaning = entry.partition(": ")
                lines.append(f"- `{name}`: {_prose(meaning)}")
        else:
            lines.append(f"{title}: {_prose(body)}")
        lines.append("")
    return "\n".join(lines)


# --- problems ---------------------------------------------------------------

_PROBLEMS = """\
# Problems

When a coordinator refuses a call, it answers with a problem (RFC 9457): `type` is `urn:windrow:problem:` and a name of this table, and is stable, so programs should branch on it; `detail` names the thing and the remedy for people. The client raises them as `ProblemError` of `windrow.errors`, or a subclass, and commands print the detail. `request_id` is also in the coordinator's log.

Where another call helps, `remedy` has it for programs: its `operationId` in `openapi.yaml`, its arguments, and the part of `detail` that words it. The client and the commands put their own words there, such as `client.refresh('nyc.flights')` and `windrow table refresh nyc.flights`.

```json
{
  "type": "urn:windrow:problem:table-not-refreshed",
  "title": "Table has no snapshot yet",
  "status": 409,
  "detail": "table 'nyc.flights' has no snapshot yet: POST /tables/nyc.flights/refresh first",
  "remedy": {
    "call": "refresh_table",
    "arguments": {"name": "nyc.flights"},
    "text": "POST /tables/nyc.flights/refresh"
  }
}
```
"""


def _problems() -> Iterator[str]:
    yield _PROBLEMS
    yield from _table("name", "status", "title")
    rows = [
        json.loads(line) for line in (ROOT / "tests/golden/problems.jsonl").read_text().splitlines()
    ]
    kinds = {(row["type"].rpartition(":")[2], row["status"], row["title"]) for row in rows}
    for name, status, title in sorted(kinds):
        yield _row(f"`{name}`", str(status), _cell(title))


# --- Markdown ---------------------------------------------------------------


def _table(*titles: str) -> Iterator[str]:
    yield _row(*titles)
    yield "|" + "---|" * len(titles)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(text: str) -> str:
    return _prose(text).replace("|", "\\|")


def _prose(text: str) -> str:
    """Return paragraphs of one line each, and blocks of code as they are."""
    paragraphs = text.strip().split("\n\n")
    return "\n\n".join(p if p.startswith("```") else " ".join(p.split()) for p in paragraphs)


def _first_paragraph(model: type[BaseModel]) -> str:
    return _prose(inspect.getdoc(model) or "").partition("\n\n")[0]


def _values(field: FieldInfo) -> str:
    """Return what a field may be, in a few words."""
    schema = TypeAdapter(field.rebuild_annotation()).json_schema()
    if "anyOf" in schema:
        (schema,) = [each for each in schema["anyOf"] if each.get("type") != "null"]
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if schema.get("format") == "duration":
        return "a time"
    if get_origin(field.annotation) is Literal:
        return f"`{get_args(field.annotation)[0]}`"
    least, most = schema.get("minimum"), schema.get("maximum")
    if schema.get("type") in ("integer", "number") and (least, most) != (None, None):
        lower = _size(least) if least is not None else "above 0"
        return f"{lower} to {_size(most)}" if most is not None else f"{lower} or more"
    names = {"boolean": "`true`, `false`", "array": "a list", "object": "an object"}
    return names.get(schema.get("type", ""), "text")


def _default(field: FieldInfo) -> str:
    """Return the default value of a field as text."""
    value = field.get_default(call_default_factory=True) if not field.is_required() else ...
    if value is ...:
        return "required"
    if value is None or value in ((), {}, ""):
        return _NONE
    if isinstance(value, timedelta):
        text = f"P{value.days}D" if value == timedelta(days=value.days) else _iso(value)
    elif isinstance(value, (list, tuple)):
        text = json.dumps(list(value))
    elif isinstance(value, bool):
        text = str(value).lower()
    else:
        text = _size(value) if isinstance(value, int) else str(value)
    return f"`{text}`"


def _iso(value: timedelta) -> str:
    return str(TypeAdapter(timedelta).dump_python(value, mode="json"))


def _size(value: float) -> str:
    """Return a number, or a size in the largest unit of which it is a multiple."""
    for power, unit in ((50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if value >= 2**power and value % 2**power == 0:
            return f"{int(value) >> power} {unit}"
    return f"{value:,}" if value >= 10_000 and value != 65_535 else str(value)


def main(arguments: Sequence[str]) -> None:
    """Write the pages to docs/reference, or to another folder."""
    folder = Path(arguments[0]) if arguments else REFERENCE
    for name, text in pages().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
