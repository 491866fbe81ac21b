"""Logs of Delta tables that are damaged, hostile, or require unknown features."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.support.tables.delta_tables import (
    DeltaLog,
    add,
    column,
    inline_vector,
    metadata,
    protocol,
    remove,
)
from windrow_service.delta import log as log_module
from windrow_service.delta.errors import DeltaFeatureError, DeltaLogError, DeltaVersionError
from windrow_service.delta.inventory import take_version
from windrow_service.delta.reading import (
    LoggedTable,
    LogState,
    in_path_order,
    read_since,
    read_version,
)
from windrow_service.inventory.footers.isolation import IsolatedExecutor
from windrow_service.inventory.progress import ProgressMeter

_COLUMNS = [column("id", "long")]
_VECTOR = inline_vector([1])


def _table(log: DeltaLog, **known: Any) -> LoggedTable:
    return LoggedTable(location=str(log.folder), **known)


def _read(log: DeltaLog, **known: Any) -> pa.Table:
    return in_path_order(str(log.folder), read_version(_table(log, **known), None).files)


def _log(folder: Path, *more: dict[str, Any], columns: Any = _COLUMNS) -> DeltaLog:
    log = DeltaLog(folder)
    log.commit(protocol(), metadata(columns), add("a.parquet", rows=1), *more)
    return log


@pytest.mark.parametrize(
    "path",
    [
        "../outside.parquet",
        "p=1/../../outside.parquet",
        "%2e%2e/outside.parquet",
        "p=1%2F..%2F..%2Foutside.parquet",
        "/etc/outside.parquet",
        "file:///etc/outside.parquet",
        "file:/etc/outside.parquet",
        "s3://elsewhere/outside.parquet",
        "p//outside.parquet",
        "./outside.parquet",
        "..",
        "",
        "p/",
        "a%00.parquet",
        "a%0A.parquet",
        "%FF.parquet",
        "http://example.com/outside.parquet",
    ],
)
def test_paths_that_lead_out_of_the_table_are_refused(path: str, tmp_path: Path) -> None:
    with pytest.raises(DeltaLogError, match="names a file in"):
        _read(_log(tmp_path, add(path)))


def test_files_outside_the_table_are_read_if_their_folder_is_allowed(tmp_path: Path) -> None:
    home, beside = tmp_path / "table", tmp_path / "beside"
    beside.mkdir()
    log = _log(home, add(f"file://{beside}/b%20c.parquet"), add(f"{home}/p=1/d.parquet"))

    paths = _read(log, roots=(str(beside.resolve()),))["path"].to_pylist()

    assert paths == [f"{beside.resolve()}/b c.parquet", "a.parquet", "p=1/d.parquet"]


@pytest.mark.parametrize(
    ("said", "named"),
    [
        (protocol(4), "version 4"),
        (protocol(3, "deletionVectors", "variantType"), "'variantType'"),
        (protocol(3, "catalogManaged"), "'catalogManaged'"),
        (metadata([column("v", "variant")]), "'variant'"),
        (metadata([column("v", {"type": "array", "elementType": "interval"})]), "'interval'"),
    ],
)
def test_unknown_features_are_refused_by_name(
    said: dict[str, Any], named: str, tmp_path: Path
) -> None:
    with pytest.raises(DeltaFeatureError, match=named):
        _read(_log(tmp_path, said))


@pytest.mark.parametrize(
    "line",
    [
        '{"add": {"path": "b.parquet", "size": "many"}}',
        '{"add": {"path": "b.parquet"}}',
        '{"add": {"size": 1, "modificationTime": 1, "partitionValues": {}}}',
        json.dumps(add("b.parquet", size=-1)),
        json.dumps({**add("b.parquet"), **remove("a.parquet")}),
        json.dumps(add("b.parquet")) * 2,
        '{"add": [1]}',
        "[1, 2]",
        "not JSON",
        '{"add": ',
        "[" * 100_000,
        json.dumps(metadata([column("id", "long"), column("ID", "long")])),
        json.dumps(metadata(_COLUMNS, ["other"])),
        json.dumps(metadata([column("id", {"type": "struct", "fields": []})], ["id"])),
        '{"metaData": {"schemaString": "[[["}}',
        '{"metaData": {"schemaString": ' + json.dumps("[" * 100_000) + "}}",
        json.dumps(add("a.parquet", deletionVector=_VECTOR)),
        json.dumps(add("b.parquet", deletionVector={**_VECTOR, "storageType": "x"})),
        json.dumps(add("b.parquet", deletionVector={**_VECTOR, "sizeInBytes": 10**6})),
        json.dumps(add("b.parquet", deletionVector={**_VECTOR, "sizeInBytes": -1})),
        json.dumps(add("b.parquet", deletionVector={**_VECTOR, "pathOrInlineDv": "\u00e9" * 20})),
        json.dumps(
            add("b.parquet", deletionVector={**_VECTOR, "storageType": "u", "offset": 1})
            | {"add": {}}
        ),
        json.dumps(
            add(
                "b.parquet",
                deletionVector={
                    "storageType": "u",
                    "pathOrInlineDv": "../../../" + "0" * 20,
                    "offset": 1,
                    "sizeInBytes": 30,
                },
            )
        ),
        json.dumps(
            add(
                "b.parquet",
                deletionVector={
                    "storageType": "p",
                    "pathOrInlineDv": "/etc/passwd",
                    "offset": 1,
                    "sizeInBytes": 30,
                },
            )
        ),
    ],
)
def test_damaged_lines_end_the_read_with_an_error_that_names_the_table(
    line: str, tmp_path: Path
) -> None:
    log = _log(tmp_path)
    log.commit()
    log.commit_path(1).write_text(line)

    with pytest.raises(DeltaLogError) as refused:
        _read(log)

    assert str(tmp_path) in str(refused.value)
    assert len(str(refused.value)) < 1_000


def test_deep_nesting_in_unread_fields_does_no_harm(tmp_path: Path) -> None:
    log = _log(tmp_path)
    log.commit()
    log.commit_path(1).write_text('{"txn": ' + "[" * 500_000 + "]" * 500_000 + "}")

    assert len(_read(log)) == 1


def test_lines_and_logs_beyond_their_limits_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "_MAX_COMMIT_BYTES", 5_000)
    log = _log(tmp_path, add("b.parquet", tags={"long": "x" * 5_000}))

    with pytest.raises(DeltaLogError, match="more than 5,000 bytes"):
        _read(log)


@pytest.mark.parametrize(
    ("write", "why"),
    [
        (lambda path: path.write_bytes(b"PAR1 and no more"), "cannot be read"),
        (lambda path: pq.write_table(pa.table({"add": [1]}), path), "without protocol"),
        (
            lambda path: pq.write_table(pa.table({"add": [{"path": 1.5}]}), path),
            "without|other types",
        ),
        (lambda path: pq.write_table(pa.table({"x": [1]}), path), "without protocol"),
        (
            lambda path: pq.write_table(pa.table({"protocol": [{"minReaderVersion": "a"}]}), path),
            "types",
        ),
    ],
)
def test_damaged_checkpoints_are_refused(
    write: Callable[[Path], None], why: str, tmp_path: Path
) -> None:
    log = _log(tmp_path)
    write(log.log / f"{0:020}.checkpoint.parquet")

    with pytest.raises(DeltaLogError, match=why):
        _read(log)


@pytest.mark.parametrize(
    "pointer",
    [
        "",
        "{",
        "[" * 100_000,
        '{"version": -1}',
        '{"version": 7}',
        '{"version": 0, "parts": 1e9}',
        '{"version": 10, "parts": 2}',
        '{"version": 0, "v2Checkpoint": {"path": "../../x.json"}}',
        '"x"',
    ],
)
def test_a_pointer_to_no_checkpoint_is_ignored(pointer: str, tmp_path: Path) -> None:
    log = _log(tmp_path)
    (log.log / "_last_checkpoint").write_text(pointer)

    assert len(_read(log)) == 1


def test_gaps_and_missing_beginnings_are_refused(tmp_path: Path) -> None:
    log = _log(tmp_path)
    log.commit(add("b.parquet"))
    log.commit(add("c.parquet"))
    log.commit_path(0).unlink()

    with pytest.raises(DeltaLogError, match="lacks the beginning"):
        _read(log)


def test_a_gap_in_the_log_is_refused_from_the_missing_commit_on(tmp_path: Path) -> None:
    log = _log(tmp_path)
    for name in "bcd":
        log.commit(add(f"{name}.parquet"))
    log.commit_path(2).unlink()

    assert [len(read_version(_table(log), version).files) for version in (0, 1)] == [1, 2]
    for version in (None, 2, 3):
        with pytest.raises(DeltaLogError, match=f"{2:020}.json. of its log is missing"):
            read_version(_table(log), version)


def test_a_checkpoint_far_ahead_of_the_commits_that_the_log_points_at_is_the_newest_version(
    tmp_path: Path,
) -> None:
    log = _log(tmp_path)
    _write_checkpoint(log)
    (log.log / "_last_checkpoint").write_text('{"version": 0, "size": 3}')
    log.commit(add("b.parquet"))
    known = read_version(_table(log), None).state
    log.version = 9998
    log.commit(protocol(3, "catalogOwned"), metadata(_COLUMNS))
    shutil.copy(log.log / f"{0:020}.checkpoint.parquet", log.log / f"{9999:020}.checkpoint.parquet")

    assert read_version(_table(log), None).state.version == 9999
    assert read_since(_table(log), known) is None
    log.commit(protocol(3, "catalogOwned"))
    with pytest.raises(DeltaFeatureError, match="'catalogOwned'"):
        read_version(_table(log), None)


def test_a_log_that_was_written_anew_is_not_followed(tmp_path: Path) -> None:
    log = _log(tmp_path)
    log.commit(add("b.parquet"))
    known = read_version(_table(log), None).state
    for path in log.log.iterdir():
        path.unlink()
    log.version = -1
    log.commit(protocol(), metadata(_COLUMNS))

    assert read_since(_table(log), known) is None
    for _ in range(3):
        log.commit(add("c.parquet"))
    assert read_since(_table(log), known) is None


def test_missing_versions_are_refused_with_the_existing_ones(tmp_path: Path) -> None:
    log = _log(tmp_path)
    log.commit(add("b.parquet"))

    with pytest.raises(DeltaVersionError, match="the newest version is 1"):
        read_version(_table(log), 2)
    with pytest.raises(DeltaVersionError, match="numbers from 0"):
        take_version(_table(log), "main", None, ProgressMeter())
    with pytest.raises(DeltaLogError, match="has no log"):
        read_version(LoggedTable(location=str(tmp_path / "_delta_log")), None)


def test_the_loss_of_the_process_that_reads_a_log_is_an_error_of_the_table(tmp_path: Path) -> None:
    log = _log(tmp_path)
    with IsolatedExecutor(1) as executor:
        executor.kill()

        with pytest.raises(DeltaLogError, match="that read it was killed"):
            take_version(_table(log), None, None, ProgressMeter(), executor)


def _write_checkpoint(log: DeltaLog) -> None:
    DeltaTable(log.folder).create_checkpoint()
    (log.log / "_last_checkpoint").unlink()


def test_a_state_of_another_kind_is_ignored() -> None:
    for encoded in (None, b"", b"{}", b'{"delta": {"version": 1}}', b"\x00"):
        assert LogState.of(encoded) is None


def test_a_log_that_was_cleaned_up_meanwhile_is_read_anew(tmp_path: Path) -> None:
    log = _log(tmp_path)
    known = read_version(_table(log), None).state
    for name in "bcde":
        log.commit(add(f"{name}.parquet"))
    _write_checkpoint(log)
    (log.log / "_last_checkpoint").write_text('{"version": 4, "size": 5}')
    log.commit_path(3).unlink()

    assert read_since(_table(log), known) is None


def test_a_table_with_new_columns_is_read_anew(tmp_path: Path) -> None:
    log = _log(tmp_path)
    known = read_version(_table(log), None).state
    log.commit(metadata([*_COLUMNS, column("more", "string")]))

    assert read_since(_table(log), known) is None


_VECTOR_FILE = {"storageType": "u", "pathOrInlineDv": "ab" * 11, "offset": 1, "sizeInBytes": 9}


def test_text_that_is_no_utf8_is_refused_by_the_name_of_its_file(tmp_path: Path) -> None:
    log = _log(tmp_path, {"commitInfo": {"engineInfo": "abab"}})
    commit = log.commit_path(0)
    commit.write_bytes(commit.read_bytes().replace(b'"abab', b'"\x99bab'))

    with pytest.raises(DeltaLogError, match=rf"{commit.name}' .* not UTF-8"):
        _read(log)


def test_damage_that_only_parsing_shows_is_refused_and_the_given_process_stays(
    tmp_path: Path,
) -> None:
    vector = {**_VECTOR_FILE, "cardinality": 1}
    _log(tmp_path, add("b.parquet", deletionVector=vector))
    checkpoint = tmp_path / "_delta_log" / f"{0:020}.checkpoint.parquet"
    action: dict[str, Any] = metadata(_COLUMNS)["metaData"]
    whole = {name: value for name, value in action.items() if not isinstance(value, dict)}
    add_one = {"path": "b", "size": 1, "modificationTime": 0, "deletionVector": vector}
    rows = [{**protocol(), "metaData": whole, "add": None}, {"add": add_one}]
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, checkpoint, compression="none", use_dictionary=False)
    checkpoint.write_bytes(checkpoint.read_bytes().replace(b"abababab", b"\x99bababab"))

    with IsolatedExecutor(1) as executor:
        with pytest.raises(DeltaLogError, match="UTF8"):
            take_version(LoggedTable(location=str(tmp_path)), None, None, ProgressMeter(), executor)
        assert executor.submit(divmod, 7, 2).result() == (3, 1)
