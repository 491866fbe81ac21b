"""Files as the scan tasks of Iceberg's REST protocol."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.arrays import flat
from windrow_service.engines.manifests import absolute_paths
from windrow_service.planner.pruning.bounds import Bools


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """Files of which tasks are made.

    Attributes:
        uris: n files.
        partitions: For each, its partition spec and values, as fields in JSON.
        size_bytes: For each, its length.
        row_counts: For each, its number of rows, deleted ones among them.
        deletes: For each, what names deleted rows of it, as JSON.
        others: For each, further fields in JSON, each after a comma; empty for none at all.
    """

    uris: Sequence[str]
    partitions: Sequence[str]
    size_bytes: Sequence[int]
    row_counts: Sequence[int]
    deletes: Sequence[Sequence[bytes]]
    others: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ScanTasks:
    """Tasks, and the deletes that they refer to by position.

    Attributes:
        files: A task for each file, as JSON.
    """

    files: list[bytes] = field(default_factory=list)
    _deletes: dict[bytes, int] = field(default_factory=dict)

    def to_json(self) -> bytes:
        """Return them as the fields of an answer."""
        return b'"delete-files":[%s],"file-scan-tasks":[%s]' % (
            b",".join(self._deletes),
            b",".join(self.files),
        )

    def add(self, files: TaskFiles, certain: Bools, residual: str | None) -> None:
        """Add a task for each of some files.

        Args:
            files: n files.
            certain: For each file, whether every row that is left is wanted.
            residual: The filter that the rows of the other files have to pass, as JSON; None for none.
        """
        # Always there: PyIceberg takes a task without one for a file that is wanted whole.
        left = "" if residual is None else f',"residual-filter":{residual}'
        whole = "" if residual is None else ',"residual-filter":true'
        self.files.extend(
            (
                f'{{"data-file":{{"content":"data","file-path":{json.dumps(uri)}'
                f',"file-format":"parquet",{partition},"file-size-in-bytes":{size}'
                f',"record-count":{rows}{more}}}{self._references(deletes)}{whole if is_whole else left}}}'
            ).encode()
            for uri, partition, size, rows, deletes, more, is_whole in zip(
                files.uris,
                files.partitions,
                files.size_bytes,
                files.row_counts,
                files.deletes,
                files.others or [""] * len(files.uris),
                certain.tolist(),
                strict=True,
            )
        )

    def _references(self, deletes: Iterable[bytes]) -> str:
        # Files of one answer may share a delete file.
        places = [str(self._deletes.setdefault(one, len(self._deletes))) for one in deletes]
        return f',"delete-file-references":[{",".join(places)}]' if places else ""


def described_files(files: pa.Table, location: str, puffin: tuple[str, int] | None) -> TaskFiles:
    """Return files of tables that the coordinator describes.

    Args:
        files: Files, with the columns `path`, `partition`, `row_count`, `size_bytes` and, if there
            is a Puffin file, `vector`; see `vectors.located`.
        location: The table's location.
        puffin: Path and length of the file with their deletion vectors; None if they have none.
    """
    uris = absolute_paths(files["path"], location).to_pylist()
    columns = [map(single_value, one.to_pylist()) for one in flat(files["partition"]).flatten()]
    values = zip(*columns, strict=True) if columns else ((),) * len(files)
    partitions = [partition_text(0, one) for one in values]
    deletes: list[list[bytes]] = [[] for _ in uris]
    if puffin is not None:
        vectors = flat(files["vector"]).to_pylist()
        for some, vector, *of_file in zip(deletes, vectors, uris, partitions, strict=True):
            if vector is not None:
                some.append(vector_text(puffin, of_file[0], of_file[1], **vector))
    return TaskFiles(
        uris,
        partitions,
        np.asarray(files["size_bytes"]).tolist(),
        np.asarray(files["row_count"]).tolist(),
        deletes,
    )


def own_files(files: pa.Table) -> TaskFiles:
    """Return files of Iceberg tables.

    Args:
        files: Files, with the columns `path`, `partition_key`, `row_count`, `size_bytes`, `first_row_id`,
            `row_group_offsets` and, if any file has some, `deletes`, as
            `usecases.engines.own_files` has them.
    """
    deletes: list[list[bytes]] = [[] for _ in range(len(files))]
    if "deletes" in files.column_names:
        lists = flat(files["deletes"])
        deletes_of = lists.flatten()
        rows = deletes_of.indices.unique()
        texts = {
            row: delete_text(one)
            for row, one in zip(
                rows.to_pylist(), deletes_of.dictionary.take(rows).to_pylist(), strict=True
            )
        }
        numbers = np.repeat(np.arange(len(files)), np.asarray(pc.list_value_length(lists)))
        for number, row in zip(numbers.tolist(), deletes_of.indices.to_pylist(), strict=True):
            deletes[number].append(texts[row])
    first_rows = files["first_row_id"].to_pylist()
    offsets = files["row_group_offsets"].to_pylist()
    return TaskFiles(
        files["path"].to_pylist(),
        [_own_partition(key) for key in flat(files["partition_key"]).to_pylist()],
        files["size_bytes"].to_pylist(),
        files["row_count"].to_pylist(),
        deletes,
        [
            (f',"split-offsets":{json.dumps(some)}' if some else "")
            + (f',"first-row-id":{first}' if first is not None else "")
            for some, first in zip(offsets, first_rows, strict=True)
        ],
    )


def delete_text(file: Mapping[str, Any]) -> bytes:
    """Return a delete file or a deletion vector of an Iceberg table as JSON.

    Args:
        file: A row of `iceberg.manifests.PLANNED_DELETES`.
    """
    partition, kind = _own_partition(file["partition_key"]), file["kind"]
    if kind == "vector":
        # Its length comes before it, and a checksum behind it.
        place = file["offset"] - 4, file["length"] + 8, file["row_count"]
        return vector_text((file["path"], file["size_bytes"]), file["data_path"], partition, *place)
    more = ""
    if kind == "equality":
        more = f',"equality-ids":{json.dumps(file["equality_ids"])}'
    elif file["data_path"] is not None:
        more = f',"referenced-data-file":{json.dumps(file["data_path"])}'
    return (
        f'{{"content":"{"equality" if kind == "equality" else "position"}-deletes"'
        f',"file-path":{json.dumps(file["path"])},"file-format":"parquet",{partition}'
        f',"file-size-in-bytes":{file["size_bytes"]},"record-count":{file["row_count"]}{more}}}'
    ).encode()


def has_null_value(key: str) -> bool:
    """Return whether a partition has null among its values.

    Args:
        key: A spec, a colon, and the values in JSON.
    """
    return None in json.loads(f"[{key.partition(':')[2]}]")


def _own_partition(key: str) -> str:
    spec_id, _, values = key.partition(":")
    return partition_text(int(spec_id), [values] if values else [])


def partition_text(spec_id: int, values: Iterable[str]) -> str:
    """Return a partition spec and a file's values, as fields in JSON.

    Args:
        spec_id: Number of the spec.
        values: The values, as JSON.
    """
    return f'"spec-id":{spec_id},"partition":[{",".join(values)}]'


def vector_text(
    puffin: tuple[str, int], uri: str, partition: str, offset: int, length: int, row_count: int
) -> bytes:
    """Return a deletion vector as JSON.

    Args:
        puffin: Path and length of the file that holds it.
        uri: The file whose rows it names.
        partition: What `partition_text` returned for that file.
        offset: Where it begins.
        length: How long it is, with its own length and the checksum.
        row_count: How many rows it names.
    """
    return (
        f'{{"content":"position-deletes","file-path":{json.dumps(puffin[0])}'
        f',"file-format":"puffin",{partition},"file-size-in-bytes":{puffin[1]}'
        f',"record-count":{row_count},"referenced-data-file":{json.dumps(uri)}'
        f',"content-offset":{offset},"content-size-in-bytes":{length}}}'
    ).encode()


def single_value(value: Any) -> str:
    """Return a value as Iceberg's JSON form of single values."""
    if isinstance(value, datetime):
        return json.dumps(value.isoformat(timespec="microseconds"))
    if isinstance(value, date):
        return json.dumps(value.isoformat())
    return json.dumps(format(value, "f") if isinstance(value, Decimal) else value)
