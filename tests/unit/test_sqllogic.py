"""The reader of sqllogictest, by which others' tests are run."""

from __future__ import annotations

import pytest

from tests.judges.sqllogic import Record, equal, records, rows_of

_TEST = """# a comment
require parquet

statement ok
SET x = '{HOME}'

# one more
query IT rowsort
SELECT * FROM t
----
1	a
2	NULL

foreach state off on

onlyif state=on
statement error
PRAGMA ${state}
----
no

endloop

mode skip

query I
SELECT 1
----
1
"""


def test_records_have_their_loops_unrolled_and_nothing_that_is_skipped() -> None:
    assert list(records(_TEST, {"HOME": "/here"})) == [
        Record(4, "ok", "SET x = '/here'"),
        Record(8, "query", "SELECT * FROM t", 2, True, ("1\ta", "2\tNULL")),
        Record(16, "error", "PRAGMA on", expected=("no",)),
    ]


@pytest.mark.parametrize(
    ("expected", "rows", "is_equal"),
    [
        (("1\ta",), [("1", "a")], True),
        (("1", "a"), [("1", "a")], True),
        (("1\tNULL", "0\t(empty)"), [("true", None), ("false", "")], True),
        (("0\t2", "1\t3"), [("1", "3"), ("0", "2")], True),
        (("0.30\t<REGEX>:b+",), [("0.3000000001", "bb")], True),
        (("10\ta",), [("11", "a")], False),
        (("1\ta",), [("1", "a"), ("1", "a")], False),
        (("NULL\ta",), [("0", "a")], False),
    ],
)
def test_rows_are_those_of_a_query_if_its_lines_say_so(
    expected: tuple[str, ...], rows: list[tuple[str | None, ...]], is_equal: bool
) -> None:
    assert equal(Record(1, "query", "SELECT 1", 2, False, expected), rows) is is_equal


def test_the_order_of_rows_counts_where_a_query_orders_them() -> None:
    record = Record(1, "query", "SELECT a FROM t ORDER BY a", 1, False, ("1", "2"))

    assert rows_of(record) == [("1",), ("2",)]
    assert not equal(record, [("2",), ("1",)])
