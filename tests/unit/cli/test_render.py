"""Rendering: values in, text out."""

from __future__ import annotations

from datetime import datetime, timezone

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from tests.support.laws import examples
from windrow_calls.terminal.bars import Bar, bar_text
from windrow_calls.terminal.histogram import SizeBin, file_sizes, size_bins
from windrow_calls.terminal.listings import PIPE_WIDTH, ListTable
from windrow_calls.terminal.render import bin_label, drawn, drawn_list, histogram, message
from windrow_core.cards import Layout, seconds_text
from windrow_core.models import (
    LogFigures,
    RefreshProgress,
    RefreshStatus,
    SnapshotInfo,
    TableDefinition,
    TableInfo,
)
from windrow_core.sizes import size_text

KIB, MIB = 2**10, 2**20


def _text(renderable: RenderableType, width: int = 100) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def _lines(renderable: RenderableType, width: int) -> list[str]:
    return _text(renderable, width).splitlines()


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1,023 B"),
        (1024, "1 KB"),
        (11 * KIB + 205, "11.2 KB"),
        (512 * KIB, "512 KB"),
        (MIB - 1, "1 MB"),
        (64 * MIB, "64 MB"),
        (2**50 * 3, "3 PB"),
    ],
)
def test_a_size_is_written_with_its_unit(size_bytes: int, text: str) -> None:
    assert size_text(size_bytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0123, "0.012 s"), (0.9999, "1.00 s"), (9.999, "10.0 s"), (12.34, "12.3 s"), (180, "180 s")],
)
def test_seconds_keep_three_digits(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("low_bytes", "label"), [(8 * KIB, "8\u201316 KB"), (512, "512 B\u20131 KB"), (1, "1\u20132 B")]
)
def test_a_bin_names_its_unit_once_if_both_ends_share_it(low_bytes: int, label: str) -> None:
    assert bin_label(SizeBin(low_bytes, 1)) == label


def test_bins_of_sizes_are_powers_of_two() -> None:
    sizes = pa.array([1023, 1024, 2047, 8192])

    assert size_bins(sizes) == [
        SizeBin(512, 1),
        SizeBin(1024, 2),
        SizeBin(2048, 0),
        SizeBin(4096, 0),
        SizeBin(8192, 1),
    ]


@examples(65)
@given(
    st.lists(
        st.integers(1, 2**53 - 1)
        | st.sampled_from([2**n - m for n in range(1, 53) for m in (0, 1)]),
        min_size=1,
    )
)
def test_every_size_lies_in_the_bin_that_counts_it(sizes: list[int]) -> None:
    bins = size_bins(pa.array(sizes, pa.int64()))

    assert [entry.count for entry in bins] == [
        sum(entry.low_bytes <= size < entry.low_bytes * 2 for size in sizes) for entry in bins
    ]
    assert sum(entry.count for entry in bins) == len(sizes)


def test_no_sizes_make_no_bins() -> None:
    assert size_bins(pa.array([], pa.int64())) == []


def test_the_largest_bar_fills_the_width_and_the_smallest_still_shows() -> None:
    assert bar_text(10_000, 10_000, 40) == "█" * 40
    assert bar_text(5_000, 10_000, 40) == "█" * 20
    assert bar_text(1, 10_000, 40) == "▏"
    assert bar_text(0, 10_000, 40) == ""


def test_a_histogram_has_a_row_for_each_bin() -> None:
    lines = _text(histogram([SizeBin(4096, 3), SizeBin(8192, 12_345)], "file")).splitlines()

    assert [line.split("KB")[0].strip() for line in lines[2:]] == ["4\u20138", "8\u201316"]
    assert lines[3].split()[-2:] == ["12,345", "█" * 30]


def test_bars_are_as_long_as_the_room_allows_and_pipes_get_none() -> None:
    def table() -> ListTable:
        bars = ListTable(("name", "files>", ""), show_edge=False)
        bars.add_row("a", "3", Bar(3, 4, ""))
        bars.add_row("b", "4", Bar(4, 4, ""))
        return bars

    narrow, wide = (_lines(table(), width)[2:] for width in (30, 80))
    assert [line.count("█") for line in wide] == [22, 30]
    assert [line.count("█") for line in narrow] == [11, 15]
    assert _lines(table(), PIPE_WIDTH) == ["name\tfiles", "a\t3", "b\t4"]


