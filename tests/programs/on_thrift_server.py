"""A program whose tables are accelerated, and asked by JDBC through Spark's Thrift server.

`python -m tests.programs.on_thrift_server URL FOLDER`

Its session has a Hive metastore in memory. One line of JSON on stdout has the version of Spark and
the results.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

import windrow
from tests.support.queries import accelerations
from tests.support.queries.accelerations import accelerate
from tests.support.servers.coordinators import free_port, wait_until
from tests.support.spark.metastore_tables import DATABASE
from tests.support.tables import hive

_TABLES = {"hive": "STORED AS PARQUET", "source": "USING orc"}
_CONNECTIONS = 4


def main(url: str, folder: Path) -> None:
    """Run all of it, and print the results."""
    port = free_port()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "900m")
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={folder}")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.hadoop.javax.jdo.option.ConnectionURL", DATABASE)
        .config("spark.hadoop.hive.exec.dynamic.partition.mode", "nonstrict")
        .config("spark.hadoop.hive.server2.thrift.bind.host", "127.0.0.1")
        .config("spark.hadoop.hive.server2.thrift.port", str(port))
        .enableHiveSupport()
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    with windrow.connect(url) as client:
        problems = accelerations.problems(spark, client, folder / "quick", _TABLES)
        path = hive.write_events(folder / "events")
        client.register_table("sales.events", str(path))
        client.refresh("sales.events")
        windrow.register(spark, client)
        with _served(spark, port) as address:
            clients = _Clients(spark, client, address, path).results()
    report = {"version": spark.version, "accelerated": problems, "clients": clients}
    sys.stdout.write("\n" + json.dumps(report) + "\n")
    spark.stop()


@contextmanager
def _served(spark: SparkSession, port: int) -> Iterator[str]:
    """Serve a session's application to JDBC clients; the value is the server's address."""
    jvm: Any = spark.sparkContext._jvm
    thrift = jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2
    server = thrift.startWithContext(spark._jsparkSession.sqlContext())
    try:
        wait_until(lambda: _listens(port))
        yield f"jdbc:hive2://127.0.0.1:{port}/default"
    finally:
        server.stop()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class _Clients:
    """Clients of a Thrift server: Hive's own JDBC driver, over loopback."""

    def __init__(
        self, spark: SparkSession, client: windrow.Client, address: str, path: Path
    ) -> None:
        self._spark = spark
        self._client = client
        self._address = address
        self._path = path
        self._jvm: Any = spark.sparkContext._jvm
        self._jvm.java.lang.Class.forName("org.apache.hive.jdbc.HiveDriver")

    def results(self) -> dict[str, Any]:
        """Return what clients are answered, and what Spark alone answers them."""
        tables = [f"quick.{name}" for name in _TABLES]
        files = f"parquet.`{self._path}`"
        queries = [
            *(f"SELECT * FROM {table} WHERE day(day) = 2" for table in tables),
            f"SELECT day, count(*), sum(id) FROM {tables[0]} JOIN {tables[1]} USING (id, day) "
            f"WHERE day = (SELECT max(day) FROM {tables[1]}) GROUP BY day",
            f"SELECT ds, count(DISTINCT name) FROM {files} GROUP BY ds",
        ]
        of_catalog = "SELECT id, name FROM {} WHERE day(ds) = 2 AND id % 3 = 0"
        with accelerate(self._spark, self._client) as acceleration:
            with ThreadPoolExecutor(_CONNECTIONS) as threads:
                answers = list(threads.map(self._ask, [queries] * _CONNECTIONS))
            plans = self._ask([f"EXPLAIN {query}" for query in queries])
            reasons = acceleration.reasons()
        (catalog,) = self._ask([of_catalog.format("windrow.sales.events")])
        (files_of_spark, *theirs) = self._ask([of_catalog.format(files), *queries])
        return {
            "unlike": [answer for answer in answers if answer != theirs],
            "sizes": [len(rows) for rows in theirs],
            "unplanned": [text for text in map(str, plans) if "Scan windrow" not in text],
            "reasons": reasons,
            "catalog": [catalog == files_of_spark, len(catalog)],
            "sessions": self._sessions(),
            "error": self._ask(["SELECT * FROM windrow.sales.events VERSION AS OF 99"]),
        }

    def _sessions(self) -> list[Any]:
        """Return what two connections see of what one of them has set and created."""
        create = "CREATE TEMPORARY VIEW mine USING windrow OPTIONS (table 'sales.events')"
        count = "SELECT count(*) FROM mine"
        here = self._ask([create, count, "SET spark.windrow.unknown=1", count])
        return [here[1], here[3], *self._ask([count, "SELECT count(*) FROM windrow.sales.events"])]

    def _ask(self, queries: Sequence[str]) -> list[Any]:
        """Return the sorted rows of each query of one connection, or the text of its error."""
        connection = self._jvm.java.sql.DriverManager.getConnection(self._address)
        try:
            return [self._rows(connection.createStatement(), query) for query in queries]
        finally:
            connection.close()

    @staticmethod
    def _rows(statement: Any, query: str) -> Any:
        try:
            if not statement.execute(query):
                return None
        except Py4JJavaError as error:
            return str(error.java_exception.getMessage())
        rows, result = [], statement.getResultSet()
        width = result.getMetaData().getColumnCount()
        while result.next():
            rows.append([str(result.getString(place)) for place in range(1, width + 1)])
        return sorted(rows)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
