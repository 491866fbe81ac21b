"""Every function that people call has an example in its docstring, which does what it says."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from types import FunctionType, GeneratorType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.documents.reference import public_functions
from tests.support.laws import a_few
from tests.support.servers import embedded
from tests.support.servers.coordinators import running
from windrow_calls.errors import NotFoundError, ProblemError
from windrow_core.cards import MAX_LINE
from windrow_core.models import WriteUpdate
from windrow_service.settings import Settings

FUNCTIONS = {
    name: function for section in public_functions().values() for name, function in section.items()
}
# Nothing runs that could be stopped, and no worker.
REFUSALS: dict[str, type[ProblemError]] = {
    "client.cancel_refresh": NotFoundError,
    "client.forget_worker": NotFoundError,
}


def example_of(function: FunctionType) -> str:
    """Return the code of a docstring, or nothing."""
    text = inspect.getdoc(function) or ""
    section = text.partition("\nExample:\n")[2]
    block = re.search(r"^```python\n(.*?)^```", text, re.M | re.S)
    return textwrap.dedent(section).strip() if section else block[1] if block else ""


def a_snapshot(client: windrow.Client) -> dict[str, Any]:
    client.refresh("sales.copies")
    return {}


def november(client: windrow.Client) -> dict[str, Any]:
    client.cache_table("sales.events", "ds >= '2026-11-01'", rule="november")
    return {}


def a_write(client: windrow.Client) -> dict[str, Any]:
    update = WriteUpdate(mode="append", state="staging", host="here", process=1)
    client.put_write("sales.events", "0" * 32, update)
    return {}


def a_policy(client: windrow.Client) -> dict[str, Any]:
    client.set_policy("sales.*", min_age_seconds=3600)
    return {}


# What an example needs that an earlier one made.
PREPARATIONS: dict[str, Callable[[windrow.Client], dict[str, Any]]] = {
    "client.cache_rule": november,
    "client.publish_delta": a_snapshot,
    "client.drop_cache": november,
    "client.warm": november,
    "client.policy": a_policy,
    "client.remove_policy": a_policy,
    "client.cancel_write": a_write,
    "client.revoke_token": lambda client: {"token": client.create_token("bo", scopes=["read"])},
}


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with running(Settings(state_dir=folder / "state", allowed_locations=(str(folder),))) as url:
        yield url


@pytest.fixture(scope="module")
def client(url: str, folder: Path, spark: SparkSession) -> Iterator[windrow.Client]:
    events = folder / "events"
    for day in range(1, 4):
        for part in range(3):
            target = events / f"ds=2026-11-0{day}"
            target.mkdir(parents=True, exist_ok=True)
            rows = {"id": [part], "country": ["SE"], "amount": [1.5]}
            pq.write_table(pa.table(rows), target / f"part-{part}.parquet")
    for name in ("rates", "copies", "old_events", "imports", "clicks"):
        (folder / name).mkdir()
    (folder / "clicks" / "a.json").write_text('{"page": "/", "at": 3}\n')
    keys = "id AS customer, 1.5D AS total"
    for name in ("orders", "customers"):
        rows = spark.range(10).selectExpr(*keys.split(", "))
        path = str(folder / name)
        rows.write.bucketBy(2, "customer").option("path", path).saveAsTable(f"doc_{name}")
    spark.sql(f"CREATE DATABASE shop LOCATION '{folder}/shop'")
    spark.sql(f"CREATE DATABASE sales LOCATION '{folder}/sales'")
    spark.sql("CREATE TABLE shop.items USING parquet AS SELECT 1 AS id")
    columns = "id BIGINT, country STRING, amount DOUBLE, ds DATE"
    spark.sql(
        f"CREATE TABLE sales.events ({columns}) USING parquet PARTITIONED BY (ds) LOCATION '{events}'"
    )
    with windrow.connect(url) as client:
        client.register_table("sales.events", str(events))
        for name in ("orders", "customers"):
            spec = {"columns": ["customer"], "count": 2}
            client.register_table(f"sales.{name}", str(folder / name), bucket_spec=spec)
            client.refresh(f"sales.{name}")
        for name in ("copies", "old_events", "imports"):
            client.register_table(
                f"sales.{name}",
                str(folder / name),
                columns={"id": "bigint"},
                partition_columns={"ds": "date"},
            )
        listed = pa.table({"values": [["2026-11-01"]], "location": [str(folder / "imports" / "a")]})
        client.set_partitions("sales.imports", listed)
        client.refresh("sales.events")
        client.write(new_events(spark), "sales.events")
        yield client
    for name in ("doc_orders", "doc_customers", "shop.items", "sales.events"):
        spark.sql(f"DROP TABLE {name}")
    spark.sql("DROP DATABASE shop")
    spark.sql("DROP DATABASE sales")


def new_events(spark: SparkSession) -> Any:
    columns = "id BIGINT, country STRING, amount DOUBLE, ds DATE"
    return spark.createDataFrame([(9, "FR", 2.5, date(2026, 11, 4))], columns)


def run_cell(code: str, names: dict[str, Any]) -> list[Any]:
    """Run the code of a cell; return what it shows or sets."""
    tree = ast.parse(code)
    before = dict(names)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    values = [value for name, value in names.items() if before.get(name) is not value]
    if isinstance(last, ast.Expr):
        values.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
    return values


def check_display(value: Any) -> None:
    """Make sure that a notebook shows something short of what a cell returns."""
    assert not isinstance(value, GeneratorType)
    if type(value).__module__.partition(".")[0] in ("windrow", "windrow_core", "windrow_spark"):
        assert len(repr(value)) <= MAX_LINE
        assert "object at 0x" not in repr(value)
        assert value._repr_html_().startswith("<div")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_public_function_has_an_example(name: str) -> None:
    assert example_of(FUNCTIONS[name])


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("name", a_few(list(FUNCTIONS), 3))
def test_an_example_runs(
    name: str,
    spark: SparkSession,
    client: windrow.Client,
    url: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WINDROW_URL", url)
    (tmp_path / ".windrow").mkdir()
    embedded.upgraded(tmp_path / ".windrow")
    names: dict[str, Any] = {
        "windrow": windrow,
        "client": client,
        "spark": spark,
        "url": url,
        "new_events": new_events(spark),
        "df": client.read(spark, "sales.events"),
    }
    names |= PREPARATIONS.get(name, lambda _: {})(client)
    code = example_of(FUNCTIONS[name]).replace("/data/", f"{folder}/")
    code = code.replace("http://127.0.0.1:8080", url)

    try:
        if name in REFUSALS:
            with pytest.raises(REFUSALS[name]):
                run_cell(code, names)
        else:
            for value in run_cell(code, names):
                check_display(value)
    finally:
        spark.conf.unset("spark.windrow.max_split_size")
        spark.catalog.dropTempView("events")
        if names["client"] is not client:
            names["client"].close()
