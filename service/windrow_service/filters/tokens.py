"""A cursor over the tokens of a filter's text, as sqlglot's Spark dialect splits it."""

from __future__ import annotations

import re
from typing import NoReturn

from sqlglot import Token, TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from windrow_service.filters.errors import InvalidFilterError, quote

REST = "apply the rest with DataFrame.filter"

# A quoted part or a comment, or a character that opens one without closing it.
_QUOTED = re.compile(
    r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`|--[^\n]*|/\*.*?\*/|['"`]|/\*""", re.DOTALL
)
_TOKEN = re.compile(rf"{_QUOTED.pattern}|\w+|[^\w\s]", re.DOTALL)
_UNCLOSED = ("'", '"', "`", "/*")
# Enough for two lists of 10,000 values, each written as a cast; a token takes some 260 bytes.
MAX_TOKENS = 200_000
_QUOTES = (TokenType.STRING, TokenType.HEX_STRING, TokenType.IDENTIFIER)


class Cursor:
    """A position in a text, between two tokens.

    Args:
        text: The whole filter.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = _tokens(text)
        self._at = 0

    @property
    def token(self) -> Token | None:
        """The next token; None after the last one."""
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    @property
    def offset(self) -> int:
        """Position of the next token; the end of the text after the last one."""
        token = self.token
        return len(self.text.rstrip()) if token is None else token.start - 1

    @property
    def word(self) -> str:
        """The next token in upper case if it is a name or a keyword without quotes, else ''."""
        token = self.token
        if token is None or token.token_type == TokenType.NUMBER:
            return ""
        # A token that equals its source text has neither quotes nor a prefix.
        is_word = re.fullmatch(r"\w+", token.text) and self._written(token) == token.text
        return token.text.upper() if is_word else ""

    @property
    def name(self) -> str | None:
        """The next token if it is a word, or the unquoted name if it is a quoted name."""
        token = self.token
        if token is None or not (self.word or token.token_type == TokenType.IDENTIFIER):
            return None
        return token.text

    @property
    def symbol(self) -> str:
        """The next token in upper case unless it is a literal or a quoted name, else ''."""
        token = self.token
        if token is None or token.token_type in _QUOTES:
            return ""
        return token.text.upper()

    @property
    def string(self) -> str | None:
        """The value of the next token if it is a string."""
        token = self.token
        return token.text if token is not None and token.token_type == TokenType.STRING else None

    @property
    def hex_string(self) -> str | None:
        """The digits of the next token if it is a binary literal, such as X'00FF'."""
        token = self.token
        is_hex = token is not None and token.token_type == TokenType.HEX_STRING
        return token.text if token is not None and is_hex else None

    @property
    def number(self) -> str | None:
        """The next token if it is a number."""
        token = self.token
        return token.text if token is not None and token.token_type == TokenType.NUMBER else None

    def at_end(self) -> bool:
        """Return whether no token is left."""
        return self.token is None

    def precedes_string(self) -> bool:
        """Return whether the token after the next one is a string."""
        following = self._tokens[self._at + 1 : self._at + 2]
        return any(token.token_type == TokenType.STRING for token in following)

    def precedes(self, symbol: str) -> bool:
        """Return whether the token after the next one is `symbol`."""
        return any(token.text == symbol for token in self._tokens[self._at + 1 : self._at + 2])

    def step(self) -> None:
        """Skip the next token."""
        self._at += 1

    def accept(self, symbol: str) -> bool:
        """Skip the next token if it is `symbol`, and tell whether it was."""
        if self.symbol != symbol:
            return False
        self._at += 1
        return True

    def expect(self, symbol: str) -> None:
        """Skip the next token, which must be `symbol`."""
        if not self.accept(symbol):
            self.unexpected(f"expected {symbol}, found ")

    def unexpected(self, before: str = "unexpected ") -> NoReturn:
        """Refuse the filter because of the next token."""
        token = self.token
        if token is None:
            self.fail("the filter ends unexpectedly")
        self.fail(
            f"{before}{quote(self._written(token))}; comparisons of a column with a literal, IN, "
            f"BETWEEN, IS [NOT] NULL and LIKE 'prefix%' can be planned: {REST}"
        )

    def fail(self, reason: str, offset: int | None = None) -> NoReturn:
        """Refuse the filter because of the text at `offset`, by default the next token."""
        raise InvalidFilterError(reason, self.text, self.offset if offset is None else offset)

    def _written(self, token: Token) -> str:
        return self.text[token.start - 1 : token.end]


def _tokens(text: str) -> list[Token]:
    _check_length(text)
    try:
        # The parenthesis prevents a column named `show` or `call` from being read as a command.
        return Spark().tokenize(f"({text}")[1:]
    except SqlglotError:
        for match in _QUOTED.finditer(text):
            if match[0] in _UNCLOSED:
                reason = f"the {match[0]} here is never closed"
                raise InvalidFilterError(reason, text, match.start()) from None
        raise InvalidFilterError("the filter is not SQL text", text, 0) from None


def _check_length(text: str) -> None:
    """Refuse a text with too many tokens before they are created."""
    for count, match in enumerate(_TOKEN.finditer(text)):
        if match[0] in _UNCLOSED:
            # Searching for the ends of many would take long, and such a text is never a filter.
            return
        if count == MAX_TOKENS:
            raise InvalidFilterError(
                f"the filter has more than {MAX_TOKENS:,} words and symbols: make it shorter, or use "
                "a join for many values",
                text,
                match.start(),
            )
