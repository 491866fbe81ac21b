"""A real HDFS on loopback: a NameNode and DataNodes in one JVM, which ends with this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.servers.maven import hadoop_version, jar_of, spark_jars
from tests.support.spark.quick_spark import BRIEF

# What DataNodes call their hosts. 127.0.0.1 would count as no host, as of a local disk.
HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
_NEEDS = ("hadoop-client-api", "hadoop-client-runtime", "slf4j-api", "jcl-over-slf4j", "snappy")


@dataclass(frozen=True, slots=True)
class Hdfs:
    """A running cluster.

    Attributes:
        uri: `hdfs://host:port`.
        cluster: The JVM's `MiniDFSCluster`.
        files: The JVM's file system, of the user who started the cluster.
        jvm: Its JVM.
    """

    uri: str
    cluster: Any
    files: Any
    jvm: Any

    def path(self, path: str) -> Any:
        """Return the JVM's path of a text, none of whose characters is special."""
        return self.jvm.org.apache.hadoop.fs.Path(path)

    def upload(self, folder: Path, path: str) -> str:
        """Copy a folder of the local disk, and return the location of the copy."""
        self.files.mkdirs(self.path(path).getParent())
        self.files.copyFromLocalFile(self.path(str(folder)), self.path(path))
        return f"{self.uri}{path}"


@contextmanager
def hdfs_cluster(
    folder: Path,
    *,
    replication: int = 1,
    jars: Sequence[Path] = (),
    has_standby: bool = False,
    more_settings: Callable[[Any], Mapping[str, str]] = lambda _: {},
) -> Iterator[Hdfs]:
    """Run a cluster of three DataNodes; the test is skipped where its code cannot be had.

    Args:
        folder: Where it keeps its files.
        replication: How many DataNodes hold each block.
        jars: Further jars of its JVM.
        has_standby: Whether a second NameNode can take over; the first one is active at first.
        more_settings: Called with its JVM before anything starts; returns further settings.
    """
    # Imported here, since each process of a run collects all tests.
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    jars = [*_jars(), *jars]
    # A thread copies what the JVM prints, line by line, until its end.
    log = (folder / "hdfs.log").open("w", buffering=1, encoding="utf-8")
    port, token = launch_gateway(
        jarpath=str(next(spark_jars().glob("py4j-*.jar"))),
        classpath=":".join(map(str, jars)),
        javaopts=["-Xmx400m", "-Djava.net.preferIPv4Stack=true", *BRIEF.split()],
        redirect_stdout=log,
        redirect_stderr=log,
        die_on_exit=True,
        enable_auth=True,
    )
    parameters = GatewayParameters(port=port, auth_token=token)
    gateway = JavaGateway(gateway_parameters=parameters)
    try:
        jvm = gateway.jvm
        conf = jvm.org.apache.hadoop.hdfs.HdfsConfiguration()
        conf.set("hdfs.minidfs.basedir", str(folder / "hdfs"))
        conf.set("dfs.replication", str(replication))
        # Otherwise writers wait so long before they ask again whether a block is there.
        conf.set("dfs.client.block.write.locateFollowingBlock.initial.delay.ms", "5")
        # The NameNode's log need not survive a power failure.
        conf.set("dfs.namenode.edits.noeditlogchannelflush", "true")
        for name, value in more_settings(jvm).items():
            conf.set(name, value)
        hosts = gateway.new_array(jvm.String, len(HOSTS))
        for at, host in enumerate(HOSTS):
            hosts[at] = host
        builder = getattr(jvm.org.apache.hadoop.hdfs, "MiniDFSCluster$Builder")(conf)
        builder.numDataNodes(len(HOSTS)).hosts(hosts).checkDataNodeHostConfig(True)
        if has_standby:
            builder.nnTopology(jvm.org.apache.hadoop.hdfs.MiniDFSNNTopology.simpleHATopology())
        cluster = builder.build()
        cluster.waitActive()
        if has_standby:
            cluster.transitionToActive(0)
        uri = str(cluster.getURI(0).toString())
        yield Hdfs(uri, cluster, cluster.getFileSystem(0), jvm)
    finally:
        gateway.shutdown()
        log.close()


def _jars() -> list[Path]:
    """Return the jars of the cluster, the largest of which Maven fetches on first use."""
    others = [jar for jar in spark_jars().glob("*.jar") if jar.name.startswith(_NEEDS)]
    return [jar_of(f"org.apache.hadoop:hadoop-client-minicluster:{hadoop_version()}"), *others]
