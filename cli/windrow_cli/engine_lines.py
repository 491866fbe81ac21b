"""The lines with which other engines open the coordinator's catalog."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal, get_args

EngineName = Literal["duckdb", "duckdb-python", "polars", "pyiceberg", "spark", "sail", "trino"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
TITLES: dict[EngineName, str] = {
    "duckdb": "DuckDB, in its shell",
    "duckdb-python": "DuckDB, in Python",
    "polars": "Polars, in Python",
    "pyiceberg": "PyIceberg, in Python",
    "spark": "Spark without Windrow, with Iceberg's runtime, in Python",
    "sail": "Sail, in Python",
    "trino": "Trino, its file `etc/catalog/windrow.properties`",
}
# Names the token in the environment; the token itself is never printed.
_VARIABLE = "WINDROW_TOKEN"
_IN_PYTHON = f'os.environ["{_VARIABLE}"]'
_ROWS = 10
_RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"


@dataclass(frozen=True, slots=True)
class Opening:
    """What engines open.

    Attributes:
        url: URL of the coordinator.
        table: Name of a table; None for the catalog alone.
        has_token: Whether callers identify themselves by a token.
    """

    url: str
    table: str | None
    has_token: bool

    def lines(self, engine: EngineName) -> str:
        """Return the lines for an engine."""
        return {
            "duckdb": self._duckdb,
            "duckdb-python": self._duckdb_python,
            "polars": self._polars,
            "pyiceberg": self._pyiceberg,
            "spark": self._spark,
            "sail": self._sail,
            "trino": self._trino,
        }[engine]()

    @property
    def _uri(self) -> str:
        return f"{self.url.rstrip('/')}/iceberg"

    @property
    def _levels(self) -> tuple[str, str]:
        """The table's namespace and its own name."""
        namespace, _, name = (self.table or "").rpartition(".")
        return namespace or "default", name

    def _duckdb(self) -> str:
        secret = f"CREATE SECRET windrow (TYPE iceberg, TOKEN getenv('{_VARIABLE}'));"
        return _text(
            "INSTALL iceberg;",
            "LOAD iceberg;",
            secret if self.has_token else None,
            f"{self._attach};",
            f"{self._in_duckdb};",
        )

    def _duckdb_python(self) -> str:
        secret = (
            f'connection.execute("CREATE SECRET windrow (TYPE iceberg, TOKEN ?)", [{_IN_PYTHON}])'
        )
        return _text(
            *self._imports("import duckdb"),
            "connection = duckdb.connect()",
            'connection.execute("INSTALL iceberg; LOAD iceberg")',
            secret if self.has_token else None,
            f'connection.execute("{self._attach}")',
            f"print(connection.sql('{self._in_duckdb}'))",
        )

    @property
    def _attach(self) -> str:
        login = "SECRET windrow" if self.has_token else "AUTHORIZATION_TYPE 'none'"
        options = f"ENDPOINT '{self._uri}', SUPPORT_NESTED_NAMESPACES true, {login}"
        return f"ATTACH '' AS windrow (TYPE iceberg, {options})"

    @property
    def _in_duckdb(self) -> str:
        if self.table is None:
            return "SHOW ALL TABLES"
        namespace, name = self._levels
        return f'FROM windrow."{namespace}"."{name}" LIMIT {_ROWS}'

    def _polars(self) -> str:
        if self.table is None:
            return self._pyiceberg()
        return _text(
            *self._imports("import polars as pl", "from pyiceberg.catalog.rest import RestCatalog"),
            self._catalog_of_polars,
            f'rows = pl.scan_iceberg(catalog.load_table("{".".join(self._levels)}"))',
            f"print(rows.head({_ROWS}).collect())",
        )

    def _pyiceberg(self) -> str:
        reading = (
            "print([catalog.list_tables(space) for space in catalog.list_namespaces()])"
            if self.table is None
            else f'table = catalog.load_table("{".".join(self._levels)}")\n'
            f"print(table.scan(limit={_ROWS}).to_arrow())"
        )
        return _text(
            *self._imports("from pyiceberg.catalog.rest import RestCatalog"),
            self._rest_catalog,
            reading,
        )

    @property
    def _rest_catalog(self) -> str:
        token = f", token={_IN_PYTHON}" if self.has_token else ""
        return f'catalog = RestCatalog("windrow", uri="{self._uri}"{token})'

    @property
    def _catalog_of_polars(self) -> str:
        # Tables that PyIceberg would misread are refused to its client, but for this header.
        header = ', **{"header.X-Windrow-Reader": "polars"})'
        return self._rest_catalog.removesuffix(")") + header

    def _spark(self) -> str:
        settings = {
            "spark.jars.packages": f'"{_RUNTIME}"',
            "spark.sql.catalog.windrow": '"org.apache.iceberg.spark.SparkCatalog"',
            "spark.sql.catalog.windrow.type": '"rest"',
            "spark.sql.catalog.windrow.uri": f'"{self._uri}"',
        }
        if self.has_token:
            settings["spark.sql.catalog.windrow.token"] = _IN_PYTHON
        return _text(
            *self._imports("from pyspark.sql import SparkSession"),
            "# For Spark 4.1: other releases have a runtime of their own.",
            "builder = SparkSession.builder",
            *(f'builder.config("{name}", {value})' for name, value in settings.items()),
            "spark = builder.getOrCreate()",
            self._in_spark,
        )

    def _sail(self) -> str:
        # Sail reads a list of TOML, in which JSON's texts are texts, too.
        catalog = f'{{type = "iceberg-rest", name = "windrow", uri = {json.dumps(self._uri)}'
        text = f"'[{catalog}}}]'"
        if self.has_token:
            text = f"'[{catalog}, bearer_access_token = \"' + {_IN_PYTHON} + '\"}}]'"
        return _text(
            *self._imports(
                "from pysail.spark import SparkConnectServer",
                "from pyspark.sql import SparkSession",
                needs_environment=True,
            ),
            f'os.environ["SAIL_CATALOG__LIST"] = {text}',
            "server = SparkConnectServer()",
            "server.start()",
            "_, port = server.listening_address",
            'spark = SparkSession.builder.remote(f"sc://localhost:{port}").getOrCreate()',
            self._in_spark,
        )

    @property
    def _in_spark(self) -> str:
        if self.table is None:
            return 'spark.sql("SHOW NAMESPACES IN windrow").show()'
        namespace, name = self._levels
        if not namespace.isidentifier():
            namespace = f"`{namespace}`"
        return f'spark.table("windrow.{namespace}.`{name}`").show({_ROWS})'

    def _trino(self) -> str:
        namespace, name = self._levels
        return _text(
            "connector.name=iceberg",
            "iceberg.catalog.type=rest",
            f"iceberg.rest-catalog.uri={self._uri}",
            "iceberg.rest-catalog.nested-namespace-enabled=true",
            "iceberg.rest-catalog.security=OAUTH2" if self.has_token else None,
            f"iceberg.rest-catalog.oauth2.token=${{ENV:{_VARIABLE}}}" if self.has_token else None,
            "# Otherwise Trino's `remove_orphan_files` would delete files below tables.",
            "iceberg.security=READ_ONLY",
            "# For metadata, and files on disks.",
            "fs.hadoop.enabled=true",
            "# For files on S3, remove the # of the next line. Trino finds region and keys as AWS's own",
            "# programs do, such as in AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
            "# fs.native-s3.enabled=true",
            None if self.table is None else f'# SELECT * FROM windrow."{namespace}"."{name}"',
        )

    def _imports(self, *lines: str, needs_environment: bool = False) -> tuple[str, ...]:
        own = ("import os", "") if self.has_token or needs_environment else ()
        return (*own, *lines, "")


def _text(*lines: str | None) -> str:
    return "\n".join(line for line in lines if line is not None)
