"""A real YARN beside a real HDFS: one ResourceManager, and a NodeManager on each DataNode's host."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.support.servers.hdfs import HOSTS, Hdfs
from tests.support.servers.maven import hadoop_version, jars_of, spark_jars

# On each host there is room for one executor of Spark, on one also for the application's master.
MASTER_MB, EXECUTOR_MB = 512, 896

# The ResourceManager has code for certificates, which its one jar lacks.
_PROJECT = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <parent>
    <groupId>org.apache.hadoop</groupId><artifactId>hadoop-project</artifactId>
    <version>{version}</version>
  </parent>
  <groupId>windrow</groupId><artifactId>yarn</artifactId><packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.bouncycastle</groupId><artifactId>bcpkix-jdk18on</artifactId>
    </dependency>
  </dependencies>
</project>
"""
_SCHEDULERS = "org.apache.hadoop.yarn.server.resourcemanager.scheduler"
_ADDRESSES = ("address", "scheduler.address", "resource-tracker.address", "admin.address")


def yarn_jars() -> list[Path]:
    """Return what YARN needs besides the jars of HDFS; the test is skipped if it cannot be had."""
    version = hadoop_version()
    logging = sorted(spark_jars().glob("log4j-*.jar"))
    return [*jars_of(f"yarn-{version}", _PROJECT.format(version=version)), *logging]


@contextmanager
def yarn_cluster(hdfs: Hdfs, folder: Path) -> Iterator[Path]:
    """Run YARN in the JVM of HDFS; yield the folder of the settings for `HADOOP_CONF_DIR`.

    Args:
        hdfs: HDFS, started with `yarn_jars()`.
        folder: Where it keeps its files.
    """
    yarn = hdfs.jvm.org.apache.hadoop.yarn
    # Several NodeManagers in one JVM would be refused.
    hdfs.jvm.org.apache.hadoop.metrics2.lib.DefaultMetricsSystem.setMiniClusterMode(True)
    conf = yarn.conf.YarnConfiguration(hdfs.files.getConf())
    settings = {
        **{f"yarn.resourcemanager.{name}": "127.0.0.1:0" for name in _ADDRESSES},
        "yarn.resourcemanager.webapp.address": "127.0.0.1:0",
        "yarn.resourcemanager.scheduler.class": f"{_SCHEDULERS}.fifo.FifoScheduler",
        "yarn.scheduler.minimum-allocation-mb": "128",
        "yarn.nodemanager.resource.memory-mb": str(MASTER_MB + EXECUTOR_MB),
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.enable": "false",
    }
    with ExitStack() as stack:
        for name, value in settings.items():
            conf.set(name, value)
        # They are kept from the first use on, which is before these settings.
        yarn.util.resource.ResourceUtils.resetResourceTypes(conf)
        manager = yarn.server.resourcemanager.ResourceManager()
        _start(stack, manager, conf, settings)
        for host in HOSTS:
            # The cluster of HDFS lets its JVM take all of them for 127.0.0.1.
            hdfs.jvm.org.apache.hadoop.net.NetUtils.addStaticResolution(host, host)
            node = yarn.server.nodemanager.NodeManager()
            addresses = ("address", "localizer.address", "webapp.address")
            of_host = {
                **{f"yarn.nodemanager.{name}": f"{host}:0" for name in addresses},
                "yarn.nodemanager.local-dirs": str(folder / f"{host}-files"),
                "yarn.nodemanager.log-dirs": str(folder / f"{host}-logs"),
            }
            _start(stack, node, yarn.conf.YarnConfiguration(conf), of_host)
        # What the servers are set to is nothing to clients, which lack some of their classes.
        of_clients = hdfs.jvm.org.apache.hadoop.conf.Configuration(False)
        of_clients.set("fs.defaultFS", hdfs.uri)
        for name in settings:
            if name.endswith("address"):
                of_clients.set(name, conf.get(name))
        (folder / "conf").mkdir()
        # YARN's defaults go before settings of core-site.xml.
        for name in ("core-site.xml", "yarn-site.xml"):
            file = hdfs.jvm.java.io.FileOutputStream(str(folder / "conf" / name))
            of_clients.writeXml(file)
            file.close()
        yield folder / "conf"


def _start(stack: ExitStack, service: Any, conf: Any, settings: dict[str, str]) -> None:
    for name, value in settings.items():
        conf.set(name, value)
    service.init(conf)
    service.start()
    stack.callback(service.stop)
