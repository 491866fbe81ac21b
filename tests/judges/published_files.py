"""Files that other projects keep for their own tests, in the jars of these tests at Maven Central."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tests.support.servers.maven import jar_of

_JARS = (
    "io.trino:trino-hive:476:jar:tests",
    "io.trino:trino-iceberg:476:jar:tests",
    "io.trino:trino-orc:476:jar:tests",
    "io.trino:trino-parquet:476:jar:tests",
    "org.apache.drill.exec:drill-java-exec:1.21.2:jar:tests",
    "org.apache.iceberg:iceberg-spark-4.0_2.13:1.10.0:jar:tests",
    "org.apache.orc:orc-core:2.1.1:jar:tests",
    "org.apache.parquet:parquet-avro:1.15.2:jar:tests",
    "org.apache.parquet:parquet-hadoop:1.15.2:jar:tests",
    "org.apache.spark:spark-hive_2.13:4.2.0:jar:tests",
    "org.apache.spark:spark-sql_2.13:4.2.0:jar:tests",
)
# A larger one takes minutes.
_MOST_BYTES = 2**21


def unpacked(folder: Path, ending: str) -> Iterator[Path]:
    """Unpack the files with an ending, each content once; the test is skipped without the jars.

    Args:
        folder: Where they are put, each in a folder of its own that is named after it.
        ending: Such as `.parquet`.
    """
    seen: set[bytes] = set()
    for artifact in _JARS:
        with zipfile.ZipFile(jar_of(artifact)) as jar:
            for entry in jar.infolist():
                if not entry.filename.endswith(ending) or entry.file_size > _MOST_BYTES:
                    continue
                content = jar.read(entry)
                digest = hashlib.sha256(content).digest()
                if content and digest not in seen:
                    seen.add(digest)
                    name = PurePosixPath(entry.filename).name
                    file = folder / f"{artifact.split(':')[1]}-{len(seen)}-{name}" / name
                    file.parent.mkdir(parents=True)
                    file.write_bytes(content)
                    yield file
