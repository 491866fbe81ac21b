"""What users read, held against the vocabulary: `python -m tests.support.documents.voice`."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[3]
VOCABULARY = ROOT / "docs" / "contribute" / "vocabulary.txt"
_PACKAGES = ("calls", "cli", "client", "core", "service", "spark", "spark_jobs", "tables")
# Decisions keep their words, and contributors' pages quote the words that users do not read.
_UNREAD = {"decisions", "contribute"}


def vocabulary(text: str) -> Mapping[str, str]:
    """Return what to write instead of each phrase."""
    return dict(line.split("\t") for line in text.splitlines() if line and line[0] != "#")


def findings(text: str, words: Mapping[str, str]) -> Iterator[str]:
    """Yield what to change in a text: the phrase where it occurs, and what to write instead."""
    prose = re.sub(r"```.*?```|`[^`\n]*`|https?://\S+|\]\([^)]*\)", " ", text, flags=re.S)
    prose = " ".join(prose.split())
    for phrase, instead in words.items():
        for match in re.finditer(rf"\b{re.escape(phrase)}\b", prose, re.I):
            around = prose[max(match.start() - 30, 0) : match.end() + 30]
            yield f"…{around}…: not {phrase!r} but {instead!r}"


def texts() -> Iterator[tuple[str, str]]:
    """Yield what users read, with its place: documents, errors, help, pages, the HTTP contract."""
    pages = (ROOT / "docs").rglob("*.md")
    for page in (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(pages)):
        if not _UNREAD & set(page.relative_to(ROOT).parts):
            yield _name(page), page.read_text()
    for package in _PACKAGES:
        for module in sorted((ROOT / package).rglob("*.py")):
            tree = ast.parse(module.read_text())
            yield from ((_name(module), text) for text in _said(tree))
    yield from _pages()
    contract = yaml.load((ROOT / "openapi.yaml").read_text(), yaml.CSafeLoader)
    yield from (("openapi.yaml", text) for text in _descriptions(contract))


def _said(tree: ast.Module) -> Iterator[str]:
    """Yield the texts of a module, which users may read: all but docstrings."""
    bodies = (getattr(node, "body", None) for node in ast.walk(tree))
    firsts = (body[0] for body in bodies if isinstance(body, list) and body)
    docstrings = {id(first.value) for first in firsts if isinstance(first, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.JoinedStr, ast.Constant)) and id(node) not in docstrings:
            text = _constant(node)
            if " " in text:
                yield text


def _pages() -> Iterator[tuple[str, str]]:
    """Yield the words of the dashboard's templates."""
    for page in sorted((ROOT / "service").rglob("templates/*.html")):
        yield _name(page), re.sub(r"\{[{%#].*?[}%#]\}|<[^>]+>", " ", page.read_text(), flags=re.S)


def _constant(node: ast.expr) -> str:
    """Return the text of an expression, without what it inserts."""
    parts = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
    return " ".join(part for part in parts if isinstance(part, str))


def _descriptions(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        for name, value in node.items():
            if name in ("description", "summary") and isinstance(value, str):
                yield value
            else:
                yield from _descriptions(value)
    elif isinstance(node, list):
        for each in node:
            yield from _descriptions(each)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def main() -> int:
    """Print what to change; return 1 if that is anything."""
    words = vocabulary(VOCABULARY.read_text())
    lines = [f"{place}: {each}" for place, text in texts() for each in findings(text, words)]
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
