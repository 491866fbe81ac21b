"""A truncated stream of groups is never mistaken for a small plan."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from tests.support.tables.inventories import MIB, inventory
from windrow_calls.errors import IncompletePlanError
from windrow_calls.plans import read_group_stream
from windrow_service.planner.plan import plan_groups
from windrow_service.planner.policy import Policy
from windrow_service.wire import groups as wire

SETTINGS = examples(65)
FILES = 40


@pytest.fixture(scope="module", params=[1, 7, wire.SPLITS_PER_BATCH], ids="{} a batch".format)
def body(request: pytest.FixtureRequest) -> bytes:
    """A stream of 20 groups of two splits, in many batches, in a few, and in one."""
    files = inventory([MIB] * FILES)
    plan = plan_groups(files, None, Policy(max_split_size=2 * MIB, open_file_cost=0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wire, "SPLITS_PER_BATCH", request.param)
        return b"".join(wire.ArrowGroups().encode(plan).parts)


def paths(table: pa.Table) -> list[str]:
    return sorted(split["path"] for group in table["splits"].to_pylist() for split in group)


def test_the_whole_stream_is_the_whole_plan(body: bytes) -> None:
    table = read_group_stream("plan", body)

    assert len(table) == FILES // 2
    assert paths(table) == [f"f{n:06d}" for n in range(FILES)]


@SETTINGS
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_stream_cut_anywhere_is_refused_or_complete(body: bytes, share: float) -> None:
    cut = body[: int(len(body) * share)]

    try:
        table = read_group_stream("plan", cut)
    except IncompletePlanError:
        return
    # Only bytes after the end marker were cut off.
    assert paths(table) == [f"f{n:06d}" for n in range(FILES)]


def test_a_stream_without_its_last_bytes_is_refused_or_complete(body: bytes) -> None:
    for missing in range(1, 400):
        try:
            table = read_group_stream("plan", body[:-missing])
        except IncompletePlanError:
            continue
        assert len(table) == FILES // 2


@SETTINGS
@given(data=st.data())
def test_a_stream_without_a_middle_part_is_never_mistaken_for_a_smaller_plan(
    body: bytes, data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(body) - 1))
    last = data.draw(st.integers(first + 1, len(body)))

    try:
        table = read_group_stream("plan", body[:first] + body[last:])
    except IncompletePlanError:
        return
    assert len(table) == FILES // 2


def batches(body: bytes) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    with pa.ipc.open_stream(body) as stream:
        return stream.schema, list(stream)


@pytest.mark.parametrize(
    "marker",
    [
        None,
        b"",
        b"[]",
        b"{",
        b"\xff",
        json.dumps({"groups": 19, "splits": 40}).encode(),
        json.dumps({"groups": 20, "splits": 41}).encode(),
        json.dumps({"groups": 20}).encode(),
    ],
)
def test_a_missing_or_wrong_end_marker_is_refused(body: bytes, marker: bytes | None) -> None:
    schema, sent = batches(body)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        for batch in sent:
            stream.write_batch(batch)
        if marker is not None:
            stream.write_batch(
                pa.RecordBatch.from_pylist([], schema), custom_metadata={b"windrow:end": marker}
            )

    with pytest.raises(IncompletePlanError):
        read_group_stream("plan", sink.getvalue().to_pybytes())


def test_an_answer_that_is_not_a_plan_is_refused(tmp_path: Path) -> None:
    sink = pa.BufferOutputStream()
    table = pa.table({"x": [1]})
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_batch(
            table.to_batches()[0], custom_metadata={b"windrow:end": b'{"groups": 1, "splits": 0}'}
        )

    for other in (b"", b"<html>", b"\0" * 64, sink.getvalue().to_pybytes()):
        with pytest.raises(IncompletePlanError):
            read_group_stream("plan", other)
