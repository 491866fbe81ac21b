"""The check that one room alone removes, renames and overwrites files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.removals import callers, removals

FORBIDDEN = """
import os; os.remove(path)
import os as system; system.unlink(path)
from os import rmdir as gone; gone(path)
from os import replace; replace(one, other)
import os; for_each(os.rename, paths)
import os; act = os.removedirs
import os; getattr(os, "unlink")(path)
import shutil; shutil.rmtree(path)
from shutil import move; move(one, other)
from shutil import copyfile; copyfile(one, other)
from pathlib import Path; Path(path).unlink()
path.unlink(missing_ok=True)
path.rmdir()
path.rename(other)
path.replace(other)
for_each(path.rename, others)
path.write_text("x")
path.write_bytes(b"x")
open(path, "w")
open(path, mode="wb")
path.open("a")
open(path, "r+b")
import tempfile; tempfile.NamedTemporaryFile(delete=False)
import tempfile; tempfile.mkdtemp()
import pyarrow.parquet as pq; pq.write_table(table, path)
import pyarrow.fs; file_system.delete_dir(path)
file_system.delete_file(path)
import obstore; obstore.delete(store, keys)
from windrow_core.files import hadoop; hadoop.remove(uri)
from windrow_core.files.hadoop import rename; rename(one, other)
from windrow_core.files.objects.requests import requests; requests().remove(uris, traffic)
requests().upload(path, uri, traffic)
rows.write.mode("overwrite").parquet(path)
""".strip().splitlines()
HARMLESS = """
text.replace("a", "b")
from dataclasses import replace; replace(plan, name="x")
at.replace(tzinfo=None)
names.remove(name)
staging.remove()
table.rename_columns(names)
import sqlalchemy as sa; connection.execute(sa.delete(rows))
open(path)
open(path, "rb")
open(path, "xb")
import tempfile; tempfile.TemporaryDirectory()
router.delete("/tables")
root.remove_file(path, proof)
rows.write.mode("append").parquet(path)
plan.delete_files
rules.replace
""".strip().splitlines()


def test_nothing_else_changes_files() -> None:
    assert removals() == []


def _planted(folder: Path, text: str, name: str = "spark/windrow_spark/new.py") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return folder


@pytest.mark.parametrize("text", FORBIDDEN)
def test_each_other_way_to_change_files_is_seen(tmp_path: Path, text: str) -> None:
    (call, *_) = removals(_planted(tmp_path, text))
    assert (call.path, call.line) == ("spark/windrow_spark/new.py", 1)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_has_a_like_name_and_is_none_of_files_is_let_pass(tmp_path: Path, text: str) -> None:
    assert removals(_planted(tmp_path, text)) == []


def test_java_is_looked_at_too(tmp_path: Path) -> None:
    text = "class New {\n  void go() { files.delete(path, true); }\n}"
    assert len(removals(_planted(tmp_path, text, "spark/windrow_spark/New.java"))) == 1


def test_callers_of_the_room_are_seen_by_name(tmp_path: Path) -> None:
    text = "class One:\n  def go(self):\n    self.root.remove_tree(path, proof)\n"
    folder = _planted(tmp_path, text + "def two(root):\n  root.move(one, other)\n")
    changes = {"windrow_spark.new.One": {"remove_tree"}, "windrow_spark.new.two": {"move"}}
    assert callers(folder) == changes
