"""The format options that a table's definition may have: Spark's own, checked by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches

MAX_OPTIONS = 100
MAX_VALUE_CHARACTERS = 65_536

_Check = Callable[[str], str]


def _any(value: str) -> str:
    return ""


def _boolean(value: str) -> str:
    return "" if value.lower() in ("true", "false") else "it must be true or false"


def _whole(value: str) -> str:
    return "" if value.removeprefix("-").isascii() and value.removeprefix("-").isdigit() else _WHOLE


def _character(value: str) -> str:
    return "" if len(value) <= 1 else "it must be one character, or empty for none"


def _filled(value: str) -> str:
    return "" if value else "it must not be empty"


def _one_of(*known: str) -> _Check:
    def check(value: str) -> str:
        return "" if value.upper() in known else f"it must be {' or '.join(known)}"

    return check


_WHOLE = "it must be a whole number"
_MODE = _one_of("PERMISSIVE", "DROPMALFORMED", "FAILFAST")

_PARSED: dict[str, _Check] = {
    "columnNameOfCorruptRecord": _filled,
    "dateFormat": _any,
    "enableDateTimeParsingFallback": _boolean,
    "encoding": _filled,
    "charset": _filled,
    "lineSep": _filled,
    "locale": _filled,
    "mode": _MODE,
    "multiLine": _boolean,
    "timeFormat": _any,
    "timeZone": _filled,
    "timestampFormat": _any,
    "timestampNTZFormat": _any,
}
_KNOWN: dict[str, dict[str, _Check]] = {
    # For the coordinator, to find the metadata of a table; not for Spark.
    "iceberg": dict.fromkeys(("catalog", "identifier", "metadata", "ref"), _filled),
    # The time zone of the sessions that wrote partition values of type timestamp.
    "delta": {"timeZone": _filled},
    "csv": {
        **_PARSED,
        "charToEscapeQuoteEscaping": _character,
        "columnPruning": _boolean,
        "comment": _character,
        "delimiter": _filled,
        "emptyValue": _any,
        "enforceSchema": _boolean,
        "escape": _character,
        "header": _boolean,
        "ignoreLeadingWhiteSpace": _boolean,
        "ignoreTrailingWhiteSpace": _boolean,
        "inputBufferSize": _whole,
        "maxCharsPerColumn": _whole,
        "maxColumns": _whole,
        "nanValue": _any,
        "negativeInf": _any,
        "nullValue": _any,
        "positiveInf": _any,
        "quote": _character,
        "sep": _filled,
        "unescapedQuoteHandling": _one_of(
            "STOP_AT_CLOSING_QUOTE",
            "BACK_TO_DELIMITER",
            "STOP_AT_DELIMITER",
            "SKIP_VALUE",
            "RAISE_ERROR",
        ),
    },
    "json": {
        **_PARSED,
        "allowBackslashEscapingAnyCharacter": _boolean,
        "allowComments": _boolean,
        "allowNonNumericNumbers": _boolean,
        "allowNumericLeadingZeros": _boolean,
        "allowSingleQuotes": _boolean,
        "allowUnquotedControlChars": _boolean,
        "allowUnquotedFieldNames": _boolean,
        "explodeEmbeddedArray": _boolean,
    },
    "orc": {"orc.force.positional.evolution": _boolean},
    "text": {"encoding": _filled, "lineSep": _filled, "wholetext": _boolean},
    "avro": {
        "datetimeRebaseMode": _one_of("EXCEPTION", "LEGACY", "CORRECTED"),
        "positionalFieldMatching": _boolean,
        "mode": _MODE,
    },
}

# The classes that divide lines into columns, for Hive's tables of text.
_LAZY = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
_OPEN_CSV = "org.apache.hadoop.hive.serde2.OpenCSVSerde"
_SERDES = {name.rpartition(".")[2].lower(): name for name in (_LAZY, _OPEN_CSV)}


def _one_line(value: str) -> str:
    return "" if value in ("\n", "10", "\\n") else "Hive divides lines only at \\n"


def _no_lines(value: str) -> str:
    return "" if value == "0" else "Hive skips lines, but Spark's Hive tables do not: remove them"


_OF_SERDES: dict[str, dict[str, _Check]] = {
    _LAZY: {
        "collection.delim": _filled,
        "escape.delim": _filled,
        "field.delim": _filled,
        "line.delim": _one_line,
        "mapkey.delim": _filled,
        "serialization.encoding": _filled,
        "serialization.format": _filled,
        "serialization.last.column.takes.rest": _boolean,
        "serialization.null.format": _any,
        "skip.footer.line.count": _no_lines,
        "skip.header.line.count": _no_lines,
        "timestamp.formats": _filled,
    },
    _OPEN_CSV: {
        "escapeChar": _character,
        "line.delim": _one_line,
        "quoteChar": _character,
        "separatorChar": _character,
        "skip.footer.line.count": _no_lines,
        "skip.header.line.count": _no_lines,
    },
}

_FILES = "a refresh decides which files a table has"
_ALL = "every planned file is read, or the read fails and names it"
_COLUMNS = "columns are part of a definition, and `client.infer_columns` finds them"
_SUFFIX = "the suffix of each file says how it is compressed"
_WRITING = "it only affects writing"
_REFUSED: dict[str, str] = {
    **dict.fromkeys(("ignoreCorruptFiles", "ignoreMissingFiles"), _ALL),
    **dict.fromkeys(
        (
            "path",
            "paths",
            "basePath",
            "pathGlobFilter",
            "modifiedAfter",
            "modifiedBefore",
            "recursiveFileLookup",
            "ignoreExtension",
        ),
        _FILES,
    ),
    **dict.fromkeys(
        (
            "inferSchema",
            "inferTimestamp",
            "dropFieldIfAllNull",
            "mergeSchema",
            "preferDate",
            "prefersDecimal",
            "primitivesAsString",
            "samplingRatio",
        ),
        _COLUMNS,
    ),
    **dict.fromkeys(("codec", "compression"), _SUFFIX),
    **dict.fromkeys(
        (
            "escapeQuotes",
            "extension",
            "ignoreNullFields",
            "pretty",
            "quoteAll",
            "recordName",
            "recordNamespace",
            "sortKeys",
            "writeNonAsciiCharacterAsCodePoint",
        ),
        _WRITING,
    ),
    "singleVariantColumn": "columns of type variant are not read",
    **dict.fromkeys(("avroSchema", "avroSchemaUrl"), "each file has a schema of its own"),
    **dict.fromkeys(
        ("enableStableIdentifiersForUnionType", "stableIdentifierPrefixForUnionType"),
        "members of unions are named by their positions",
    ),
    "recursiveFieldMaxDepth": "recursive records are not read",
}


def checked_format_options(format: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return options in Spark's spelling; Spark ignores the case of their names.

    Args:
        format: Format of the table's files.
        given: Values by name.

    Raises:
        ValueError: A name is not an option of the format, or Spark does not take a value.
    """
    given = _with_serde(format, given)
    known = _KNOWN.get(format, {})
    if "serde" in given:
        known = {"serde": _any, **_OF_SERDES[given["serde"]]}
    spelling = {name.lower(): name for name in known}
    found: dict[str, str] = {}
    for name, value in given.items():
        spelt = spelling.get(name.lower())
        if spelt is None:
            raise ValueError(_why_not(format, name, list(known)))
        if spelt in found:
            raise ValueError(f"option {spelt!r} appears twice: give it once")
        if len(value) > MAX_VALUE_CHARACTERS:
            raise ValueError(f"option {spelt!r} is longer than {MAX_VALUE_CHARACTERS:,} characters")
        wrong = known[spelt](value)
        if wrong:
            raise ValueError(f"option {spelt!r} is {value[:40]!r}: {wrong}")
        found[spelt] = value
    if ("catalog" in found) != ("identifier" in found):
        raise ValueError("options 'catalog' and 'identifier' go together: give both or neither")
    for one, other in (("sep", "delimiter"), ("encoding", "charset"), ("catalog", "metadata")):
        if one in found and other in found:
            raise ValueError(f"options {one!r} and {other!r} mean the same: give one of them")
    return found


