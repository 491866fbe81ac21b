"""Options of tables that only say how their files are written."""

from __future__ import annotations

import re

# Of some, a column of files follows after `#`.
_OF_PARQUET = (
    r"block\.size|page\..*|dictionary\.page\.size|enable\.dictionary|bloom\.filter\..*|compression.*"
    r"|writer\..*|memory\..*|columnindex\.truncate\.length|statistics\..*|.*summary.*"
)
_OF_ORC = (
    r"compress.*|stripe\..*|row\.index\..*|create\.index|block\.padding.*|bloom\.filter\..*"
    r"|dictionary\..*|column\.encoding\.direct|encoding\.strategy|write\.format|padding\..*"
)
_NAMES = re.compile(
    rf"compression|codec|maxrecordsperfile|parquet\.(?:{_OF_PARQUET})(?:#.*)?|orc\.(?:{_OF_ORC})"
)


def is_of_writers(name: str) -> bool:
    """Return whether an option of Spark, or a property of Hive, concerns only the writing of files."""
    return _NAMES.fullmatch(name.lower()) is not None
