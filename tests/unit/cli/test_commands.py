"""The commands, against a real coordinator process."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import Command, Said


@pytest.fixture
def refreshed(windrow: Command, sales: Path) -> str:
    windrow("table", "register", "sales.events", str(sales))
    assert windrow("table", "refresh", "sales.events").code == 0
    return "sales.events"


def _json(said: Said) -> Any:
    assert (said.code, said.err) == (0, "")
    return json.loads(said.out)


def _one_line(said: Said) -> str:
    assert said.out == ""
    assert said.err.startswith("windrow: ")
    assert said.err.count("\n") == 1
    return said.err


def test_register_shows_the_location_and_the_next_step(windrow: Command, sales: Path) -> None:
    said = windrow("table", "register", "fresh.events", str(sales))

    assert said.code == 0
    assert str(sales) in said.out.replace("\n", "")
    assert "windrow table refresh fresh.events" in said.out


def test_register_reports_a_missing_folder(windrow: Command, tables_root: Path) -> None:
    said = windrow("table", "register", "later.events", str(tables_root / "later"))

    assert said.code == 0
    assert "there is no such folder on this machine" in " ".join(said.out.split())


def test_register_of_another_location_needs_replace(
    windrow: Command, sales: Path, tables_root: Path
) -> None:
    windrow("table", "register", "moved.events", str(sales))
    windrow("table", "refresh", "moved.events")
    elsewhere = ("table", "register", "moved.events", str(tables_root / "elsewhere"))

    refused = windrow(*elsewhere)
    made = windrow(*elsewhere, "--replace", "--json")

    assert refused.code == 1
    said = " ".join(refused.err.split())
    assert "has 1 snapshot, which its new location would drop" in said
    assert "allow it with --replace" in said
    assert _json(made)["current_snapshot"] is None


def test_register_passes_on_types_buckets_and_order(windrow: Command, sales: Path) -> None:
    said = windrow(
        *("table", "register", "typed.events", str(sales), "--json"),
        *("--partition", "ds:date", "--column", "id:bigint", "--column", "amount:bigint"),
        *("--bucket-columns", "id", "--buckets", "8"),
        *("--sort", "amount:desc:nulls-first", "--sort", "id"),
    )

    definition = _json(said)["definition"]
    assert definition["partition_columns"] == [{"name": "ds", "type": "date"}]
    assert [column["name"] for column in definition["columns"]] == ["id", "amount"]
    assert definition["bucket_spec"] == {"columns": ["id"], "count": 8}
    assert definition["sort_columns"] == [
        {"name": "amount", "descending": True, "nulls_first": True},
        {"name": "id", "descending": False, "nulls_first": None},
    ]


def test_a_transactional_table_is_refreshed_with_its_write_ids(
    windrow: Command, tables_root: Path, sales: Path
) -> None:
    location = tables_root / "inserts"
    shutil.copytree(sales, location)
    partition = next(path for path in sorted(location.iterdir()) if path.is_dir())
    for write in (1, 2):
        folder = partition / f"delta_000000{write}_000000{write}_0000"
        shutil.copytree(partition, folder, ignore=shutil.ignore_patterns("delta_*"))
    windrow("table", "register", "acid.inserts", str(location), "--transactional", "insert-only")
    files = _json(windrow("table", "refresh", "acid.inserts", "--json"))["snapshot"]["file_count"]

    said = windrow("table", "refresh", "acid.inserts", "--valid-write-ids", "db.t:1:9::", "--json")

    assert _json(said)["snapshot"]["file_count"] < files
    shown = windrow("table", "show", "acid.inserts").out
    assert "insert-only" in shown
    assert "db.t:1:9::" in shown
    refused = windrow("table", "refresh", "acid.inserts")
    assert "'on-disk'" in _one_line(refused)


def test_register_of_a_format_that_is_not_refreshed_does_not_offer_a_refresh(
    windrow: Command, sales: Path
) -> None:
    said = windrow("table", "register", "lines.events", str(sales), "--format", "csv")

    assert "is registered" in said.out
    assert "refresh" not in said.out


def test_register_infers_the_columns_of_lines(windrow: Command, tables_root: Path) -> None:
    folder = tables_root / "rates" / "day=2026-11-01"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("id,name,day\n1,Anna,x\n2,,x\n")
    register = ("table", "register", "sales.rates", str(folder.parent), "--format", "csv")

    said = windrow(*register, "--infer", "--format-option", "header=true", "--json")
    refreshed = windrow("table", "refresh", "sales.rates")
    # The folder has a column of this name.
    columns = [("id", "int"), ("name", "string")]
    definition = _json(said)["definition"]
    assert [(one["name"], one["type"]) for one in definition["columns"]] == columns
    assert "1 file" in refreshed.out

    (folder / "b.csv").write_text("id,name,day\n1e3,Anna,x\n")
    unsure = windrow(*register, "--infer", "--format-option", "header=true")
    assert "column 'id' has values such as '1e3', so only Spark can tell" in _one_line(unsure)
    both = windrow(*register, "--infer", "--column", "id:int")
    assert "give only one" in " ".join(both.err.split())
    neither = windrow("table", "register", "sales.rates", str(folder.parent), "--infer")
    assert "columns of parquet are not inferred" in _one_line(neither)


def test_register_takes_a_relative_location_from_the_current_folder(
    windrow: Command, sales: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sales.parent)

    said = windrow("table", "register", "relative.events", "sales", "--json")

    assert _json(said)["definition"]["location"] == str(sales.resolve())


def test_list_shows_every_table(windrow: Command, refreshed: str) -> None:
    said = windrow("table", "list")

    row = next(line for line in said.out.splitlines() if line.lstrip().startswith(refreshed))
    assert "60" in row
    assert refreshed in {
        table["name"] for table in _json(windrow("table", "list", "--json"))["tables"]
    }


def test_show_names_columns_and_snapshot(windrow: Command, refreshed: str) -> None:
    said = windrow("table", "show", refreshed)

    assert "6 files, 60 rows" in said.out
    assert "\ncolumn\ttype\tuse\nds\tdate\tpartition\nid\tbigint\t\namount\tbigint\t\n" in said.out
    assert _json(windrow("table", "show", refreshed, "--json"))["name"] == refreshed


def test_show_of_a_table_without_a_snapshot_says_how_to_make_one(
    windrow: Command, sales: Path
) -> None:
    windrow("table", "register", "unseen.events", str(sales))

    assert "windrow table refresh unseen.events" in windrow("table", "show", "unseen.events").out


def test_refresh_reports_new_files_and_then_none(windrow: Command, sales: Path) -> None:
    windrow("table", "register", "again.events", str(sales))

    first = windrow("table", "refresh", "again.events")
    second = windrow("table", "refresh", "again.events")

    assert "6 files added, 0 removed" in first.out
    assert "nothing new" in second.out
    status = _json(windrow("table", "refresh", "again.events", "--json"))
    assert (status["status"], status["changed"]) == ("done", False)


def test_refresh_names_an_unreadable_file(windrow: Command, tables_root: Path) -> None:
    folder = tables_root / "broken"
    folder.mkdir(exist_ok=True)
    (folder / "part-0.parquet").write_text("not Parquet")
    windrow("table", "register", "broken.events", str(folder))

    said = windrow("table", "refresh", "broken.events")

    assert said.code == 1
    assert said.err.startswith("windrow: ")
    assert "part-0.parquet" in said.err
    assert "Traceback" not in said.err


def test_alter_changes_the_plan_options_that_show_and_explain_report(
    windrow: Command, sales: Path
) -> None:
    table = "optional.events"
    windrow("table", "register", table, str(sales), "--option", "max-split-size=1MB")
    windrow("table", "refresh", table)

    said = windrow("table", "alter", table, "--option", "strategy=tez", "--drop", "max_split_size")

    assert (said.code, said.out) == (0, f"{table}: plan options strategy=tez\n")
    assert "strategy=tez" in windrow("table", "show", table).out
    explained = windrow("explain", table, "--parallelism", "2").out
    rows = [line.split() for line in explained.partition("\nOptions\n")[2].splitlines()]
    assert ["strategy", "tez", "table"] in rows
    assert ["parallelism", "2", "request"] in rows
    assert ["max_split_size", "64", "MB", "default"] in rows


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--option", "max_splitsize=1MB"], "did you mean 'max_split_size'?"),
        (["--option", "max_split_size"], "is not NAME=VALUE"),
        ([], "nothing to change"),
    ],
)
def test_alter_names_the_fault(
    windrow: Command, refreshed: str, given: list[str], said: str
) -> None:
    altered = windrow("table", "alter", refreshed, *given)

    assert altered.code != 0
    assert said in _one_line(altered)


def test_delete_forgets_the_table_and_keeps_its_files(windrow: Command, sales: Path) -> None:
    windrow("table", "register", "gone.events", str(sales))
    windrow("table", "register", "gone.too", str(sales))

    assert windrow("table", "delete", "gone.events").code == 0
    assert _json(windrow("table", "delete", "gone.too", "--json")) == {"deleted": "gone.too"}

    assert windrow("table", "show", "gone.events").code == 1
    assert len(list(sales.rglob("*.parquet"))) == 6


def test_plan_shows_figures_and_the_picture(windrow: Command, refreshed: str) -> None:
    said = windrow("plan", refreshed, "--filter", "ds >= '2026-11-02'", "--columns", "id")

    assert said.code == 0
    assert "\nfiles\t4 of 6\n" in said.out
    assert "\npartition values\t2\t" in said.out
    assert "Files before: 4 files" in said.out
    assert "Groups after: 1 group" in said.out
    assert "512 B\u20131 KB\t4" in said.out


def test_plan_as_json_has_the_summary_and_figures_of_its_groups(
    windrow: Command, refreshed: str
) -> None:
    plan = _json(windrow("plan", refreshed, "--parallelism", "3", "--json"))

    assert plan["summary"]["files_planned"] == 6
    assert [group["split_count"] for group in plan["groups"]] == [2, 2, 2]
    assert "splits" not in plan["groups"][0]


def test_plan_passes_on_strategy_and_size(windrow: Command, refreshed: str) -> None:
    said = windrow(
        "plan", refreshed, "--strategy", "openlookeng", "--max-split-size", "2KB", "--json"
    )

    options = _json(said)["options"]
    assert (options["strategy"], options["max_split_size"]) == ("openlookeng", 2048)


def test_a_plan_of_no_files_has_no_picture(windrow: Command, refreshed: str) -> None:
    said = windrow("plan", refreshed, "--filter", "ds = '2030-01-01'")

    assert said.code == 0
    assert "Groups after: none" in said.out


def test_a_filter_error_keeps_its_lines_and_its_caret(windrow: Command, refreshed: str) -> None:
    said = windrow("plan", refreshed, "--filter", "amount ~ 5")

    assert said.code == 1
    lines = said.err.splitlines()
    assert lines[0].startswith("windrow: ")
    caret = next(line for line in lines if line.strip() == "^")
    text = lines[lines.index(caret) - 1]
    assert text[caret.index("^")] == "~"


def test_an_unknown_table_is_reported_in_one_line(windrow: Command) -> None:
    said = windrow("plan", "zq.zz")

    assert said.code == 1
    assert _one_line(said) == (
        "windrow: no table 'zq.zz': register it with `windrow table register zq.zz LOCATION`\n"
    )


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("plan", "sales.event"), "did you mean 'sales.events'"),
        (("table", "delete", "Sales.Events"), "did you mean 'sales.events'"),
        (("table", "refresh", "sale.events"), "did you mean 'sales.events'"),
        (("cache", "add", "salesevents", "--where", "ds > '2026'"), "did you mean 'sales.events'"),
        (("plan", "sales.events", "--columns", "amuont"), "did you mean amount?"),
        (("plan", "sales.events", "--filter", "amuont = 1"), "did you mean amount?"),
        (("plan", "sales.events", "--filtr", "amount = 1"), "Did you mean --filter?"),
        (("tabel", "list"), "Did you mean 'table'?"),
    ],
    ids=str,
)
def test_a_nearly_correct_name_gets_a_suggestion(
    windrow: Command, refreshed: str, arguments: tuple[str, ...], meant: str
) -> None:
    said = windrow(*arguments)

    assert said.code in (1, 2)
    assert meant in said.err


def test_a_missing_first_step_is_named_as_a_command(windrow: Command, sales: Path) -> None:
    windrow("table", "register", "not.refreshed", str(sales))

    said = windrow("plan", "not.refreshed")

    assert "`windrow table refresh not.refreshed` first" in _one_line(said)


def test_a_location_outside_the_allowed_folders_is_refused_in_one_line(windrow: Command) -> None:
    said = windrow("table", "register", "etc.etc", "/etc")

    assert said.code == 1
    assert "/etc" in _one_line(said)


def test_an_unknown_strategy_is_refused_in_one_line(windrow: Command, refreshed: str) -> None:
    said = windrow("plan", refreshed, "--strategy", "magic")

    assert said.code == 2
    assert "'--strategy': 'magic' is not one of 'balanced'" in _one_line(said)


def test_a_coordinator_that_does_not_answer_is_reported_in_one_line(windrow: Command) -> None:
    said = windrow("table", "list", "--url", "http://127.0.0.1:1")

    assert said.code == 1
    assert "http://127.0.0.1:1" in _one_line(said)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["plan"], "NAME"),
        (["plan", "a/b"], "'a/b' is not a table name"),
        (["plan", "a", "--max-split-size", "3Q"], "'3Q' is not a size"),
        (["plan", "a", "--parallelism", "0"], "--parallelism"),
        (["plan", "a", "--frobnicate"], "--frobnicate"),
        (["frobnicate"], "frobnicate"),
        (["table", "register", "a", "/a", "--partition", "ds"], "'ds' is not NAME:TYPE"),
        (["table", "register", "a", "/a", "--sort", "ts:up"], "'ts:up' is not NAME"),
        (["table", "register", "a", "/a", "--buckets", "8"], "--bucket-columns"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_usage_error_is_reported_in_one_line_and_exits_with_2(
    windrow: Command, arguments: list[str], what: str
) -> None:
    said = windrow(*arguments)

    assert said.code == 2
    assert what in _one_line(said)


@pytest.mark.parametrize("arguments", [[], ["table"], ["--help"], ["plan", "--help"]], ids=str)
def test_help_is_a_success(windrow: Command, arguments: list[str]) -> None:
    said = windrow(*arguments)

    assert (said.code, said.err) == (0, "")
    assert "Usage: windrow" in said.out


def test_the_version_is_shown(windrow: Command) -> None:
    assert windrow("--version").out.startswith("windrow ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "give TABLE and FILE of an inventory, or --hive"),
        (["sales.events"], "give TABLE and FILE of an inventory, or --hive"),
        (["sales.events", "--hive", "sales.*"], "--hive names the tables"),
        (["--hive", "sales.*", "--delta"], "--hive names the tables"),
        (["--hive", "sales.*", "--refresh", "some"], "'changed', 'all', 'none'"),
        (["--hive", "sales.*", "--conf", "x"], "'x' is not NAME=VALUE"),
    ],
)
def test_import_takes_an_inventory_or_tables_of_a_metastore(
    windrow: Command, arguments: list[str], says: str
) -> None:
    said = windrow("table", "import", *arguments)

    assert said.code == 2
    assert says in " ".join(said.err.replace("│", " ").split())
