"""SQL text about caches: supported statements, and errors for everything else."""

from __future__ import annotations

import pytest

from windrow_calls.cache_sql import CacheStatement, parse_cache_sql
from windrow_calls.errors import CacheSqlError


@pytest.mark.parametrize(
    ("text", "table", "filter"),
    [
        (
            "CACHE TABLE sales.events WHERE ds >= '2026-11-01'",
            "sales.events",
            "ds >= '2026-11-01'",
        ),
        ("cache table t where a = 1;", "t", "a = 1"),
        (
            "  Cache\n Table `sales` . `web-events`\twhere\n`ds`='x' ;; ",
            "sales.web-events",
            "`ds`='x'",
        ),
        ("CACHE TABLE hive.sales.events WHERE a IS NULL", "hive.sales.events", "a IS NULL"),
        (
            "/* why */ CACHE /* a */ TABLE t -- b\nWHERE /* c */ a = 1 /* d */ OR b = 2 -- e",
            "t",
            "a = 1 /* d */ OR b = 2",
        ),
        ("CACHE TABLE t WHERE a = 'x;y' -- ;", "t", "a = 'x;y'"),
        ("CACHE TABLE t WHERE a = 'it\\'s WHERE'", "t", "a = 'it\\'s WHERE'"),
        ("CACHE TABLE t WHERE (a = 1 OR b = 2)", "t", "(a = 1 OR b = 2)"),
        ("CACHE TABLE db.2026_events WHERE a = 1", "db.2026_events", "a = 1"),
        (
            "CACHE TABLE date.table WHERE date = DATE'2026-11-01'",
            "date.table",
            "date = DATE'2026-11-01'",
        ),
        ("CACHE TABLE `where` WHERE a = 'å🙂' AND b = 1", "where", "a = 'å🙂' AND b = 1"),
        # The coordinator decides whether a filter can be planned.
        ("CACHE TABLE t WHERE upper(a) = {x}", "t", "upper(a) = {x}"),
    ],
)
def test_cache_table_takes_a_table_and_its_filter_verbatim(
    text: str, table: str, filter: str
) -> None:
    assert parse_cache_sql(text) == CacheStatement("cache", table, filter)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("DROP CACHE sales.events", CacheStatement("drop", "sales.events")),
        ("drop cache t where a = 1;", CacheStatement("drop", "t", "a = 1")),
        ("DROP CACHE if", CacheStatement("drop", "if")),
        ("SHOW CACHE", CacheStatement("show")),
        ("show cache;", CacheStatement("show")),
        ("SHOW CACHE `sales`.events -- all of it", CacheStatement("show", "sales.events")),
    ],
)
def test_drop_cache_and_show_cache_need_no_filter(text: str, statement: CacheStatement) -> None:
    assert parse_cache_sql(text) == statement


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CACHE LAZY TABLE t WHERE a = 1", "CACHE LAZY TABLE is not supported"),
        ("CACHE TABLE t OPTIONS ('storageLevel' = 'DISK_ONLY')", "OPTIONS is not supported"),
        ("CACHE TABLE t AS SELECT * FROM u WHERE a = 1", "AS SELECT is not supported"),
        ("CACHE TABLE t SELECT * FROM u", "AS SELECT is not supported"),
        ("CACHE TABLE t WITH u AS (SELECT 1) SELECT * FROM u", "AS SELECT is not supported"),
        ("CACHE TABLE t PARTITION (ds = '2026-11-01')", "PARTITION is not supported"),
        ("CACHE TABLE t", "CACHE TABLE needs WHERE"),
        ("CACHE TABLE t WHERE", "nothing follows WHERE"),
        ("CACHE TABLE t WHERE -- a = 1", "nothing follows WHERE"),
        ("CACHE TABLE", "the name of a table is missing"),
        ("CACHE TABLE WHERE a = 1", "the name of a table is missing"),
        ("CACHE TABLE sales. WHERE a = 1", "the name of a table is missing"),
        ("CACHE t WHERE a = 1", "'t' is not expected here"),
        ("CACHE", "the statement ends too early"),
        ("UNCACHE TABLE t", "write DROP CACHE"),
        ("uncache table if exists t", "write DROP CACHE"),
        ("CLEAR CACHE", "write DROP CACHE"),
        ("REFRESH TABLE t", "windrow table refresh"),
        ("DROP CACHE", "the name of a table is missing"),
        ("DROP CACHE IF EXISTS t", "IF EXISTS is not supported"),
        ("DROP CACHE t, u", "',' is not expected here"),
        ("DROP TABLE t", "'TABLE' is not expected here"),
        ("SHOW CACHE t WHERE a = 1", "takes no WHERE"),
        ("SHOW CACHE LIKE 'x'", "\"'x'\" is not expected here"),
        ("SHOW TABLES", "'TABLES' is not expected here"),
        ("CACHE TABLE t WHERE a = 1; DROP CACHE t", "several statements"),
        ("SELECT 1", "'SELECT' is not expected here"),
        ("", "there is no statement"),
        (" ; -- nothing", "there is no statement"),
        ("CACHE TABLE 't' WHERE a = 1", "is not the name of a table"),
        ("CACHE TABLE my-events WHERE a = 1", "'-' is not expected here"),
        ("CACHE TABLE `a b` WHERE a = 1", "'`a b`' is not the name of a table"),
        ("CACHE TABLE a.b.c.d WHERE a = 1", "'a.b.c.d' is not the name of a table"),
        ("CACHE TABLE t@v1 WHERE a = 1", "'@' is not expected here"),
        ("CACHE TABLE t WHERE a = 'x", "is not closed"),
        ("CACHE TABLE t WHERE a = 1 /* x", "is not closed"),
        ("CACHE TABLE `t WHERE a = 1", "is not closed"),
        ("\0", "is not expected here"),
    ],
)
def test_unsupported_syntax_is_named_with_an_alternative(text: str, said: str) -> None:
    with pytest.raises(CacheSqlError) as refused:
        parse_cache_sql(text)

    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
