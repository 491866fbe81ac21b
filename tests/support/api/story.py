"""The worked examples of `/docs`, sent to a real coordinator from the first call to the last.

`python -m tests.support.api.story` sends them and records the answers.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
from anyio.from_thread import start_blocking_portal

from tests.support.api.contract import operations
from tests.support.servers.coordinators import PLAIN, running
from tests.support.tables.packs import unpublished_pack
from windrow_service import administration
from windrow_service.api import examples
from windrow_service.settings import Settings

# The location of the tables in the story.
_DATA = "/data"
_WRITTEN = datetime(2026, 11, 3, tzinfo=timezone.utc)
_SECRET = "wdr_told-this-one-time"


class Told(NamedTuple):
    """One step of the story, as it was sent, and its answer."""

    step: examples.Step
    sent: examples.Step
    answer: httpx.Response


@contextmanager
def stage(folder: Path) -> Iterator[httpx.Client]:
    """Yield an administrator's client of a coordinator with the story's files in `folder`."""
    _write_files(folder)
    settings = Settings(
        state_dir=folder / "state", allowed_locations=(str(folder),), require_tokens=True
    )
    with running(settings) as url, start_blocking_portal() as portal:
        headers = {"Authorization": f"Bearer {portal.call(_token, settings)}"}
        with httpx.Client(base_url=url, timeout=60, verify=PLAIN, headers=headers) as http:
            yield http


def tell(http: httpx.Client, folder: Path) -> Iterator[Told]:
    """Send each request of the story in turn, with the real ids of earlier answers."""
    path_of = {operation["operationId"]: name for name, operation in operations().items()}
    really = {_DATA: str(folder)}
    for step in examples.story():
        if step["operation"] == "publish_pack":
            really |= _pack(http, step)
        request: examples.Step = _renamed(step, really) | {"answer": None}
        method, _, path = path_of[step["operation"]].partition(" ")
        answer = http.request(
            method,
            path.format(**request.get("path", {})),
            params=request.get("query"),
            headers=request.get("headers"),
            json=request.get("body"),
        )
        yield Told(step, request, answer)
        if answer.content:
            _learn(step.get("answer"), answer.json(), really)


def _pack(http: httpx.Client, step: examples.Step) -> dict[str, str]:
    """Make the pack of a step, and return its real texts, by those of the example."""
    example = step["body"]
    # An earlier step has begun the run.
    run = Path(example["path"]).name[len("pack-") :][:16]
    pack = unpublished_pack(http, step["path"]["name"], run)
    texts = {example[name]: pack[name] for name in ("definition", "path", "digest")}
    files = {one["path"]: one["digest"] for one in pack["sources"]}
    return texts | {one["digest"]: files[one["path"]] for one in example["sources"]}


def shape(value: Any) -> Any:
    """Return a value with each scalar replaced by the name of its type."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    return type(value).__name__


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _renamed(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [_renamed(inner, names) for inner in value]
    if isinstance(value, str):
        if value.startswith(f"{_DATA}/") and value not in names:
            return names[_DATA] + value.removeprefix(_DATA)
        return names.get(value, value)
    return value


def _learn(shown_value: Any, really: Any, names: dict[str, str]) -> None:
    """Note the real values of strings in an example, such as ids."""
    if isinstance(shown_value, dict) and isinstance(really, dict):
        for key in shown_value.keys() & really.keys():
            _learn(shown_value[key], really[key], names)
    elif isinstance(shown_value, list) and isinstance(really, list):
        for one, other in zip(shown_value, really, strict=False):
            _learn(one, other, names)
    elif isinstance(shown_value, str) and isinstance(really, str) and shown_value != really:
        names.setdefault(shown_value, really)


async def _token(settings: Settings) -> str:
    async with administration.open_tokens(settings) as tokens:
        return (await tokens.create("ana", ["admin"], None))[1]


def _write_files(folder: Path) -> None:
    first = 0
    for day in (1, 2, 3):
        for number in range(2):
            path = folder / "events" / f"ds=2026-11-0{day}" / f"part-{number:05d}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            ids = pa.array(range(first, first + 20), pa.int64())
            amounts = pa.array(range(80, 100), pa.int32())
            pq.write_table(pa.table({"id": ids, "amount": amounts}), path)
            os.utime(path, (_WRITTEN.timestamp(),) * 2)
            first += 20


def _main() -> None:
    steps = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with stage(folder) as http:
            for sent_step in tell(http, folder):
                assert sent_step.answer.status_code == sent_step.step["status"], (
                    sent_step.answer.text
                )
                answer = json.loads(sent_step.answer.content or b"null")
                if sent_step.step["operation"] == "create_token":
                    answer["token"] = _SECRET
                step = sent_step.sent | {"answer": answer}
                steps.append(json.loads(json.dumps(step).replace(name, _DATA)))
    text = json.dumps(steps, indent=2, ensure_ascii=False)
    examples.FILE.write_text(text + "\n")


if __name__ == "__main__":
    _main()
