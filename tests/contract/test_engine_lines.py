"""The lines that `windrow engines` prints work as they are printed."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

import windrow
from tests.programs.other_engines import row_texts
from tests.support.engines.cases import CASES
from tests.support.engines.environment import duckdb_home, python_with_engines
from tests.support.laws import a_few, is_nightly
from tests.support.processes.environments import python_with, skipped_without
from tests.support.servers.coordinators import running
from tests.support.servers.maven import jar_of
from tests.support.servers.s3 import s3_server
from tests.support.servers.trino import trino_server
from tests.support.spark.older_spark import python_with_spark
from tests.support.tables import hive
from windrow_cli.app import run
from windrow_cli.engine_lines import ENGINES, EngineName, Opening
from windrow_service import administration
from windrow_service.settings import Settings

pytestmark = pytest.mark.slow

AT_NIGHT = pytest.mark.skipif(not is_nightly(), reason="what it needs is large")
_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Site:
    """A coordinator that requires tokens, and the environment of somebody who has one."""

    url: str
    token: str
    environment: Mapping[str, str]

    def printed(self, *words: str) -> str:
        """Return what `windrow engines` prints."""
        out = StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out):
            patch.setenv("WINDROW_TOKEN", self.token)
            assert run(["engines", "--url", self.url, *words]) == 0
        return out.getvalue()

    def answer(self, program: list[str], text: str, **more: str) -> str:
        """Return what a program prints that gets a text as its input."""
        result = subprocess.run(
            program,
            input=text,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
            env={**self.environment, **more},
        )
        assert result.returncode == 0, result.stderr
        return result.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("lines")
    settings = Settings(
        state_dir=folder / "state", port=0, allowed_locations=(str(folder),), require_tokens=True
    )

    async def create() -> str:
        async with administration.open_tokens(settings) as tokens:
            return (await tokens.create("all", ("admin",), None))[1]

    with running(settings) as url, start_blocking_portal() as portal:
        token = portal.call(create)
        with windrow.connect(url, token=token) as client:
            for name in ("plain", "mine.t", "mine.deep-er.t"):
                client.register_table(name, str(hive.write_events(folder / name)))
                client.refresh(name)
            (folder / "lines").mkdir()
            client.register_table("mine.lines", str(folder / "lines"), "text")
            client.refresh("mine.lines")
        home = duckdb_home(folder / "home")
        yield Site(url, token, {**os.environ, "HOME": str(home), "WINDROW_TOKEN": token})


TABLES = ("plain", "mine.t", "mine.deep-er.t")


@pytest.mark.parametrize("table", a_few(TABLES, 2))
def test_duckdb_reads_a_table_by_them(site: Site, table: str) -> None:
    python = python_with_engines()
    shell = [str(Path(python).with_name("duckdb")), "-bail"]

    in_shell = site.answer(shell, site.printed(table, "--engine", "duckdb"))
    in_python = site.answer([python, "-"], site.printed(table, "--engine", "duckdb-python"))

    assert in_shell.count("│ name-") == in_python.count("│ name-") == 10


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", ["polars", "pyiceberg"])
def test_polars_and_pyiceberg_read_a_table_by_them(
    site: Site, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDROW_TOKEN", site.token)
    for table in TABLES:
        out, names = StringIO(), {"__name__": "printed"}
        with redirect_stdout(out):
            exec(site.printed(table, "--engine", engine), names)
        names["catalog"].close()  # type: ignore[attr-defined]
        assert out.getvalue().count("name-") == 10


def test_without_a_table_engines_list_the_catalog(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDROW_TOKEN", site.token)
    shell = [str(Path(python_with_engines()).with_name("duckdb")), "-bail"]
    names = {"__name__": "printed"}
    out = StringIO()

    in_shell = site.answer(shell, site.printed("--engine", "duckdb"))
    with redirect_stdout(out):
        exec(site.printed("--engine", "pyiceberg"), names)
    names["catalog"].close()  # type: ignore[attr-defined]

    assert "│ mine" in in_shell
    assert "│ mine.deep-er" in in_shell
    assert "('mine', 't')" in out.getvalue()


def test_duckdb_lists_nested_namespaces_once_with_its_option_and_without(site: Site) -> None:
    shell = [str(Path(python_with_engines()).with_name("duckdb")), "-bail", "-csv", "-noheader"]
    lines = site.printed("--engine", "duckdb").replace(
        "SHOW ALL TABLES", "SELECT 'row', schema, name FROM (SHOW ALL TABLES) ORDER BY ALL"
    )
    without = lines.replace("SUPPORT_NESTED_NAMESPACES true, ", "")
    assert without != lines

    for text in (lines, without):
        rows = re.findall(r"row,([a-z.-]+,[a-z]+)", site.answer(shell, text))
        assert rows == ["default,plain", "mine,t", "mine.deep-er,t"]


@AT_NIGHT
@pytest.mark.parametrize("table", [*TABLES, ""])
def test_spark_reads_a_table_by_them(site: Site, table: str) -> None:
    text = site.printed(*filter(None, [table]), "--engine", "spark")
    (package,) = [line.split('"')[3] for line in text.splitlines() if "packages" in line]
    # Spark finds it where Maven keeps what it has fetched.
    jar_of(package)

    own = {"HOME": os.environ["HOME"], "SPARK_LOCAL_IP": "127.0.0.1"}
    with skipped_without("Spark 4.1"):
        python = python_with_spark("4.1.4")
    rows = site.answer([python, "-"], text, **own)

    assert ("|name-" if table else "mine") in rows


@AT_NIGHT
@pytest.mark.parametrize("table", TABLES)
def test_sail_reads_a_table_by_them(site: Site, table: str) -> None:
    with skipped_without("Sail"):
        python = python_with(
            ["pyspark==4.2.1", "pysail==0.7.2"], ".venv-sail", ".installed", "--no-deps"
        )

    assert "name-" in site.answer([python, "-"], site.printed(table, "--engine", "sail"))


@AT_NIGHT
def test_trino_reads_tables_by_them(site: Site, tmp_path: Path) -> None:
    texts = [site.printed(table, "--engine", "trino") for table in TABLES]
    (settings,) = {text.rpartition("# SELECT")[0] for text in texts}
    statements = [text.rpartition("\n# ")[2].strip() for text in texts]

    with trino_server(tmp_path / "trino", {"windrow": settings}, WINDROW_TOKEN=site.token) as trino:
        *tables, schemas = trino.answers([*statements, "SHOW SCHEMAS FROM windrow"])

    for rows in tables:
        assert len(rows) == 60
    assert "['mine.deep-er']" in schemas


@AT_NIGHT
def test_trino_reads_tables_on_s3_by_them_and_the_environment(tmp_path: Path) -> None:
    cases = [case for case in CASES if case.name in ("partitioned", "characters")]
    with s3_server() as s3:
        settings = Settings(state_dir=tmp_path / "state", port=0, allowed_locations=("s3://lake",))
        with running(settings) as url, windrow.connect(url) as client:
            for case in cases:
                case.write(tmp_path / case.name)
                location = s3.upload(tmp_path / case.name, "lake", case.name)
                client.register_table(f"mine.{case.name}", location)
                client.refresh(f"mine.{case.name}")
            printed = Opening(url, None, has_token=False).lines("trino")
            lines = printed.replace("# fs.native-s3", "fs.native-s3")
            statements = [f"SELECT * FROM windrow.mine.{case.name}" for case in cases]

            with trino_server(tmp_path / "trino", {"windrow": lines}, **s3.environment) as trino:
                answers = trino.answers(statements)

    assert len(cases) == 2
    assert answers == [row_texts(case.rows) for case in cases]


def test_all_lines_are_printed_together_and_never_the_token(site: Site) -> None:
    text = site.printed("mine.t")

    assert site.token not in text
    for engine in ENGINES:
        assert site.printed("mine.t", "--engine", engine) in text


@pytest.mark.parametrize("engine", ENGINES)
def test_lines_name_a_token_only_if_there_is_one(
    site: Site,
    engine: EngineName,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("WINDROW_TOKEN", raising=False)

    assert run(["engines", "--engine", engine]) == 0

    assert "token" not in capsys.readouterr().out.lower()
    assert "WINDROW_TOKEN" in site.printed("--engine", engine)


def test_a_table_that_engines_cannot_read_is_refused_with_the_remedy(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WINDROW_TOKEN", site.token)

    assert run(["engines", "mine.lines", "--url", site.url]) == 1

    printed = capsys.readouterr()
    assert not printed.out
    assert "'mine.lines' cannot be read by other engines" in printed.err
    assert "rewrite it as Parquet files and register these" in printed.err