def _with_serde(format: str, given: Mapping[str, str]) -> Mapping[str, str]:
    """Return options with the full class name of a SerDe, if they name one."""
    named = [name for name in given if name.lower() == "serde"]
    if format != "text" or not named:
        return given
    short = given[named[0]].rpartition(".")[2].lower()
    if short == "jsonserde":
        raise ValueError(f"{given[named[0]]!r} is not part of Spark: register format json instead")
    if short not in _SERDES:
        known = " or ".join(name.rpartition(".")[2] for name in _SERDES.values())
        raise ValueError(f"SerDe {given[named[0]]!r} is not known: give {known}")
    # Hive's spelling before version 3.
    older = {"colelction.delim": "collection.delim"}
    rest = {older.get(name, name): value for name, value in given.items() if name != named[0]}
    return {"serde": _SERDES[short], **rest}


def _why_not(format: str, name: str, known: list[str]) -> str:
    refused = {one.lower(): reason for one, reason in _REFUSED.items()}
    reason = refused.get(name.lower())
    if reason is not None:
        return f"{name!r} is not an option of a table, because {reason}: leave it out"
    if not known:
        return f"tables of format {format} take no options, but {name!r} is given: leave it out"
    close = get_close_matches(name.lower(), [one.lower() for one in known], n=1)
    meant = next((one for one in known if close and one.lower() == close[0]), None)
    remedy = f"did you mean {meant!r}?" if meant else f"its options are {', '.join(sorted(known))}"
    return f"{name!r} is not an option of format {format}: {remedy}"
