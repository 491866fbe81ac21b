"""Texts in names of folders that are the same value to a partition column of a type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

NULL = "__HIVE_DEFAULT_PARTITION__"
# For each type, the spellings of some values: each line is one value.
SPELLINGS: Mapping[str, Sequence[Sequence[str]]] = {
    "int": (("9", "09", "+9", "0009"), ("0", "00", "-0"), ("-1", "-01"), (NULL,)),
    "tinyint": (("7", "007"), ("-128", "-0128")),
    "bigint": (("9000000000", "09000000000"), ("1", "01"), (NULL,)),
    "decimal(10,2)": (("1.50", "1.5", "15E-1", "+1.500"), ("0.00", "0", "-0.0"), ("15.00", "15")),
    "double": (("1000.0", "1e3", "1000", "1.0E3"), ("NaN", "+NaN"), ("0.0", "0"), ("-0.0", "-0")),
    "float": (("0.1", "0.10000000001", "1e-1"), ("Infinity", "+Infinity")),
    "boolean": (("true", "TRUE", "True"), ("false", "FALSE"), (NULL,)),
    "date": (("2020-01-02", "2020-1-2", "2020-1-02"), ("2020-11-02",), (NULL,)),
    "timestamp": (
        ("2026-11-01 05%3A30%3A00Z", "2026-11-01T05:30:00Z", "2026-11-01 06%3a30%3a00+01:00"),
        ("2026-11-01 05%3A30%3A00.5Z", "2026-11-01 05%3A30%3A00.500000Z"),
    ),
    "timestamp_ntz": (
        ("2026-11-01 05%3A30%3A00", "2026-11-01 05:30:00", "2026-11-01T05%3a30%3a00.000"),
        ("2026-11-01 05%3A30%3A00.25", "2026-11-01 05%3A30%3A00.250"),
    ),
    "string": (("a b", "a%20b", "%61 b"), ("a%2Fb", "a%2fb"), ("A b",), ("09",), ("9",), (NULL,)),
    "binary": (("a%20b",), ("a b",)),
}
