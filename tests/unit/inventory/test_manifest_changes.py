"""A delta writes little, and many deltas still leave few manifests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from tests.support.tables.inventories import inventory
from windrow_core.files.rows import inventory_schema
from windrow_service.inventory.errors import InvalidInventoryError
from windrow_service.inventory.manifests.changes import (
    ChangePlan,
    FileChange,
    apply_change,
    plan_change,
    replace_files,
)
from windrow_service.inventory.manifests.encoding import Manifest, cut_files, decode_manifest
from windrow_service.inventory.manifests.live_files import merge_files


class Table:
    """The stored manifests of a table, and the number of rows that each change wrote."""

    def __init__(self, paths: Sequence[str], manifest_files: int) -> None:
        self.manifest_files = manifest_files
        self.decoded: dict[str, pa.Table] = {}
        self.written: list[int] = []
        self.manifests: list[Manifest] = []
        self.keep(cut_files(files(paths), manifest_files))

    def keep(self, manifests: Sequence[Manifest]) -> None:
        self.written.append(0)
        self.manifests = []
        for manifest in manifests:
            if manifest.data is not None:
                self.decoded[manifest.manifest_id] = decode_manifest(manifest.data)
                self.written[-1] += len(self.decoded[manifest.manifest_id])
            self.manifests.append(replace(manifest, data=None))

    def change(
        self, added: Sequence[str] = (), removed: Sequence[str] = (), size: int = 1
    ) -> ChangePlan:
        rows = pa.table({"path": pa.array(removed, pa.string()), "row": range(len(removed))})
        delta = FileChange(added=files(added, size), removed=rows)
        plan = plan_change(self.manifests, delta, manifest_files=self.manifest_files)
        applied = apply_change(
            self.manifests,
            delta,
            plan,
            lambda manifest, _: self.decoded[manifest.manifest_id],
            manifest_files=self.manifest_files,
        )
        self.keep(applied.manifests)
        return plan

    @property
    def counts(self) -> list[int]:
        return [manifest.file_count for manifest in self.manifests]

    @property
    def paths(self) -> list[str]:
        tables = [self.decoded[manifest.manifest_id] for manifest in self.manifests]
        merged = merge_files(tables, [manifest.removed for manifest in self.manifests])
        paths: list[str] = merged["path"].to_pylist()
        return paths


def files(paths: Sequence[str], size: int = 1) -> pa.Table:
    return inventory([size] * len(paths), paths=paths or None)


def names(*numbers: int) -> list[str]:
    return [f"f{number:03d}" for number in numbers]


@pytest.fixture
def table() -> Table:
    """Return a table of three manifests of ten files."""
    return Table(names(*range(30)), manifest_files=10)


def test_a_new_file_makes_a_new_manifest_and_touches_no_other(table: Table) -> None:
    before = [manifest.manifest_id for manifest in table.manifests]

    plan = table.change(["f012x"])

    assert plan.looked_up == (1,)
    assert (table.counts, table.written[-1]) == ([10, 10, 1, 10], 1)
    assert [table.manifests[at].manifest_id for at in (0, 1, 3)] == before


def test_a_removed_file_is_noted_and_nothing_is_written(table: Table) -> None:
    table.change(removed=["f012"])

    assert (table.counts, table.written[-1]) == ([10, 9, 10], 0)
    assert table.manifests[1].removed.tolist() == [2]
    assert table.manifests[1].removed.dtype == np.int32
    assert table.manifests[1].range["size_bytes"].to_pylist() == [9]


def test_a_file_that_is_added_again_replaces_the_one_before(table: Table) -> None:
    table.change(["f012"], size=5)

    assert (table.counts, table.written[-1]) == ([10, 9, 1, 10], 1)
    assert table.paths == names(*range(30))


def test_a_removed_file_can_be_added_again_but_not_removed_again(table: Table) -> None:
    table.change(removed=["f012"])
    with pytest.raises(InvalidInventoryError, match=r"row 1: 'f012' cannot be removed, because"):
        table.change(removed=["f001", "f012"])
    table.change(["f012"])
    table.change(removed=["f012"])

    assert table.counts == [10, 9, 10]


def test_a_delta_outside_all_manifests_reads_none(table: Table) -> None:
    assert table.change(["a", "z"]).read == []


def test_a_manifest_that_lost_all_its_files_is_dropped(table: Table) -> None:
    table.change(removed=names(*range(10, 20)))

    assert table.counts == [10, 10]


def test_a_manifest_that_lost_more_than_a_quarter_is_rewritten_by_the_next_delta(
    table: Table,
) -> None:
    table.change(removed=names(10, 11, 12))
    assert table.written[-1] == 0

    table.change(["z"])

    assert table.written[-1] == 1 + 7
    assert [len(manifest.removed) for manifest in table.manifests] == [0] * 4


def test_more_files_than_a_manifest_holds_are_cut_evenly(table: Table) -> None:
    table.change([f"z{number:02d}" for number in range(25)])

    assert table.counts == [10, 10, 10, 8, 8, 9]


def test_a_file_with_unchanged_size_and_time_keeps_unmentioned_statistics() -> None:
    schema = inventory_schema(pa.schema([("x", pa.int32())]), pa.schema([]))

    def described(hosts: list[str], low: int | None) -> pa.Table:
        row = {**files(["a"]).to_pylist()[0], "hosts": hosts}
        row["stats"] = {"x": {"min": low, "max": low, "null_count": None}}
        return pa.Table.from_pylist([row], schema=schema)

    (before,) = cut_files(described(["h"], 7))
    removed = pa.table({"path": pa.array([], pa.string()), "row": pa.array([], pa.int64())})
    assert before.data is not None
    decoded = decode_manifest(before.data)

    for hosts, manifests_written in ((["h"], 0), (["other"], 1)):
        delta = FileChange(added=described(hosts, None), removed=removed, carried=("stats",))
        plan = plan_change([before], delta)
        applied = apply_change([replace(before, data=None)], delta, plan, lambda *_: decoded)
        (after,) = applied.manifests
        assert (after.data is not None) == bool(manifests_written)
        if after.data is not None:
            assert decode_manifest(after.data).equals(described(hosts, 7))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path_of", "writes"),
    [
        pytest.param(lambda delta: f"z{delta:05d}", 3, id="appended"),
        pytest.param(lambda delta: f"f{delta * 7919 % 3000:05d}-{delta}", 3, id="scattered"),
        # The rest of a manifest is written again each time it has lost a quarter.
        pytest.param(lambda delta: f"f{delta * 7919 % 3000:05d}", 6, id="replaced"),
    ],
)
def test_many_small_deltas_leave_few_manifests_and_write_each_row_a_few_times(
    path_of: Callable[[int], str], writes: int
) -> None:
    # In the proportions of 400 deltas of 150 files each on 450,000 files. More than 256 deltas, so
    # that merged manifests are merged again.
    table = Table([f"f{number:05d}" for number in range(3000)], manifest_files=333)
    deltas = 400
    counts = []

    for delta in range(deltas):
        table.change([path_of(delta)], size=2 + delta)
        counts.append(len(table.manifests))

    # Each row is written in its delta, in a merge of 16, and in a merge of 256.
    assert sum(table.written[1:]) <= writes * deltas
    # No delta writes more than about one full manifest.
    assert max(table.written[1:]) <= 333
    assert max(counts) <= 10 + deltas / (333 / 2) + 2 * 16
    assert sum(table.counts) == len(table.paths) == len(set(table.paths))


def test_full_manifests_that_pile_up_over_one_path_are_cut_again() -> None:
    table = Table(names(0, 999), manifest_files=4)
    for number in range(1, 9):
        table.change([f"f{part}{number:02d}" for part in (1, 3, 6, 8)])
    assert table.counts == [2, *[4] * 8]

    table.change(["z"])

    assert (table.written[-1], table.counts) == (1 + 34, [3, 4, 4, 4, 3, 4, 4, 4, 4, 1])
    edges = [(manifest.first_path, manifest.last_path) for manifest in table.manifests]
    assert all(left[1] < right[0] for left, right in pairwise(edges))


@pytest.mark.parametrize(
    ("kept", "written"),
    [(range(30), 0), ([*range(8), *range(10, 30)], 0), (range(22), 22)],
    ids=["all", "some", "few"],
)
def test_a_full_inventory_is_cut_again_once_more_than_a_quarter_is_gone(
    table: Table, kept: Sequence[int], written: int
) -> None:
    tables = [table.decoded[manifest.manifest_id] for manifest in table.manifests]

    table.keep(replace_files(table.manifests, tables, files(names(*kept)), manifest_files=10))

    assert table.paths == names(*kept)
    assert table.written[-1] == written


def test_a_full_inventory_with_other_columns_is_cut_again(table: Table) -> None:
    tables = [table.decoded[manifest.manifest_id] for manifest in table.manifests]
    wider = inventory_schema(pa.schema([("x", pa.int32())]), pa.schema([]))
    rows = [
        {**row, "stats": {"x": {"min": None, "max": None, "null_count": None}}}
        for row in files(names(*range(30))).to_pylist()
    ]

    table.keep(
        replace_files(
            table.manifests, tables, pa.Table.from_pylist(rows, schema=wider), manifest_files=10
        )
    )

    assert table.written[-1] == 30


def test_files_of_adjacent_manifests_are_not_copied() -> None:
    tables = [files(names(*range(at, at + 10))) for at in (10, 0, 20)]

    merged = merge_files(tables, [np.array([3], np.int32), *[np.empty(0, np.int32)] * 2])

    assert merged["path"].to_pylist() == names(*range(13), *range(14, 30))
    held = {table["size_bytes"].chunk(0).buffers()[1].address for table in tables}
    assert {chunk.buffers()[1].address for chunk in merged["size_bytes"].chunks if len(chunk)} == (
        held
    )


def test_only_the_requested_columns_are_decoded() -> None:
    (manifest,) = cut_files(files(names(1, 2)))
    assert manifest.data is not None

    some = decode_manifest(manifest.data, columns=("path", "row_count"))

    assert some.to_pydict() == {"path": names(1, 2), "row_count": [1, 1]}
