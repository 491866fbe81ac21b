"""Laws of manifests: after any changes they hold the current files, each once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_core.files.rows import inventory_schema
from windrow_service.inventory.errors import InvalidInventoryError
from windrow_service.inventory.manifests.changes import (
    Applied,
    FileChange,
    apply_change,
    plan_change,
    replace_files,
)
from windrow_service.inventory.manifests.encoding import Manifest, cut_files, decode_manifest
from windrow_service.inventory.manifests.live_files import merge_files
from windrow_service.planner.plan import plan_groups
from windrow_service.planner.policy import Policy
from windrow_service.planner.pruning.expressions import Comparison
from windrow_service.planner.pruning.partitions import Numbering, PartitionTuples
from windrow_service.planner.pruning.ranges import join_ranges, prune_manifests
from windrow_service.wire.groups import ArrowGroups

SCHEMA = inventory_schema(
    pa.schema([("x", pa.int32()), ("f", pa.float64())]), pa.schema([("p", pa.float64())])
)
PATHS = st.sampled_from([f"{first}{second}" for first in "aBé/" for second in "0123456789"])


@st.composite
def file_rows(draw: st.DrawFn) -> dict[str, Any]:
    low = draw(st.integers(0, 3))
    return {
        "size_bytes": draw(st.integers(1, 3)),
        "mtime_ns": draw(st.integers(0, 1)),
        "row_count": draw(st.integers(0, 2)),
        "bucket": draw(st.none() | st.integers(0, 1)),
        "hosts": draw(st.lists(st.sampled_from("ab"), max_size=2)),
        "row_group_offsets": [4],
        "delete_count": 0,
        "delete_bytes": 0,
        "stats_see_nan": False,
        "partition": {"p": draw(st.sampled_from([None, 1.0, math.nan]))},
        "stats": {
            "x": {"min": low, "max": low + 1, "null_count": draw(st.sampled_from([None, 0]))},
            "f": {"min": None, "max": None, "null_count": None},
        },
    }


def table_of(files: Mapping[str, Mapping[str, Any]]) -> pa.Table:
    rows = [{"path": path, **files[path]} for path in sorted(files, key=str.encode)]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def delta_of(added: Mapping[str, Mapping[str, Any]], removed: Sequence[str]) -> FileChange:
    rows = [{"path": path, "row": row} for row, path in enumerate(removed)]
    schema = pa.schema([("path", pa.string()), ("row", pa.int64())])
    return FileChange(added=table_of(added), removed=pa.Table.from_pylist(rows, schema=schema))


class Store:
    """The stored manifests of a table, and the files that must be in them."""

    def __init__(self, manifest_files: int) -> None:
        self.manifest_files = manifest_files
        self.files: dict[str, dict[str, Any]] = {}
        self.manifests: tuple[Manifest, ...] = ()
        self.bodies: dict[str, bytes] = {}

    def keep(self, manifests: Sequence[Manifest]) -> None:
        for manifest in manifests:
            if manifest.data is not None:
                self.bodies[manifest.manifest_id] = manifest.data
        self.manifests = tuple(replace(manifest, data=None) for manifest in manifests)

    def decode(self, manifest: Manifest, columns: Sequence[str] | None = None) -> pa.Table:
        return decode_manifest(self.bodies[manifest.manifest_id], columns=columns)

    def change(self, delta: FileChange) -> Applied:
        plan = plan_change(self.manifests, delta, manifest_files=self.manifest_files)
        readable = {self.manifests[at].manifest_id for at in plan.read}

        def decode(manifest: Manifest, columns: Sequence[str] | None) -> pa.Table:
            assert manifest.manifest_id in readable
            return self.decode(manifest, columns)

        applied = apply_change(
            self.manifests, delta, plan, decode, manifest_files=self.manifest_files
        )
        again = apply_change(
            self.manifests, delta, plan, decode, manifest_files=self.manifest_files
        )
        assert [m.manifest_id for m in again.manifests] == [
            m.manifest_id for m in applied.manifests
        ]
        return applied

    def live(self) -> pa.Table:
        if not self.manifests:
            return SCHEMA.empty_table()
        tables = [self.decode(manifest) for manifest in self.manifests]
        return merge_files(tables, [manifest.removed for manifest in self.manifests])

    def check(self) -> None:
        """Check that the manifests hold exactly these files, and that their ranges match."""
        # Compared as text, since NaN does not equal itself.
        assert str(self.live().to_pylist()) == str(table_of(self.files).to_pylist())
        for manifest in self.manifests:
            table = self.decode(manifest)
            rows = merge_files([table], [manifest.removed])
            counts = [manifest.range[name][0].as_py() for name in ("file_count", "size_bytes")]
            assert counts == [len(rows), sum(rows["size_bytes"].to_pylist())]
            assert manifest.file_count == len(rows) > 0
            assert len(table) <= self.manifest_files
            assert (manifest.first_path, manifest.last_path) == (
                table["path"][0].as_py(),
                table["path"][-1].as_py(),
            )
        self.check_partitions()
        ids = [manifest.manifest_id for manifest in self.manifests]
        assert len(set(ids)) == len(ids)
        assert [m.first_path for m in self.manifests] == sorted(
            m.first_path for m in self.manifests
        )

    def check_partitions(self) -> None:
        """Check that the numbered partitions are the values of exactly these files."""
        tuples = [PartitionTuples.of(self.decode(one), one.removed) for one in self.manifests]
        schema = pa.schema([("p", pa.float64())])
        partitions = Numbering.of(tuples, schema).partitions.to_pylist()
        values = [str(row["partition"]["p"]) for row in self.files.values()]
        # Null comes first and NaN last.
        assert [(str(one["p"]), one["file_count"]) for one in partitions] == [
            (value, values.count(value)) for value in ("None", "1.0", "nan") if value in values
        ]


CHANGES = st.lists(
    st.tuples(
        st.dictionaries(PATHS, file_rows(), max_size=6),
        st.lists(st.integers(0, 50), max_size=4),
        st.sampled_from(["delta", "delta", "delta", "whole"]),
    ),
    max_size=12,
)


@pytest.mark.slow
@examples(25)
@given(CHANGES, st.integers(1, 9))
def test_after_any_changes_the_manifests_hold_exactly_the_current_files(
    changes: list[Any], manifest_files: int
) -> None:
    store = Store(manifest_files)
    for added, removed_at, kind in changes:
        present = sorted(store.files.keys() - added.keys())
        removed = sorted({present[at % len(present)] for at in removed_at}) if present else []
        before = {path: str(row) for path, row in store.files.items()}
        for path in removed:
            del store.files[path]
        store.files.update(added)
        now = {path: str(row) for path, row in store.files.items()}
        if kind == "whole":
            tables = [store.decode(manifest) for manifest in store.manifests]
            store.keep(
                replace_files(
                    store.manifests,
                    tables,
                    table_of(store.files),
                    manifest_files=manifest_files,
                )
            )
        else:
            applied = store.change(delta_of(added, removed))
            store.keep(applied.manifests)
            assert applied.files_added == len(now.items() - before.items())
            assert applied.files_removed == len(before.items() - now.items())
        store.check()


@examples(25)
@given(st.dictionaries(PATHS, file_rows(), max_size=30), st.integers(1, 9), st.data())
def test_a_change_without_effect_keeps_every_manifest(
    files: dict[str, Any], manifest_files: int, data: st.DataObject
) -> None:
    store = Store(manifest_files)
    store.keep(cut_files(table_of(files), manifest_files))
    same = data.draw(st.sets(st.sampled_from(sorted(files)))) if files else set()

    applied = store.change(delta_of({path: files[path] for path in same}, []))
    tables = [store.decode(manifest) for manifest in store.manifests]
    replaced = replace_files(
        store.manifests, tables, table_of(files), manifest_files=manifest_files
    )

    for manifests in (applied.manifests, replaced):
        assert [m.manifest_id for m in manifests] == [m.manifest_id for m in store.manifests]
    assert (applied.files_added, applied.files_removed, applied.rows_gained) == (0, 0, 0)


@pytest.mark.slow
@examples(30)
@given(CHANGES, st.integers(1, 9), st.integers(0, 4))
def test_a_plan_does_not_depend_on_the_distribution_of_files_over_manifests(
    changes: list[Any], manifest_files: int, bound: int
) -> None:
    store = Store(manifest_files)
    for added, _, _ in changes:
        store.files.update(added)
        store.keep(store.change(delta_of(added, [])).manifests)
    files = table_of(store.files)
    expression = Comparison("lt", "x", bound)
    kept, _ = prune_manifests(join_ranges([m.range for m in store.manifests]), expression)
    chosen = [manifest for manifest, is_kept in zip(store.manifests, kept, strict=True) if is_kept]
    codec = ArrowGroups()

    for expected, manifests in ((None, store.manifests), (expression, chosen)):
        tables = [store.decode(manifest) for manifest in manifests] or [SCHEMA.empty_table()]
        merged = merge_files(
            tables, [manifest.removed for manifest in manifests] or [np.empty(0, np.int32)]
        )
        assert codec.encode(plan_groups(merged, expected, Policy())) == codec.encode(
            plan_groups(files, expected, Policy())
        )


@examples(40)
@given(st.sets(PATHS, min_size=1), st.sets(PATHS, min_size=1))
def test_a_missing_file_to_remove_is_named_with_its_row(
    present: set[str], removed: set[str]
) -> None:
    store = Store(5)
    store.keep(cut_files(table_of(dict.fromkeys(present, ROW)), 5))
    paths = sorted(removed)
    absent = [at for at, path in enumerate(paths) if path not in present]

    if not absent:
        store.change(delta_of({}, paths))
        return
    with pytest.raises(InvalidInventoryError) as raised:
        store.change(delta_of({}, paths))

    named = f"column 'path', row {absent[0]}: {paths[absent[0]]!r} cannot be removed"
    assert named in str(raised.value)


ROW = {
    "size_bytes": 1,
    "mtime_ns": 1,
    "row_count": 1,
    "hosts": [],
    "row_group_offsets": [],
    "delete_count": 0,
    "delete_bytes": 0,
    "stats_see_nan": False,
    "partition": {"p": None},
    "stats": {name: {"min": None, "max": None, "null_count": None} for name in "xf"},
}
