"""The hosts that hold a table's files, from Hadoop's file systems."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

_THREADS = 8
_HOSTS = pa.list_(pa.string())

# A call from Python to the JVM for each file would take longer than reading its footer, so one
# call returns a whole folder: the name of each file, and its hosts with a blank after each. Spark
# includes this compiler for its generated code; it does not support generics.
_SOURCE = r"""
import java.util.*;
import org.apache.hadoop.fs.*;

public class WindrowHosts {
  public String inFolder(FileSystem files, Path folder) throws java.io.IOException {
    StringBuilder told = new StringBuilder();
    RemoteIterator found;
    try {
      found = files.listLocatedStatus(folder);
    } catch (java.io.FileNotFoundException gone) {
      return "";
    }
    while (found.hasNext()) {
      LocatedFileStatus file = (LocatedFileStatus) found.next();
      if (file.isFile()) {
        told.append(file.getPath().getName()).append('\0');
        told.append(ofBlocks(file.getBlockLocations())).append('\0');
      }
    }
    return told.toString();
  }

  public String ofBlocks(BlockLocation[] blocks) throws java.io.IOException {
    TreeMap held = new TreeMap();
    long all = 0;
    for (int b = 0; b < blocks.length; b++) {
      all += blocks[b].getLength();
      String[] hosts = blocks[b].getHosts();
      String[] places = blocks[b].getTopologyPaths();
      for (int h = 0; h < hosts.length; h++) {
        // Local disks and object stores, which have no hosts, return these names.
        if (hosts[h].equals("localhost") || hosts[h].equals("127.0.0.1")) continue;
        String rack = "";
        if (places != null && places.length == hosts.length) {
          // The rack is followed by an address, but hosts are known by name.
          rack = places[h].substring(0, places[h].lastIndexOf('/') + 1);
        }
        String host = rack.equals("/default-rack/") ? hosts[h] : rack + hosts[h];
        Long before = (Long) held.get(host);
        long more = blocks[b].getLength() + (before == null ? 0 : before.longValue());
        held.put(host, Long.valueOf(more));
      }
    }
    StringBuilder told = new StringBuilder();
    for (Iterator each = held.entrySet().iterator(); each.hasNext(); ) {
      Map.Entry entry = (Map.Entry) each.next();
      if (2 * ((Long) entry.getValue()).longValue() >= all) {
        told.append((String) entry.getKey()).append(' ');
      }
    }
    return told.toString();
  }
}
"""


def compiled(spark: SparkSession) -> Any:
    """Return a JVM object with the methods `inFolder` and `ofBlocks`."""
    jvm: Any = spark.sparkContext._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(_SOURCE)
    gateway: Any = spark.sparkContext._gateway
    nothing = gateway.new_array(jvm.java.lang.Class, 0)
    constructor = compiler.getClassLoader().loadClass("WindrowHosts").getConstructor(nothing)
    return constructor.newInstance(gateway.new_array(jvm.java.lang.Object, 0))


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
    lister = compiled(spark)

    def look(folder: str) -> pa.Table:
        where = jvm.org.apache.hadoop.fs.Path(f"{location}/{folder}".rstrip("/"))
        return read_told(folder, lister.inFolder(files, where))

    folders = pc.unique(pc.replace_substring_regex(paths, "/?[^/]*$", "")).to_pylist()
    with ThreadPoolExecutor(_THREADS) as threads:
        told = pa.concat_tables([read_told("", ""), *threads.map(look, folders)])
    hosts = told["hosts"].take(pc.index_in(paths, told["path"]))
    return pc.if_else(hosts.is_null(), pa.scalar([], _HOSTS), hosts)


def read_told(folder: str, told: str) -> pa.Table:
    """Parse the answer for a folder into the columns `path` and `hosts`."""
    fields = pc.split_pattern(pa.array([told.removesuffix("\0")], pa.string()), "\0").flatten()
    if not told:
        fields = fields[:0]
    names, hosts = fields[::2], fields[1::2]
    paths = pc.binary_join_element_wise(folder, names, "/") if folder else names
    lists = pc.split_pattern(pc.utf8_rtrim_whitespace(hosts), " ")
    lists = pc.if_else(pc.equal(hosts, ""), pa.scalar([], _HOSTS), lists)
    return pa.table({"path": paths, "hosts": lists})
