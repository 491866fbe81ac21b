"""Edits files of metadata at random: what they say, by their format's structure, or their bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from tests.support.files import footers
from tests.support.files.avro_files import block, long
from tests.support.files.odd_values import ODD_VALUES, places_in, with_value
from tests.support.tables.iceberg_files import read_avro, write_avro
from windrow_service.avro.headers import schema_text
from windrow_service.orc.messages import FileTail, PostScript

# Most of what an edit in the bytes of a file is about lies there.
_TAIL_BYTES = 400


def edit_bytes(path: Path, random: Random) -> None:
    """Change, drop, double or cut off some bytes."""
    content = bytearray(path.read_bytes())
    for _ in range(random.randint(1, 3)):
        from_end = max(0, len(content) - _TAIL_BYTES) if random.random() < 0.5 else 0
        at = random.randrange(from_end, len(content) + 1)
        end = min(len(content), at + random.choice([1, 1, 2, 4, 20]))
        other = random.choice(
            [
                b"",
                bytes(byte ^ 1 << random.randrange(8) for byte in content[at:end]),
                content[at:end] * 2,
                random.randbytes(end - at),
                b"\xff" * (end - at),
                b"\0" * (end - at),
            ]
        )
        content[at:end] = other
    if random.random() < 0.1:
        del content[random.randrange(len(content) + 1) :]
    path.write_bytes(content)


def other_document(document: Any, random: Random) -> Any:
    """Return a JSON document with some values changed, dropped or doubled, at any depth."""
    for _ in range(random.randint(1, 3)):
        place = random.choice(list(places_in(document)))
        value = document
        for step in place:
            value = value[step]
        document = with_value(document, place, _other_value(value, random))
    return document


def _other_value(value: Any, random: Random) -> Any:
    choices: list[Any] = [random.choice(ODD_VALUES)]
    if isinstance(value, bool):
        choices = [not value]
    elif isinstance(value, (int, float)):
        choices += [value + 1, value - 1, -value, value * 2, 0, str(value)]
    elif isinstance(value, str):
        choices += [value[:-1], value + "x", value.upper(), value * 2, "", f"../{value}", [value]]
        choices += [_inner(value, random)] * 4
    elif isinstance(value, list):
        choices += [value[1:], value[:-1], value * 2, value[::-1], random.sample(value, len(value))]
    elif isinstance(value, dict) and value:
        name, *others = random.sample(sorted(value), len(value))
        without = {key: one for key, one in value.items() if key != name}
        choices += [without, without, {**without, name.upper(): value[name]}]
        choices += [{**value, name: value[one]} for one in others[:2]]
    return random.choice(choices)


def _inner(text: str, random: Random) -> str:
    """Return a text that may be a JSON document with something else in it."""
    try:
        document = json.loads(text)
    except ValueError:
        return text[1:]
    return json.dumps(other_document(document, random))


def edit_json(path: Path, random: Random) -> None:
    """Change a file of one JSON document, or of one in each line."""
    lines: Any = [json.loads(line) for line in path.read_text().splitlines()]
    if len(lines) > 1 and random.random() < 0.3:
        lines = random.choice([lines[1:], lines[:-1], lines * 2, lines[::-1]])
    else:
        lines = other_document(lines, random)
    lines = lines if isinstance(lines, list) else [lines]
    path.write_text("\n".join(map(json.dumps, lines)))


def edit_avro(path: Path, random: Random) -> None:
    """Change the schema, the metadata or the records of an Avro file."""
    content = path.read_bytes()
    schema, head, records = read_avro(path)
    document = {"schema": schema, "head": dict(head)}
    if random.random() < 0.5:
        records = [_other_record(record, random) for record in records]
    else:
        document = other_document(document, random)
    try:
        write_avro(path, document["schema"], document["head"], records)
    except Exception:
        # These records are not of that schema, which a writer notices, and a reader must.
        path.write_bytes(content)
        _edit_header(path, random)


def _other_record(record: Any, random: Random) -> Any:
    places = [place for place in places_in(record) if place]
    place = random.choice(places)
    value = record
    for step in place:
        value = value[step]
    if isinstance(value, bytes):
        return with_value(record, place, random.choice([b"", value[:-1], value * 3, b"\xff" * 9]))
    if isinstance(value, int):
        ends = (0, 1, 2, 3, -1, 2**31 - 1, 2**63 - 1, -(2**63), value + 1)
        return with_value(record, place, random.choice(ends))
    return with_value(record, place, _other_value(value, random))


def _edit_header(path: Path, random: Random) -> None:
    """Change the schema in a header of an Avro file, which its blocks need not have then."""
    content = path.read_bytes()
    text = schema_text(content)
    other = json.dumps(other_document(json.loads(text), random)).encode()
    at = content.index(text)
    begin, end = content[: at - len(long(len(text)))], content[at + len(text) :]
    path.write_bytes(begin + block(other) + end)


def edit_orc(path: Path, random: Random) -> None:
    """Change messages in the tail of an ORC file that is not compressed."""
    content = path.read_bytes()
    end = len(content) - 1
    postscript = PostScript.FromString(content[end - content[end] : end])
    begin = end - content[end] - postscript.footer_length
    footer = type(FileTail().footer).FromString(content[begin : begin + postscript.footer_length])
    for _ in range(random.randint(1, 3)):
        _edit_message(random.choice([footer, footer, footer, postscript]), random)
    encoded = footer.SerializeToString()
    if random.random() < 0.9:
        postscript.footer_length = len(encoded)
    tail = postscript.SerializeToString()
    path.write_bytes(content[:begin] + encoded + tail + bytes([len(tail) % 256]))


def _messages(message: Any) -> Iterator[Any]:
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for one in value if field.is_repeated else [value]:
                yield from _messages(one)


def _edit_message(message: Any, random: Random) -> None:
    holders = [one for one in _messages(message) if one.ListFields()]
    if not holders:
        return
    own = random.choice(holders)
    field, value = random.choice(own.ListFields())
    if field.is_repeated:
        values = list(value)
        own.ClearField(field.name)
        others = (values[1:], values[:-1], values * 2, values[::-1], values[:1])
        getattr(own, field.name).extend(random.choice(others))
    elif field.message_type is not None or random.random() < 0.2:
        own.ClearField(field.name)
    else:
        try:
            setattr(own, field.name, _other_number(value, random))
        except (TypeError, ValueError):
            own.ClearField(field.name)


def _other_number(value: Any, random: Random) -> Any:
    if isinstance(value, bytes):
        return random.choice([b"", b"\xff", b"x", value[:-1], value + b"x", value * 2])
    if isinstance(value, bool):
        return not value
    ends = (0, 1, value + 1, value - 1, 2**31 - 1, 2**32, 2**63, 2**64 - 1, -1)
    return random.choice(ends)


def edit_parquet(path: Path, random: Random) -> None:
    """Change the footer of a Parquet file."""
    footers.edit(path, lambda footer: footers.edit_at_random(footer, random))


_BY_SUFFIX: dict[str, Callable[[Path, Random], None]] = {
    ".json": edit_json,
    ".avro": edit_avro,
    ".orc": edit_orc,
    ".parquet": edit_parquet,
}


def edit_at_random(path: Path, random: Random, suffix: str = "") -> None:
    """Change a file: by the structure of its format mostly, or its bytes.

    Args:
        path: The file.
        random: Chooses the change.
        suffix: How names of its format end, if its own does not.
    """
    by_structure = _BY_SUFFIX.get(suffix or path.suffix, edit_bytes)
    (edit_bytes if random.random() < 0.3 else by_structure)(path, random)
