"""JSON bodies that take much more time or memory than their bytes suggest."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.support.api.contract import operations

# The names that the paths of calls leave open.
PATH_NAMES = {
    "name": "attacked",
    "rule": "r",
    "pattern": "*",
    "claim_id": "0" * 32,
    "worker_id": "w",
    "write_id": "0" * 32,
    "plan_id": "0" * 32,
    "token_id": "0" * 16,
    "run_id": "0" * 16,
}


def unknown_keys(count: int) -> bytes:
    """Return an object of keys that no call has."""
    return b"{%s}" % b",".join(b'"k%d":1' % number for number in range(count))


def nested_unknown_keys(count: int) -> bytes:
    """Return objects of nine unknown keys each, in lists under keys that calls have."""
    each = b"{%s}" % b",".join(b'"k%d":1' % number for number in range(9))
    items = b",".join([each] * (count // 10))
    keys = (b"columns", b"added", b"partitions", b"scopes", b"filter", b"keys", b"definition")
    return b"{%s}" % b",".join(b'"%s":[%s]' % (key, items) for key in keys)


def deep_lists(count: int) -> bytes:
    """Return lists inside one another."""
    return b'{"filter":%s1%s}' % (b"[" * count, b"]" * count)


def deep_filter(count: int) -> bytes:
    """Return a filter of negations inside one another."""
    return b'{"table":"attacked","filter":%s1%s}' % (b'{"op":"not","arg":' * count, b"}" * count)


def wrong_items(count: int) -> bytes:
    """Return long lists of items of a wrong type, under keys that calls have."""
    items = b",".join([b"[]"] * (count // 4))
    keys = (b"columns", b"added", b"removed", b"partitions", b"bloom_columns", b"salt_columns")
    return b"{%s}" % b",".join(b'"%s":[%s]' % (key, items) for key in keys)


def wrong_filter_values(count: int) -> bytes:
    """Return lists of values that no comparison may have."""
    items = b",".join([b"[]"] * min(count, 10_000))
    one = b'{"op":"in","column":"c","values":[%s]}' % items
    args = b",".join([one] * max(1, count // 10_000))
    return b'{"table":"attacked","filter":{"op":"or","args":[%s]}}' % args


def wrong_statistics(count: int) -> bytes:
    """Return one file with wrong bounds for each of many columns."""
    stats = b",".join(b'"c%d":{"min":[],"max":[]}' % number for number in range(count // 4))
    return b'{"added":[{"path":"p","size_bytes":1,"mtime_ns":1,"stats":{%s}}]}' % stats


def many_filter_nodes(count: int) -> bytes:
    """Return a filter of many comparisons."""
    one = b'{"op":"eq","column":"c","value":1}'
    args = b",".join([one] * (count // 4))
    return b'{"table":"attacked","filter":{"op":"or","args":[%s]}}' % args


def long_filter_text(count: int) -> bytes:
    """Return a filter of many terms, as SQL."""
    return b'{"table":"attacked","filter":"%s"}' % b" or ".join([b"c=1"] * count)


def many_numbers(count: int) -> bytes:
    """Return a list of small numbers."""
    return b'{"table":"attacked","columns":[%s]}' % b",".join([b"1"] * (4 * count))


def duplicate_keys(count: int) -> bytes:
    """Return an object with one key again and again."""
    return b'{"table":"attacked"%s}' % (b',"limit":1' * count)


def huge_numbers(count: int) -> bytes:
    """Return a number of many digits, and one of a large exponent."""
    return b'{"table":"attacked","limit":%s,"bytes_per_row":1e999999}' % (b"9" * 8 * count)


def long_texts(count: int) -> bytes:
    """Return long texts, with escapes and half a surrogate pair, as key and as value."""
    text = b'\\"\\ud800,:{[' * count
    return b'{"table":"%s","%s":1}' % (text, text)


KINDS: tuple[Callable[[int], bytes], ...] = (
    unknown_keys,
    nested_unknown_keys,
    deep_lists,
    deep_filter,
    wrong_items,
    wrong_filter_values,
    wrong_statistics,
    many_filter_nodes,
    long_filter_text,
    many_numbers,
    duplicate_keys,
    huge_numbers,
    long_texts,
)


def calls_with_json() -> Iterator[tuple[str, str]]:
    """Return method and path of each call that takes JSON, with names in the path."""
    for call, operation in operations().items():
        if "application/json" in operation.get("requestBody", {}).get("content", {}):
            method, path = call.split(" ")
            yield method, path.format(**PATH_NAMES)
