"""Options of Spark's writer of Parquet: how the files of a write are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

# Names of options that the writer looks at, besides all that begin with `parquet.`.
_NAMES = {"compression", "maxrecordsperfile"}
_CODECS = {"compression", "parquet.compression"}
_CODEC_SETTING = "spark.sql.parquet.compression.codec"
# Options of a table that say where and into what rows go, which a planned write does itself.
_OF_TABLES = {"path", "partitionoverwritemode", "__partition_columns"}


@dataclass(frozen=True, slots=True)
class FileOptions:
    """How the files of a write are made.

    Attributes:
        options: Options of Spark's writer, by its names.
        as_spark: Whether these and the session's settings say everything, as for a table of Spark's
            catalog. If not, and neither names a codec, it is that of the table's newest file.
    """

    options: Mapping[str, str] = field(default_factory=dict)
    as_spark: bool = False

    @classmethod
    def of_table(cls, options: Mapping[str, str]) -> FileOptions:
        """Return the options with which Spark writes a table of its catalog."""
        own = {name: text for name, text in options.items() if name.lower() not in _OF_TABLES}
        return cls(own, as_spark=True)

    def follows_files(self, spark: SparkSession) -> bool:
        """Return whether files have the codec of the table's newest file."""
        if self.as_spark or not _CODECS.isdisjoint(map(str.lower, self.options)):
            return False
        jvm_settings = spark._jsparkSession.sessionState().conf()
        return not jvm_settings.contains(_CODEC_SETTING)


def is_of_files(name: str) -> bool:
    """Return whether a writer's option says how files are made."""
    return name.lower() in _NAMES or name.lower().startswith("parquet.")
