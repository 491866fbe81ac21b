"""What Windrow uses of Spark without its promise is there, in each release that is supported."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyspark
import pytest

from tests.support.spark.older_spark import OLDEST, OTHERS, python_with_spark

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "private-parts-of-spark.md"


class Part(NamedTuple):
    class_: str
    members: list[str]
    since: int
    files: list[str]


def parts() -> Iterator[Part]:
    rows = re.findall(r"^\| `(org\S+)` \| (.+?) \| (.+?) \|", PAGE.read_text(), flags=re.MULTILINE)
    for class_, members, why in rows:
        since = re.search(r"[sS]ince Spark (\d)", why)
        files = re.findall(r"`(\w+\.java)`", why)
        yield Part(class_, re.findall(r"`(\w+)`", members), int(since[1]) if since else 3, files)


def jars_of(version: str) -> Path:
    if version == pyspark.__version__:
        return Path(pyspark.__file__).parent / "jars"
    environment = Path(python_with_spark(version)).parents[1]
    (jars,) = environment.glob("lib/python*/site-packages/pyspark/jars")
    return jars


def missing(jars: Path, version: str) -> Iterator[str]:
    """Yield what a release lacks of the page; names of members stand in a class as they are."""
    classes = {}
    for jar in (
        *jars.glob("spark-catalyst_*"),
        *jars.glob("spark-sql_*"),
        *jars.glob("spark-hive_*"),
    ):
        with zipfile.ZipFile(jar) as archive:
            names = set(archive.namelist())
            for part in parts():
                if (path := part.class_.replace(".", "/") + ".class") in names:
                    classes[part.class_] = archive.read(path)
    for part in parts():
        if int(version.partition(".")[0]) < part.since:
            continue
        code = classes.get(part.class_)
        if code is None:
            yield part.class_
        else:
            yield from (f"{part.class_}.{m}" for m in part.members if m.encode() not in code)


@pytest.mark.every_spark
def test_each_release_has_what_is_used(request: pytest.FixtureRequest) -> None:
    others = (OLDEST, *OTHERS) if request.config.getoption("--all-sparks") else ()
    for version in (pyspark.__version__, *others):
        assert list(missing(jars_of(version), version)) == [], version


def test_each_name_is_used_by_the_file_that_the_page_names() -> None:
    sources = {path.name: path.read_text() for path in (ROOT / "spark").rglob("*.java")}
    assert len(list(parts())) > 5
    for part in parts():
        words = part.members or [part.class_.rpartition(".")[2]]
        text = "".join(sources[file] for file in part.files)
        if part.files:
            assert all(f'"{word}"' in text or f'.{word}"' in text for word in words), part
