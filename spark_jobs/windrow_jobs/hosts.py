"""The hosts that hold a table's files, from Hadoop's file systems."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from windrow_spark.compiling import new_object

_THREADS = 8
_HOSTS = pa.list_(pa.string())


def file_hosts(spark: SparkSession) -> Any:
    """Return a `FileHosts` of the driver's JVM.

    Its one call for a folder takes less time than a call for each of its files.
    """
    jvm: Any = spark.sparkContext._jvm
    parent = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return new_object(jvm, __package__, "FileHosts.java", parent, "windrow.FileHosts")


def hosts_of(spark: SparkSession, location: str, paths: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return for each file the hosts that hold at least half of its bytes.

    Args:
        spark: A classic session, whose Hadoop configuration gives access to the file system.
        location: Absolute path or URI of the table's folder.
        paths: Paths relative to the location; a file that is gone has no hosts.

    Returns:
        A list of host names per file; `/rack/name` if the rack is known.
    """
    jvm: Any = spark.sparkContext._jvm
    files = jvm.org.apache.hadoop.fs.Path(location).getFileSystem(
        spark.sparkContext._jsc.hadoopConfiguration()
    )
    lister = file_hosts(spark)

    def look(folder: str) -> pa.Table:
        path = jvm.org.apache.hadoop.fs.Path(f"{location}/{folder}".rstrip("/"))
        return parsed(folder, lister.inFolder(files, path))

    folders = pc.unique(pc.replace_substring_regex(paths, "/?[^/]*$", "")).to_pylist()
    with ThreadPoolExecutor(_THREADS) as threads:
        listing = pa.concat_tables([parsed("", ""), *threads.map(look, folders)])
    hosts = listing["hosts"].take(pc.index_in(paths, listing["path"]))
    return pc.if_else(hosts.is_null(), pa.scalar([], _HOSTS), hosts)


def parsed(folder: str, text: str) -> pa.Table:
    """Parse the answer for a folder into the columns `path` and `hosts`."""
    fields = pc.split_pattern(pa.array([text.removesuffix("\0")], pa.string()), "\0").flatten()
    if not text:
        fields = fields[:0]
    names, hosts = fields[::2], fields[1::2]
    paths = pc.binary_join_element_wise(folder, names, "/") if folder else names
    lists = pc.split_pattern(pc.utf8_rtrim_whitespace(hosts), " ")
    lists = pc.if_else(pc.equal(hosts, ""), pa.scalar([], _HOSTS), lists)
    return pa.table({"path": paths, "hosts": lists})