def test_a_list_that_nothing_more_can_be_dropped_of_is_wrapped_and_not_cut() -> None:
    texts = [("name", "published at", "state"), ("sales.events", "2026-11-27 04:39:55", "staging")]
    table = ListTable(texts[0], show_edge=False)
    table.add_row(*texts[1])

    lines = _lines(table, 24)
    assert sorted("".join(lines).replace("─", "").replace(" ", "")) == sorted(
        "".join(map("".join, texts)).replace(" ", "")
    )
    assert max(map(len, lines)) <= 24


def test_text_that_looks_like_markup_is_shown_verbatim() -> None:
    assert _text(message("table [bold]x[/bold]")).strip() == "table [bold]x[/bold]"


def _columns(width: int) -> list[str]:
    table = ListTable(
        ("id", "table…", "filter…", "trouble…", "size>"),
        Layout(("size",), {"table, filter": ("table", "filter")}),
        show_edge=False,
    )
    table.add_row("1", "sales.events", "ds >= '2026-11-01'", "", "5 KB")
    return _lines(table, width)


def test_columns_stand_below_each_other_and_then_go_where_there_is_no_room() -> None:
    assert [_columns(width)[0].split() for width in (50, 40, 25)] == [
        ["id", "table", "filter", "size"],
        ["id", "table,", "filter", "size"],
        ["id", "table,", "filter"],
    ]
    assert [line.strip() for line in _columns(40)[2:]] == [
        "1    sales.events         5 KB",
        "ds >= '2026-11-01'",
    ]


def test_cells_in_a_pipe_are_separated_by_tabs_and_an_empty_one_has_its_place() -> None:
    assert _columns(PIPE_WIDTH) == [
        "id\ttable\tfilter\ttrouble\tsize",
        "1\tsales.events\tds >= '2026-11-01'\t\t5 KB",
    ]


def _groups(*groups: list[tuple[str, int]]) -> pa.Table:
    split = pa.struct([("path", pa.string()), ("size_bytes", pa.int64())])
    splits = [[{"path": path, "size_bytes": size} for path, size in group] for group in groups]
    return pa.table({"splits": pa.array(splits, pa.list_(split))})


def test_a_file_cut_into_splits_counts_once() -> None:
    groups = _groups([("a", 100), ("b", 7)], [("a", 100)])

    assert sorted(file_sizes(groups).to_pylist()) == [7, 100]


def test_a_plan_of_no_groups_has_no_files() -> None:
    assert file_sizes(_groups()).to_pylist() == []
    assert file_sizes(_groups().slice(0, 0)).to_pylist() == []


def test_a_refresh_says_how_many_files_it_skipped() -> None:
    now = datetime(2026, 11, 1, tzinfo=timezone.utc)
    status = RefreshStatus(
        refresh_id="r",
        table="sales.events",
        status="done",
        started_at=now,
        seconds=1,
        progress=RefreshProgress(phase="done", files_empty=1_234, files_uncommitted=5),
        changed=False,
        snapshot=SnapshotInfo(
            snapshot_id=1,
            created_at=now,
            file_count=1,
            row_count=1,
            size_bytes=1,
            columns=[],
            partition_columns=[],
            manifest_count=1,
        ),
    )
    console = Console(width=200)

    with console.capture() as said:
        console.print(drawn(status))

    assert "skipped   1,234 files of 0 bytes" in said.get()
    assert "skipped   5 uncommitted files" in said.get()


def test_a_table_with_a_log_is_shown_with_the_figures_of_its_log() -> None:
    now = datetime(2026, 11, 1, tzinfo=timezone.utc)
    figures = LogFigures(
        committed_at=now,
        versions=13,
        small_files=11,
        small_bytes=5 * MIB,
        delete_files=2,
        deleted_rows=1_234,
    )
    snapshot = SnapshotInfo(
        snapshot_id=4,
        created_at=now,
        file_count=12,
        row_count=1,
        size_bytes=1,
        columns=[],
        partition_columns=[],
        manifest_count=1,
        table_version="87",
        log=figures,
    )
    table = TableInfo(
        name="sales.events",
        definition=TableDefinition(location="/lake/events", format="delta"),
        created_at=now,
        updated_at=now,
        current_snapshot=snapshot,
    )

    shown = _text(drawn(table))

    assert "87, committed at 2026-11-01 00:00:00 UTC; the log has 13 versions" in shown
    assert "11 of 12 files, 5 MB, are under 32 MB" in shown
    assert "1,234, by 2 deletion vectors or delete files" in shown
    assert "87" in _text(drawn_list([snapshot], "none"))
