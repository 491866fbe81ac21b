"""Hadoop's own file system of S3 for a session, as clusters have it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.support.servers.maven import hadoop_version, jars_of, spark_jars
from windrow_spark import hadoop

# The parent says which release of Amazon's libraries is Hadoop's. The bundle of all of them has
# several hundred megabytes, of which S3A needs these few.
_PROJECT = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <parent>
    <groupId>org.apache.hadoop</groupId><artifactId>hadoop-project</artifactId>
    <version>{version}</version>
  </parent>
  <groupId>windrow</groupId><artifactId>s3a</artifactId><packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.hadoop</groupId><artifactId>hadoop-aws</artifactId>
      <version>{version}</version>
      <exclusions>
        <exclusion><groupId>{group}</groupId><artifactId>{bundle}</artifactId></exclusion>
        <exclusion><groupId>org.apache.hadoop</groupId><artifactId>*</artifactId></exclusion>
      </exclusions>
    </dependency>
    {parts}
  </dependencies>
</project>
"""
_PART = """<dependency>
      <groupId>{group}</groupId><artifactId>{part}</artifactId><version>${{{property}}}</version>
    </dependency>"""


def s3a_jars() -> list[Path]:
    """Return S3A's jars; the test is skipped where they cannot be had."""
    version = hadoop_version()
    if version.startswith("3.3."):
        group, bundle, property_ = "com.amazonaws", "aws-java-sdk-bundle", "aws-java-sdk.version"
        parts = ["aws-java-sdk-s3", "aws-java-sdk-sts", "aws-java-sdk-dynamodb"]
    else:
        group, bundle = "software.amazon.awssdk", "bundle"
        property_ = "aws-java-sdk-v2.version"
        parts = ["s3-transfer-manager", "apache-client", "sts"]
    each = [_PART.format(group=group, part=part, property=property_) for part in parts]
    project = _PROJECT.format(
        version=version, group=group, bundle=bundle, parts="\n    ".join(each)
    )
    theirs = {jar.name.rpartition("-")[0] for jar in spark_jars().glob("*.jar")}
    jars = jars_of(f"hadoop-aws-{version}", project)
    return [jar for jar in jars if jar.name.rpartition("-")[0] not in theirs]


def s3a_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return Hadoop's settings of a server of tests.

    Args:
        environment: As `S3.environment`.
    """
    return {
        "fs.s3a.endpoint": environment["AWS_ENDPOINT_URL"],
        "fs.s3a.endpoint.region": environment["AWS_REGION"],
        "fs.s3a.access.key": environment["AWS_ACCESS_KEY_ID"],
        "fs.s3a.secret.key": environment["AWS_SECRET_ACCESS_KEY"],
        "fs.s3a.path.style.access": "true",
        # Otherwise a failure is repeated for minutes.
        "fs.s3a.attempts.maximum": "2",
        "fs.s3a.retry.limit": "2",
    }


@contextmanager
def s3a(spark: SparkSession, environment: Mapping[str, str]) -> Iterator[None]:
    """Let a local session read and write `s3a://` by S3A until the end of the block.

    Args:
        spark: A classic session; its JVM keeps the classes.
        environment: As `S3.environment`.
    """
    context = spark.sparkContext
    jvm: Any = context._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for jar in s3a_jars():
        loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())
    _forget_missing_classes(jvm)
    hadoop.MISSING.clear()
    conf = context._jsc.hadoopConfiguration()
    settings = s3a_settings(environment)
    for name, value in settings.items():
        conf.set(name, value)
    try:
        yield
    finally:
        jvm.org.apache.hadoop.fs.FileSystem.closeAll()
        for name in settings:
            conf.unset(name)


def _forget_missing_classes(jvm: Any) -> None:
    """Let Hadoop look again for classes that it has looked for in vain."""
    configuration = jvm.java.lang.Class.forName("org.apache.hadoop.conf.Configuration")
    cache = configuration.getDeclaredField("CACHE_CLASSES")
    cache.setAccessible(True)
    cache.get(None).clear()
