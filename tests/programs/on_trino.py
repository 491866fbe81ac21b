"""Answers SQL by Trino.

    python on_trino.py PORT

takes a JSON list of statements from its input, and prints a list of their answers: the rows, as
sorted texts, or the error and its causes as a text.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.programs.other_engines import row_texts


def main() -> None:
    """Answer all statements."""
    trino: Any = importlib.import_module("trino")
    port = int(sys.argv[1])
    with trino.dbapi.connect(
        host="127.0.0.1", port=port, user="test", timezone="UTC"
    ) as connection:

        def answer(statement: str) -> Any:
            cursor = connection.cursor()
            try:
                cursor.execute(statement)
                return row_texts(map(_plain, cursor.fetchall()))
            except trino.exceptions.TrinoQueryError as error:
                return _text(error.failure_info)

        json.dump([answer(statement) for statement in json.load(sys.stdin)], sys.stdout)


def _plain(value: Any) -> Any:
    """Return a value in which structs are dicts."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, tuple):
        names: list[str] = value.__annotations__["names"]
        return dict(zip(names, map(_plain, value), strict=True))
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value


def _text(failure: Any) -> str:
    """Return an error and its causes, of which Trino's own message tells the first one only."""
    texts = []
    while failure:
        texts.append(f"{failure['type']}: {failure.get('message')}")
        failure = failure.get("cause")
    return "\n".join(texts)


if __name__ == "__main__":
    main()
