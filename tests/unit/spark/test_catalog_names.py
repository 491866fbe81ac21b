"""Names of tables as Spark's catalogs have them."""

from __future__ import annotations

import pytest

from windrow_spark.sql.names import namespaces_in, parts_of, quoted, tables_in

NAMES = ["events", "sales.events", "sales.items", "lake.sales.events", "Sales.odd", "default.old"]


@pytest.mark.parametrize(
    ("table", "namespace", "name"),
    [
        ("events", ("default",), "events"),
        ("sales.events", ("sales",), "events"),
        ("lake.sales.events", ("lake", "sales"), "events"),
    ],
)
def test_the_parts_of_a_name_before_the_last_are_its_namespace(
    table: str, namespace: tuple[str, ...], name: str
) -> None:
    assert parts_of(table) == (namespace, name)


def test_a_namespace_has_the_tables_whose_names_begin_with_it() -> None:
    assert tables_in(NAMES, ["sales"], case_sensitive=True) == ["sales.events", "sales.items"]
    assert tables_in(NAMES, ["SALES"], case_sensitive=False) == [
        "sales.events",
        "sales.items",
        "Sales.odd",
    ]
    assert tables_in(NAMES, ["lake", "sales"], case_sensitive=True) == ["lake.sales.events"]
    # A namespace without tables of its own, one that is always there, and one that is not.
    assert tables_in(NAMES, ["lake"], case_sensitive=True) == []
    assert tables_in([], ["default"], case_sensitive=True) == []
    assert tables_in(NAMES, ["absent"], case_sensitive=False) is None


def test_tables_without_dots_are_in_the_default_namespace() -> None:
    default = ["events", "default.old"]

    assert tables_in(NAMES, [], case_sensitive=True) == default
    assert tables_in(NAMES, ["default"], case_sensitive=True) == default


def test_namespaces_are_listed_one_level_at_a_time() -> None:
    assert namespaces_in(NAMES, [], case_sensitive=True) == [
        ("Sales",),
        ("default",),
        ("lake",),
        ("sales",),
    ]
    assert namespaces_in(NAMES, ["lake"], case_sensitive=True) == [("lake", "sales")]
    assert namespaces_in(NAMES, ["sales"], case_sensitive=True) == []
    assert namespaces_in(NAMES, ["absent"], case_sensitive=True) is None


def test_a_quoted_part_is_one_part_whatever_is_in_it() -> None:
    assert quoted("a`b.c") == "`a``b.c`"
