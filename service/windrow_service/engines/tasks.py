"""Files as the scan tasks of Iceberg's REST protocol."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

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
    """

    uris: Sequence[str]
    partitions: Sequence[str]
    size_bytes: Sequence[int]
    row_counts: Sequence[int]
    deletes: Sequence[Sequence[bytes]]


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
                f',"record-count":{rows}}}{self._references(deletes)}{whole if is_whole else left}}}'
            ).encode()
            for uri, partition, size, rows, deletes, is_whole in zip(
                files.uris,
                files.partitions,
                files.size_bytes,
                files.row_counts,
                files.deletes,
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
