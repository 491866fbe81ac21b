"""`CACHE TABLE`, `DROP CACHE` and `SHOW CACHE` as SQL text; sqlglot finds the tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NoReturn

from sqlglot import Token, TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from windrow_calls.errors import CacheSqlError
from windrow_core.models import TABLE_NAME_PATTERN

_FORMS = "write CACHE TABLE name WHERE …, DROP CACHE name [WHERE …] or SHOW CACHE [name]"
_WHERE = "say which partitions, such as WHERE ds >= '2026-11-01'"
_LEADING = {
    ("CACHE", "LAZY"): "CACHE LAZY TABLE is not supported: files are cached when they are read, "
    "so write CACHE TABLE without LAZY",
    ("UNCACHE", "TABLE"): "UNCACHE TABLE is not supported: write DROP CACHE name",
    ("CLEAR", "CACHE"): "CLEAR CACHE is not supported: write DROP CACHE name for each table that "
    "SHOW CACHE names",
    ("REFRESH", "TABLE"): "REFRESH TABLE is not supported: use `windrow table refresh NAME`, which "
    "also notices changes of cached files",
}
_AS_SELECT = (
    "CACHE TABLE … AS SELECT is not supported: files of a table are cached, not results of "
    f"queries; {_WHERE}"
)
_FOLLOWING = {
    "OPTIONS": "OPTIONS is not supported: workers keep files on their disks, so leave it out",
    "AS": _AS_SELECT,
    "SELECT": _AS_SELECT,
    "WITH": _AS_SELECT,
    "PARTITION": f"PARTITION is not supported: {_WHERE}",
}
_QUOTED_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class CacheStatement:
    """One statement about cached files.

    Attributes:
        action: What to do.
        table: Name of the table; None for all tables, which only `show` allows.
        filter: The text after WHERE as written, up to its last token.
    """

    action: Literal["cache", "drop", "show"]
    table: str | None = None
    filter: str | None = None


def parse_cache_sql(text: str) -> CacheStatement:
    """Read one statement.

    Args:
        text: For example `CACHE TABLE sales.events WHERE ds >= '2026-11-01'`.
    """
    return _Parser(text).parse()


class _Parser:
    """One pass over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._at = 0

    def parse(self) -> CacheStatement:
        if not self._tokens:
            raise CacheSqlError(f"there is no statement: {_FORMS}")
        if any(token.token_type == TokenType.SEMICOLON for token in self._tokens):
            raise CacheSqlError("there are several statements: give one at a time")
        leading = (self._word(), self._word(1))
        if leading in _LEADING:
            raise CacheSqlError(_LEADING[leading])
        self._at = 2
        if leading == ("CACHE", "TABLE"):
            return CacheStatement("cache", self._table(), self._where(required=True))
        if leading == ("DROP", "CACHE"):
            if (self._word(), self._word(1)) == ("IF", "EXISTS"):
                raise CacheSqlError("IF EXISTS is not supported: leave it out")
            return CacheStatement("drop", self._table(), self._where(required=False))
        if leading == ("SHOW", "CACHE"):
            table = self._table() if self._at < len(self._tokens) else None
            if self._word() == "WHERE":
                raise CacheSqlError("SHOW CACHE takes no WHERE: leave it out")
            self._expect_end()
            return CacheStatement("show", table)
        # If the first word is known, the error is in the word after it.
        self._at = 1 if leading[0] in ("CACHE", "DROP", "SHOW") else 0
        self._unexpected()

    def _table(self) -> str:
        first = self._at
        parts = [self._name()]
        while self._at < len(self._tokens) and self._token().token_type == TokenType.DOT:
            self._at += 1
            parts.append(self._name())
        name = ".".join(parts)
        if not re.fullmatch(TABLE_NAME_PATTERN, name):
            raise CacheSqlError(
                f"{_quoted(self._written(first, self._at))} is not the name of a table: names have "
                "up to three parts of letters, digits, '_' and '-', such as sales.events"
            )
        return name

    def _name(self) -> str:
        if self._at == len(self._tokens):
            raise CacheSqlError(f"the name of a table is missing: {_FORMS}")
        token = self._token()
        if token.token_type != TokenType.IDENTIFIER and not self._is_word(token):
            raise CacheSqlError(
                f"{_quoted(self._written(self._at, self._at + 1))} is not the name of a table: "
                "write a name such as sales.events, and put parts with characters other than "
                "letters, digits and '_' in backquotes"
            )
        if self._word() == "WHERE":
            raise CacheSqlError(f"the name of a table is missing before WHERE: {_FORMS}")
        self._at += 1
        return token.text

    def _where(self, *, required: bool) -> str | None:
        word = self._word()
        if word in _FOLLOWING:
            raise CacheSqlError(_FOLLOWING[word])
        if word != "WHERE":
            self._expect_end()
            if required:
                raise CacheSqlError(f"CACHE TABLE needs WHERE: {_WHERE}")
            return None
        if self._at + 1 == len(self._tokens):
            raise CacheSqlError(f"nothing follows WHERE: {_WHERE}")
        return self._written(self._at + 1, len(self._tokens))

    def _expect_end(self) -> None:
        if self._at < len(self._tokens):
            self._unexpected()

    def _unexpected(self) -> NoReturn:
        if self._at == len(self._tokens):
            raise CacheSqlError(f"the statement ends too early: {_FORMS}")
        word = _quoted(self._written(self._at, self._at + 1))
        raise CacheSqlError(f"{word} is not expected here: {_FORMS}")

    def _token(self) -> Token:
        return self._tokens[self._at]

    def _word(self, ahead: int = 0) -> str:
        """Return a token in upper case if it is a name or a keyword without quotes, else ''."""
        following = self._tokens[self._at + ahead : self._at + ahead + 1]
        return "".join(token.text.upper() for token in following if self._is_word(token))

    def _is_word(self, token: Token) -> bool:
        # A token that equals its text has neither quotes nor a prefix.
        text = self._text[token.start - 1 : token.end]
        return text == token.text and re.fullmatch(r"\w+", text) is not None

    def _written(self, begin: int, end: int) -> str:
        return self._text[self._tokens[begin].start - 1 : self._tokens[end - 1].end]


def _tokens(text: str) -> list[Token]:
    try:
        # The parenthesis keeps SHOW from being read as a command with one long argument.
        tokens = Spark().tokenize(f"({text}")[1:]
    except SqlglotError:
        raise CacheSqlError(
            "the statement is not valid SQL: perhaps a quote or a comment in it is not closed"
        ) from None
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    return tokens


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _QUOTED_CHARACTERS else text[:_QUOTED_CHARACTERS] + "…")
