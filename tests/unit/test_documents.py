"""Documents name only what exists: imports, calls, commands, options; links lead somewhere."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer.main

import windrow
from tests.support.documents import reference
from tests.support.documents.site import build_site
from windrow_cli.app import app
from windrow_core import models
from windrow_core.models.packs import PackingRequest
from windrow_service.api.html.explanations import EXPLANATIONS

ROOT = Path(__file__).parents[2]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if path.parent.name != "decisions"
}
LINKED = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
)
REFERENCE = reference.pages()
COMMANDS = typer.main.get_command(app)
# A file, an attribute of spans, a class of the JVM, and what tests install apart.
_NO_PYTHON = {"windrow.db", "windrow.request_id", "windrow.Catalog", "dbt.cli.main.dbtRunner"}
# What methods of the client take as `**options` and `**fields`.
_FIELDS = {
    field
    for model in (
        models.PlanOptions,
        models.WritePlanRequest,
        models.CompactionRequest,
        models.PolicyDefinition,
        models.MaintenanceBudget,
        PackingRequest,
    )
    for field in model.model_fields
}
# Names in SQL: the catalog, and a namespace or a table.
_IN_SQL = re.compile(r"windrow\.(?:sales|default|events|system)\b", re.IGNORECASE)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_site(tmp_path_factory.mktemp("site"))


def _found(name: str) -> Any:
    """Return the object of a dotted name; raise if there is none."""
    module, *names = name.split(".")
    found = import_module(module)
    for each in names:
        module = f"{module}.{each}"
        found = getattr(found, each) if hasattr(found, each) else import_module(module)
    return found


def _blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)


def _spans(text: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", _prose(text))


@pytest.mark.parametrize("page", PAGES)
def test_names_that_a_page_imports_or_mentions_can_be_imported(page: str) -> None:
    names = {
        name
        for span in _spans(PAGES[page])
        for name in re.findall(r"(?<![\w./])windrow(?:_\w+)?(?:\.\w+)+", span)
        if not re.search(r"spark\.windrow|example\.com|://", span)
    }
    for block in _blocks(PAGES[page]):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom):
                names |= {f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.Attribute) and ast.unparse(node).startswith("windrow."):
                names.add(ast.unparse(node))

    for name in {name for name in names if not _IN_SQL.match(name)} - _NO_PYTHON:
        assert _found(name) is not None


@pytest.mark.parametrize("page", PAGES)
def test_methods_of_the_client_that_a_page_calls_exist(page: str) -> None:
    texts = [*_spans(PAGES[page]), *_blocks(PAGES[page])]

    called = {name for text in texts for name in re.findall(r"\bclient\.([a-z]\w+)\b", text)}

    assert [name for name in sorted(called - {"py"}) if not hasattr(windrow.Client, name)] == []


@pytest.mark.parametrize("page", PAGES)
def test_calls_that_a_page_shows_fit_the_signatures(page: str) -> None:
    for call in _calls(PAGES[page]):
        owner, _, name = ast.unparse(call.func).rpartition(".")
        method = getattr(windrow.Client if owner == "client" else _found(owner), name)
        is_whole = ... not in [each.value for each in call.args if isinstance(each, ast.Constant)]
        itself = [None] * (owner == "client")
        signature = inspect.signature(method)
        bind = signature.bind if is_whole else signature.bind_partial
        keywords = {each.arg: None for each in call.keywords if each.arg}

        bind(*itself, *([None] * (len(call.args) - (not is_whole))), **keywords)
        assert keywords.keys() <= signature.parameters.keys() | _FIELDS, ast.unparse(call)


def _calls(text: str) -> Iterator[ast.Call]:
    """Yield the calls of the client, and of functions of `windrow`, in blocks and in spans."""
    for source in (*_blocks(text), *(span.replace("…", "...") for span in _spans(text))):
        try:
            tree = ast.parse(source)
        except SyntaxError:  # a span of another language
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and re.fullmatch(
                r"(client|windrow(\.spark)?)\.[a-z]\w*", ast.unparse(node.func)
            ):
                yield node


@pytest.mark.parametrize("page", PAGES)
def test_a_command_that_a_page_shows_exists_with_its_options(page: str) -> None:
    shown = re.findall(r"^(?:    +|\$ )?(windrow [a-z].*)$", PAGES[page], re.M)
    shown += [span for span in _spans(PAGES[page]) if re.match(r"windrow [a-z]", span)]

    for command in shown:
        _check(command)


def _check(text: str) -> None:
    """Follow a command line through groups to a command; fail if a word leads nowhere."""
    words = shlex.split(re.sub(r"[\[\]…]", " ", text), comments=True)[1:]
    command = COMMANDS
    while (commands := getattr(command, "commands", {})) and words and words[0][0] != "-":
        assert words[0] in commands, f"{text}: there is no {words[0]}"
        command = commands[words.pop(0)]
    # A group, such as `windrow token`, has the options of its commands.
    owners = [command, *commands.values()]
    options = {option for owner in owners for each in owner.params for option in each.opts}
    for word in words:
        assert word[:2] != "--" or word.partition("=")[0] in options, f"{text}: {word}"


@pytest.mark.parametrize("page", LINKED)
def test_links_lead_to_files_and_headings_that_exist(page: str) -> None:
    path = ROOT / page
    links = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", _prose(path.read_text())))

    for link in links:
        name, _, anchor = link.partition("#")
        if ":" not in name:
            target = (path.parent / name).resolve() if name else path
            assert target.exists(), f"{page}: {link}"
            assert not anchor or anchor in _anchors(target), f"{page}: {link}"


@pytest.mark.parametrize("page", REFERENCE)
def test_a_page_of_reference_is_made_from_the_code(page: str) -> None:
    assert (reference.REFERENCE / page).read_text() == REFERENCE[page], "run `make reference`"


def test_every_plan_option_and_setting_is_explained() -> None:
    for page in ("plan-options.md", "settings.md"):
        rows = [line for line in REFERENCE[page].splitlines() if line.startswith("| `")]

        assert len(rows) > 14
        assert [row for row in rows if row.endswith("|  |")] == []


def test_the_documents_are_built_as_a_site_without_warnings(site: Path) -> None:
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}

    shown = {name.replace("README.md", "index.md") for name in _shown()}
    assert {f"{Path(name).with_suffix('')}.html" for name in shown} <= pages
    assert (site / "search" / "search_index.json").stat().st_size > 100_000


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    loaded = r"""<(?:script|img|iframe|link)[^>]*?(?:src|href)=["']?(https?:)?//|@import|url\(["']?http"""

    texts = [*site.rglob("*.html"), *site.rglob("*.css")]

    assert [path.name for path in texts if re.search(loaded, path.read_text())] == []


def _shown() -> list[str]:
    return [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]


def _prose(text: str) -> str:
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.M | re.S)


def _anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, which GitHub and MkDocs make in the same way."""
    headings = re.findall(r"^#+ (.*)$", _prose(page.read_text()), re.M)
    return {re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", each).strip().lower()) for each in headings}


def test_each_question_of_a_page_is_the_heading_of_what_the_figure_counts() -> None:
    headings = re.findall("^## (.+)$", Path("docs/reference/figures.md").read_text(), re.MULTILINE)

    # Every figure that is described is on a page, too: tests/contract/test_page_figures.py.
    assert {heading.lower().replace(" ", "-") for heading in headings} == EXPLANATIONS.keys()
