"""Where a file may be cut, by its name and its table's format."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from windrow_service.planner.splits import Bools

# Their files are made of row groups or stripes, and can be read from those alone.
BLOCK_FORMATS = ("parquet", "orc")
TEXT_FORMATS = ("csv", "json", "text")

_BLOCKS = r"(?i)\.(parquet|parq|pq|orc)$"
_LINES = r"(?i)\.(csv|tsv|json|jsonl|ndjson|txt|text|log)(\.bz2)?$|\.bz2$"
# A stream of such a codec can be read from its beginning only.
_STREAM = r"(?i)\.(gz|gzip|zst|zstd|snappy|sz|lz4|lzo|lzo_deflate|lzma|xz|br|deflate|z|zip)$"


def is_stream(paths: pa.ChunkedArray) -> Bools:
    """Tell which files are compressed as a whole, so that they cannot be cut.

    `x.gz` is, and so is `x.csv.zst`; `x.snappy.parquet` is not: Parquet compresses its pages.
    """
    return _matches(paths, _STREAM)


def is_lines(paths: pa.ChunkedArray, table_format: str) -> Bools:
    """Tell which files hold one record per line, so that a reader finds its way from any byte.

    A reader of bzip2 finds the next block just so. The suffix decides; the table's format
    where that says nothing.
    """
    if table_format in TEXT_FORMATS:
        return ~_matches(paths, _BLOCKS)
    return _matches(paths, _LINES)


def _matches(paths: pa.ChunkedArray, pattern: str) -> Bools:
    matches: Bools = pc.match_substring_regex(paths, pattern).to_numpy()
    return matches
