"""Figures of columns of files: how many values, the least, the greatest, and their sum."""

from __future__ import annotations

import pyarrow as pa

# The column of a pack's sources that has, for each of some columns of theirs, a `FIGURE`.
FIGURES = "figures"
# Integers; of decimals without their scale, of dates days since 1970. All are null of a file whose
# figures are not certain, and the last three where there are no values.
FIGURE = pa.struct(
    [
        pa.field("count", pa.int64()),
        pa.field("least", pa.int64()),
        pa.field("greatest", pa.int64()),
        pa.field("total", pa.int64()),
    ]
)
# Most columns of which one request asks the figures.
MOST_COLUMNS = 100
# The key of a column's metadata that has its type, as Spark SQL writes it.
SPARK_TYPE = b"windrow:type"
