"""Published files of many writers are read as Spark reads them, or refused by name."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.judges import published_files
from tests.support.laws import a_few
from tests.support.tables.published import compared

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

FIXTURES = Path(__file__).parents[1] / "fixtures"
FOLDER = os.environ.get("WINDROW_PUBLISHED_FILES")

# All other files are read as by Spark, or only by Windrow.
REFUSED = {
    "ARROW-GH-47662": "cannot be read as Parquet: Unexpected end of stream",
    "ARROW-RS-GH-6229-LEVELS": "cannot be read as Parquet: Number of decoded rep / def levels",
    "PARQUET-1481": "Invalid physical column type",
    "encrypt_columns_plaintext_footer": "Cannot decrypt",
    "uniform_encryption": "it is encrypted, and there are no keys for it here",
    "internal_6165": "its footer is damaged: the number of columns of a row group is 0",
    "unknown-logical-type": "'column with unknown type' .* is of type unknown",
    "fuzz-5697144926502912": "it holds 0 rows where its footer says 24",
    "interval-using-fixed-len-byte-array": "'my_list' .* is of type interval, which cannot",
    "geospatial-with-nan": "'geometry' .* is of type geometry.* with it as binary",
    # Spark reads the following files, although four of them are damaged.
    "ARROW-GH-45185": "repetition level at the start of a record must be 0",
    "ARROW-RS-GH-6229-DICTHEADER": "Invalid column metadata",
    "fuzz-5683528215035904": "its footer is damaged: a name in it is not UTF-8",
    "incorrect_map_schema": "Map keys must be annotated as required",
    "int96_from_spark": "INT96 times beyond the years 1 to 9999",
    "shredded-variant-case-001": "'var' .* is of type variant",
}
READ_BY_US_ALONE = {
    "byte_array_decimal",
    "float16_nonzeros_and_nans",
    "map_no_value",
    "nation.dict-malformed",
    "non_hadoop_lz4_compressed",
}

# Of the tests of other projects: a user-defined type, which Spark reads as its layout, and times of
# INT96 with more than a day of nanoseconds.
REFUSED_ELSEWHERE = {"int96_timestamps_nanos_outside_day_range.parquet", "test_type_null.parquet"}
# It stores -1 as an unsigned number of 8 bits, which no reader has to expect: Spark returns -1, and
# Arrow the lowest 8 bits.
BEYOND_THE_TYPE = {"uint_types.parquet": "values of 'uint8_field'"}

FILES = sorted(FIXTURES.glob("*/*.parquet"))


@pytest.mark.parametrize("file", a_few(FILES, 3), ids=lambda file: file.stem)
def test_a_published_file_is_read_as_by_spark_or_refused_by_name(
    spark: SparkSession, tmp_path: Path, file: Path
) -> None:
    shutil.copy(file, tmp_path)

    verdict = compared(spark, tmp_path)

    if (reason := REFUSED.get(file.stem)) is not None:
        assert verdict.kind.startswith("refused"), verdict
        assert re.search(reason, verdict.detail, re.DOTALL), verdict
    else:
        is_ours = file.stem in READ_BY_US_ALONE
        assert verdict.kind == ("read by us alone" if is_ours else "equal"), verdict


@pytest.mark.skipif(FOLDER is None, reason="WINDROW_PUBLISHED_FILES names no folder")
def test_no_file_of_a_folder_is_silently_read_differently(
    spark: SparkSession, tmp_path: Path
) -> None:
    verdicts = {}
    files = sorted(path for path in Path(str(FOLDER)).rglob("*") if ".parquet" in path.name)
    for number, file in enumerate(file for file in files if file.suffix != ".json"):
        folder = tmp_path / str(number)
        folder.mkdir()
        shutil.copy(file, folder / file.name.replace(".parquet.encrypted", ".encrypted.parquet"))
        verdict = compared(spark, folder)
        verdicts[str(file.relative_to(str(FOLDER)))] = verdict
        sys.stdout.write(f"{file.relative_to(str(FOLDER))}: {verdict.kind}. {verdict.detail}\n")

    assert {name: v.detail for name, v in verdicts.items() if v.kind == "different"} == {}


@pytest.mark.nightly
def test_no_file_of_the_tests_of_other_projects_is_silently_read_differently(
    spark: SparkSession, tmp_path: Path
) -> None:
    verdicts = [
        (file.name, compared(spark, file.parent))
        for file in published_files.unpacked(tmp_path, ".parquet")
    ]

    assert {n: v.detail for n, v in verdicts if v.kind == "different"} == BEYOND_THE_TYPE
    assert {name for name, v in verdicts if v.kind == "refused by us"} <= REFUSED_ELSEWHERE
    assert sum(verdict.kind == "equal" for _, verdict in verdicts) > 200
