"""An HDFS that lets nobody in without Kerberos, and credentials for it."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.hadoop_settings import write_settings
from tests.support.servers.hdfs import Hdfs, hdfs_cluster
from tests.support.servers.maven import hadoop_version, jars_of

USER = "alice"
# The client of HDFS loads it, and its package does not bring it.
_LIBRARY = "libgssapi_krb5.so.2"
_PROJECT = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>windrow</groupId><artifactId>kerberos</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.hadoop</groupId><artifactId>hadoop-minikdc</artifactId>
      <version>{version}</version>
    </dependency>
  </dependencies>
</project>
"""
_NEEDS = ("hadoop-minikdc", "kerb", "token-provider", "commons-io", "jcip")
_SERVER = "hdfs/localhost"
# What clients must know.
_OF_CLIENTS = {
    "hadoop.security.authentication": "kerberos",
    "dfs.data.transfer.protection": "authentication",
}


@dataclass(frozen=True, slots=True)
class SecuredHdfs:
    """A running cluster, and credentials of one user for it.

    Attributes:
        hdfs: The cluster, whose own user its JVM is.
        settings: Its settings for clients, as `core-site.xml` has them.
        environment: Where clients find these settings and the issuer of tickets.
        keytab: The user's keys.
        ticket: A cache with a ticket for hours.
        expired_ticket: A cache with a ticket that has expired.
        tokens: A file of tokens, as YARN gives to executors.
    """

    hdfs: Hdfs
    settings: Mapping[str, str]
    environment: Mapping[str, str]
    keytab: Path
    ticket: Path
    expired_ticket: Path
    tokens: Path

    def upload(self, folder: Path, path: str) -> None:
        """Copy a folder of the local disk, and give it to the user."""
        self.hdfs.upload(folder, path)
        for part in (folder, *folder.rglob("*")):
            copy = Path(path, part.relative_to(folder))
            self.hdfs.files.setOwner(self.hdfs.path(str(copy)), USER, USER)


@contextmanager
def secured_cluster(folder: Path) -> Iterator[SecuredHdfs]:
    """Run a cluster with Kerberos; the test is skipped where either cannot be had.

    Args:
        folder: Where it keeps its files.
    """
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        pytest.skip(f"{_LIBRARY} is not installed (Debian: libgssapi-krb5-2)")
    version = hadoop_version()
    jars = jars_of(f"kerberos-{version}", _PROJECT.format(version=version))
    issuers: list[Any] = []

    def more_settings(jvm: Any) -> Mapping[str, str]:
        issuers.append(_issuer(jvm, folder))
        return _of_servers(jvm, folder, str(issuers[0].getRealm()))

    with hdfs_cluster(
        folder,
        jars=[jar for jar in jars if jar.name.startswith(_NEEDS)],
        more_settings=more_settings,
    ) as hdfs:
        (issuer,) = issuers
        try:
            yield _with_credentials(hdfs, issuer, folder)
        finally:
            issuer.stop()


def _issuer(jvm: Any, folder: Path) -> Any:
    """Start the issuer of tickets, and make the keys of the servers and of the user."""
    settings = jvm.org.apache.hadoop.minikdc.MiniKdc.createConf()
    (folder / "kdc").mkdir()
    issuer = jvm.org.apache.hadoop.minikdc.MiniKdc(settings, jvm.java.io.File(str(folder / "kdc")))
    issuer.start()
    for name, keytab in ((_SERVER, "hdfs.keytab"), (USER, "user.keytab")):
        text = jvm.java.lang.Class.forName("java.lang.String")
        names = jvm.java.lang.reflect.Array.newInstance(text, 1)
        names[0] = name
        issuer.createPrincipal(jvm.java.io.File(str(folder / keytab)), names)
    return issuer


def _of_servers(jvm: Any, folder: Path, realm: str) -> Mapping[str, str]:
    keytab, principal = str(folder / "hdfs.keytab"), f"{_SERVER}@{realm}"
    settings = {
        **_OF_CLIENTS,
        "hadoop.security.authorization": "true",
        "dfs.block.access.token.enable": "true",
        "dfs.web.authentication.kerberos.principal": principal,
        "dfs.web.authentication.kerberos.keytab": keytab,
        # DataNodes need neither ports below 1024 nor certificates.
        "ignore.secure.ports.for.testing": "true",
    }
    for server in ("namenode", "datanode"):
        settings[f"dfs.{server}.kerberos.principal"] = principal
        settings[f"dfs.{server}.keytab.file"] = keytab
    conf = jvm.org.apache.hadoop.conf.Configuration()
    for name, value in settings.items():
        conf.set(name, value)
    users = jvm.org.apache.hadoop.security.UserGroupInformation
    users.setConfiguration(conf)
    users.loginUserFromKeytab(principal, keytab)
    return settings


def _with_credentials(hdfs: Hdfs, issuer: Any, folder: Path) -> SecuredHdfs:
    jvm, realm = hdfs.jvm, str(issuer.getRealm())
    settings = {
        **_OF_CLIENTS,
        "fs.defaultFS": hdfs.uri,
        # The Java client asks for it; the other one believes the server.
        "dfs.namenode.kerberos.principal": f"{_SERVER}@{realm}",
    }
    (folder / "conf").mkdir()
    write_settings(folder / "conf" / "core-site.xml", settings)
    keytab, ticket, old_ticket = (folder / name for name in ("user.keytab", "ticket", "expired"))
    kerby = jvm.org.apache.kerby.kerberos.kerb
    client = kerby.client.KrbClient(issuer.getKrb5conf().getParentFile())
    client.setKdcRealm(realm)
    client.setKdcHost("localhost")
    client.setKdcTcpPort(issuer.getPort())
    client.setAllowUdp(False)
    client.init()
    answer = client.requestTgt(f"{USER}@{realm}", jvm.java.io.File(str(keytab)))
    client.storeTicket(answer, jvm.java.io.File(str(ticket)))
    an_hour_ago_ms = round(time.time() * 1_000) - 3_600_000
    answer.getEncKdcRepPart().setEndTime(kerby.type.KerberosTime(an_hour_ago_ms))
    client.storeTicket(answer, jvm.java.io.File(str(old_ticket)))
    tokens = jvm.org.apache.hadoop.security.Credentials()
    hdfs.files.addDelegationTokens(USER, tokens)
    tokens.writeTokenStorageFile(hdfs.path(f"file://{folder}/tokens"), hdfs.files.getConf())
    environment = {
        "HADOOP_CONF_DIR": str(folder / "conf"),
        "KRB5_CONFIG": str(issuer.getKrb5conf().toString()),
    }
    return SecuredHdfs(hdfs, settings, environment, keytab, ticket, old_ticket, folder / "tokens")
