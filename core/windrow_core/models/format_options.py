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


def _one_of(*values: str) -> _Check:
    def check(value: str) -> str:
        return "" if value.upper() in values else f"it must be {' or '.join(values)}"

    return check


_WHOLE = "it must be a whole number"
_MODE = _one_of("PERMISSIVE", "DROPMALFORMED", "FAILFAST")

# Spark also reads times in the names of folders in it, whatever the format.
_ZONE = "timeZone"
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
    _ZONE: _filled,
    "timestampFormat": _any,
    "timestampNTZFormat": _any,
}
_KNOWN: dict[str, dict[str, _Check]] = {
    # For the coordinator, to find the metadata of a table; not for Spark.
    "iceberg": dict.fromkeys(("catalog", "identifier", "metadata", "ref"), _filled),
    # The time zone of the sessions that wrote partition values of type timestamp.
    "delta": {_ZONE: _filled},
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

# Formats of lines; an option of one of them means nothing to readers of others.
_LINES = ("csv", "json", "text")
_WITHOUT_EFFECT = frozenset(
    # With a schema, inference has already taken place. `mergeSchema` decides which schema that is.
    name.lower()
    for name, reason in _REFUSED.items()
    if reason in (_COLUMNS, _WRITING, _SUFFIX) and name != "mergeSchema"
)


def has_no_effect(format: str, name: str) -> bool:
    """Return whether an option of Spark has no effect on rows of files whose columns are known.

    Args:
        format: Format of the files.
        name: Any option; case does not matter.
    """
    others = {one.lower() for other in _LINES for one in _KNOWN[other].keys() - {_ZONE}}
    own = {one.lower() for one in _KNOWN.get(format, {})}
    return name.lower() in _WITHOUT_EFFECT | (others - own)


def checked_format_options(format: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return options in Spark's spelling; Spark ignores the case of their names.

    Args:
        format: Format of the table's files.
        options: Values by name.

    Raises:
        ValueError: A name is not an option of the format, or Spark does not take a value.
    """
    options = _with_serde(format, options)
    checks = _KNOWN.get(format, {})
    if "serde" in options:
        checks = {"serde": _any, **_OF_SERDES[options["serde"]]}
    spelling = {name.lower(): name for name in checks}
    result: dict[str, str] = {}
    for name, value in options.items():
        spelling_here = spelling.get(name.lower())
        if spelling_here is None:
            raise ValueError(_why_not(format, name, list(checks)))
        if spelling_here in result:
            raise ValueError(f"option {spelling_here!r} appears twice: give it once")
        if len(value) > MAX_VALUE_CHARACTERS:
            raise ValueError(
                f"option {spelling_here!r} is longer than {MAX_VALUE_CHARACTERS:,} characters"
            )
        wrong = checks[spelling_here](value)
        if wrong:
            raise ValueError(f"option {spelling_here!r} is {value[:40]!r}: {wrong}")
        result[spelling_here] = value
    if ("catalog" in result) != ("identifier" in result):
        raise ValueError("options 'catalog' and 'identifier' go together: give both or neither")
    for one, other in (("sep", "delimiter"), ("encoding", "charset"), ("catalog", "metadata")):
        if one in result and other in result:
            raise ValueError(f"options {one!r} and {other!r} mean the same: give one of them")
    return result


def _with_serde(format: str, options: Mapping[str, str]) -> Mapping[str, str]:
    """Return options with the full class name of a SerDe, if they name one."""
    spellings = [name for name in options if name.lower() == "serde"]
    if format != "text" or not spellings:
        return options
    short = options[spellings[0]].rpartition(".")[2].lower()
    if short == "jsonserde":
        raise ValueError(
            f"{options[spellings[0]]!r} is not part of Spark: register format json instead"
        )
    if short not in _SERDES:
        serdes = " or ".join(name.rpartition(".")[2] for name in _SERDES.values())
        raise ValueError(f"SerDe {options[spellings[0]]!r} is not known: give {serdes}")
    # Hive's spelling before version 3.
    older = {"colelction.delim": "collection.delim"}
    rest = {older.get(name, name): value for name, value in options.items() if name != spellings[0]}
    return {"serde": _SERDES[short], **rest}


def _why_not(format: str, name: str, names: list[str]) -> str:
    reasons = {one.lower(): reason for one, reason in _REFUSED.items()}
    reason = reasons.get(name.lower())
    if reason is not None:
        return f"{name!r} is not an option of a table, because {reason}: leave it out"
    if not names:
        return f"tables of format {format} take no options, but {name!r} is given: leave it out"
    close = get_close_matches(name.lower(), [one.lower() for one in names], n=1)
    likely = next((one for one in names if close and one.lower() == close[0]), None)
    remedy = (
        f"did you mean {likely!r}?" if likely else f"its options are {', '.join(sorted(names))}"
    )
    return f"{name!r} is not an option of format {format}: {remedy}"
