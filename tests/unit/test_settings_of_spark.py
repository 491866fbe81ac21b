"""docs/reference/settings-of-spark.md lists every setting that a reader of files in Spark looks at."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest

from tests.support.spark.older_spark import OLDEST, OTHERS, python_with_spark
from tests.support.spark.reader_settings import settings_of_readers
from tests.support.spark.settings_page import FOLLOWED, REFUSED, WITHOUT_EFFECT, listed
from windrow_spark import session_settings


def jars_of(version: str) -> Path:
    if version == pyspark.__version__:
        return Path(pyspark.__file__).parent / "jars"
    environment = Path(python_with_spark(version)).parents[1]
    (jars,) = environment.glob("lib/python*/site-packages/pyspark/jars")
    return jars


@pytest.fixture(scope="module")
def everything() -> list[str]:
    return [name for part in (FOLLOWED, REFUSED, WITHOUT_EFFECT) for name in listed(part)]


@pytest.mark.slow
@pytest.mark.every_spark
def test_every_setting_that_a_reader_looks_at_is_on_the_page(
    request: pytest.FixtureRequest, everything: list[str]
) -> None:
    others = (OLDEST, *OTHERS) if request.config.getoption("--all-sparks") else ()
    for version in (pyspark.__version__, *others):
        settings = settings_of_readers(jars_of(version))
        assert len(settings) > 100
        missing = {name: readers for name, readers in settings.items() if name not in everything}
        assert missing == {}, version


def test_a_setting_is_on_the_page_once(everything: list[str]) -> None:
    assert sorted(everything) == sorted(set(everything))


def test_the_page_refuses_what_the_client_refuses() -> None:
    assert set(listed(REFUSED)) == {*session_settings.REFUSED, "spark.sql.caseSensitive"}
