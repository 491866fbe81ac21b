"""Tests in the language of sqllogictest, as DuckDB writes them: statements, queries, loops."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

_FLOAT = re.compile(r"[+-]?([0-9]+\.[0-9]*|[0-9]*\.[0-9]+|[0-9]+)(e[+-]?[0-9]+)?", re.I)
_TRUTH = {"1": "true", "0": "false"}
_CLOSE = 1e-5


@dataclass(frozen=True)
class Record:
    """A statement or a query of a test.

    Attributes:
        line: The number of its first line.
        kind: `ok`, `error`, `maybe` or `query`.
        sql: Its text.
        width: How many columns a query has.
        is_sorted: Whether rows are compared in any order.
        expected: The lines of its result, or of its error.
    """

    line: int
    kind: str
    sql: str
    width: int = 0
    is_sorted: bool = False
    expected: tuple[str, ...] = ()


def records(text: str, variables: Mapping[str, str]) -> Iterator[Record]:
    """Yield what a test runs, with its loops unrolled and its variables replaced.

    Nothing follows `mode skip`, `halt`, or a `require` of what is not known.
    """
    blocks = _blocks(text.splitlines())
    yield from _run(blocks, dict(variables))


def _blocks(lines: Sequence[str]) -> list[tuple[int, list[str]]]:
    """Return paragraphs without comments, with the numbers of their first lines."""
    found: list[tuple[int, list[str]]] = []
    at_end = True
    for number, line in enumerate(lines, 1):
        if not line.strip():
            at_end = True
        elif line.startswith("#") and at_end:
            continue
        elif at_end:
            found.append((number, [line]))
            at_end = False
        else:
            found[-1][1].append(line)
    return found


def _run(blocks: list[tuple[int, list[str]]], variables: dict[str, str]) -> Iterator[Record]:
    at, skips = 0, False
    while at < len(blocks):
        number, lines = blocks[at]
        lines = [line for line in lines if not line.startswith("#")]
        at += 1
        while lines and lines[0].startswith(("onlyif ", "skipif ")):
            word, condition = lines[0].split(maxsplit=1)
            name, _, value = condition.partition("=")
            runs = (variables.get(name) == value) == (word == "onlyif")
            lines = lines[1:] if runs else []
        if not lines:
            continue
        words = _replaced(lines[0], variables).split()
        if words[0] in ("foreach", "loop", "concurrentloop", "concurrentforeach"):
            inner, at = _loop(blocks, at)
            values = words[2:] if "foreach" in words[0] else map(str, range(*map(int, words[2:4])))
            for value in values:
                yield from _run(inner, variables | {words[1]: value})
        elif words[0] == "mode":
            skips = words[1] == "skip" or (skips and words[1] != "unskip")
        elif words[0] == "halt":
            return
        elif not skips and words[0] in ("statement", "query"):
            yield _record(number, words, [_replaced(line, variables) for line in lines[1:]])
        elif words[0] in ("test-env", "set-env"):
            variables[words[1]] = words[2] if len(words) > 2 else ""


def _loop(
    blocks: list[tuple[int, list[str]]], start: int
) -> tuple[list[tuple[int, list[str]]], int]:
    depth, at = 1, start
    while depth and at < len(blocks):
        word = blocks[at][1][0].split()[0]
        depth += ("loop" in word or "foreach" in word) and word != "endloop"
        depth -= word == "endloop"
        at += 1
    return blocks[start : at - 1], at


def _replaced(line: str, variables: Mapping[str, str]) -> str:
    for name, value in variables.items():
        for spelling in (f"${{{name}}}", f"{{{name}}}", f"__{name}__"):
            line = line.replace(spelling, value)
    return line


def _record(number: int, words: Sequence[str], lines: Sequence[str]) -> Record:
    end = lines.index("----") if "----" in lines else len(lines)
    sql, expected = "\n".join(lines[:end]), tuple(lines[end + 1 :])
    if words[0] == "statement":
        return Record(number, words[1], sql, expected=expected)
    return Record(number, "query", sql, len(words[1]), "sort" in "".join(words[2:]), expected)


def rows_of(record: Record) -> list[tuple[str, ...]]:
    """Return the rows that a query should have: one line each, or one line for each value."""
    lines = record.expected
    if record.width == 1 or any("\t" in line for line in lines):
        return [tuple(line.split("\t")) for line in lines]
    return [tuple(lines[at : at + record.width]) for at in range(0, len(lines), record.width)]


def equal(
    record: Record, rows: Sequence[Sequence[str | None]], plain: Callable[[str], str] = str
) -> bool:
    """Return whether rows, as texts, are those that a query should have.

    Args:
        record: The query.
        rows: Its rows.
        plain: Changes a text before it is compared.
    """
    is_ordered = re.search(r"\border\s+by\b", record.sql, re.I) and not record.is_sorted
    theirs = [tuple(map(plain, row)) for row in rows_of(record)]
    ours = [tuple(plain(_text(value)) for value in row) for row in rows]
    if not is_ordered:
        theirs, ours = sorted(theirs), sorted(ours)
    return len(theirs) == len(ours) and all(map(_same_row, theirs, ours))


def _text(value: str | None) -> str:
    return "NULL" if value is None else value or "(empty)"


def _same_row(theirs: Sequence[str], ours: Sequence[str]) -> bool:
    return len(theirs) == len(ours) and all(map(_same, theirs, ours))


def _same(theirs: str, ours: str) -> bool:
    if theirs == ours or theirs.startswith("<REGEX>:"):
        return theirs == ours or bool(re.fullmatch(theirs.removeprefix("<REGEX>:"), ours, re.S))
    if ours in ("true", "false"):
        return _TRUTH.get(theirs) == ours
    if not (_FLOAT.fullmatch(theirs) and _FLOAT.fullmatch(ours)):
        return False
    first, second = float(theirs), float(ours)
    return abs(first - second) <= _CLOSE * max(abs(first), abs(second)) and "." in theirs + ours
