"""Cache rules: mark files of a table as cacheable, by calls or by SQL, and see what is cached."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Literal
from urllib.parse import quote

from windrow.calls.arguments import checked
from windrow.calls.transport import Calls, read_answer, table_path
from windrow.errors import CacheSqlError, NotFoundError
from windrow.models import (
    CacheRule,
    CacheRuleDefinition,
    CacheRules,
    Filter,
    TableCache,
    TablePage,
)

# Quoted text, and what separates tokens: space and comments.
_PARTS = re.compile(
    r"""(?P<quoted>'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`)|(?:\s|--[^\n]*|/\*.*?\*/)+""",
    re.DOTALL,
)
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class CacheSqlResult:
    """What a statement did.

    Attributes:
        action: `cache`, `drop` or `show`.
        table: Which it named; None for all.
        rules: Those that it made, dropped or found.
    """

    action: Literal["cache", "drop", "show"]
    table: str | None
    rules: list[CacheRule]


class CacheRuleCalls(Calls):
    """The calls that are about cache rules, and about what is cached of a table."""

    def cache_table(
        self,
        table: str,
        filter: str | Mapping[str, Any],
        *,
        rule: str | None = None,
        expires_at: datetime | None = None,
        max_bytes: int | str | None = None,
    ) -> CacheRule:
        """Mark files of a table as cacheable: workers keep them once they have read them.

        Args:
            table: Its name.
            filter: On partition columns alone, such as `"ds >= '2026-11-01'"`, or a JSON tree.
            rule: Name of the rule. By default it is derived from the filter, so that the same call
                twice makes one rule.
            expires_at: When the rule ends by itself, with a time zone.
            max_bytes: Most bytes that it makes cacheable, also as text such as `"500GB"`; files
                whose paths sort last are taken first.
        """
        definition = checked(
            CacheRuleDefinition,
            {"filter": filter, "expires_at": expires_at, "max_bytes": max_bytes},
        )
        path = _rule_path(table, rule_name(definition.filter) if rule is None else rule)
        answer = self._transport.call("PUT", path, body=definition.model_dump_json())
        return read_answer(CacheRule, answer)

    def cache_rules(self, table: str | None = None) -> list[CacheRule]:
        """Return the cache rules of a table, or of all tables, by name."""
        if table is not None:
            answer = self._transport.call("GET", f"{table_path(table)}/cache-rules")
            return read_answer(CacheRules, answer).rules
        found: list[CacheRule] = []
        for page in self._transport.pages(TablePage, "/tables"):
            for info in page.tables:
                # It may have been deleted since it was listed.
                with suppress(NotFoundError):
                    found += self.cache_rules(info.name)
        return found

    def cache_rule(self, table: str, rule: str) -> CacheRule:
        """Return one cache rule of a table."""
        return read_answer(CacheRule, self._transport.call("GET", _rule_path(table, rule)))

    def drop_cache(self, table: str, rule: str) -> None:
        """End a cache rule; files that workers hold by it stay until others need the room."""
        self._transport.call("DELETE", _rule_path(table, rule))

    def cache(self, table: str) -> TableCache:
        """Return how much of a table is cacheable, and where it is cached."""
        return read_answer(TableCache, self._transport.call("GET", f"{table_path(table)}/cache"))

    def cache_sql(self, text: str) -> CacheSqlResult:
        """Run `CACHE TABLE name WHERE …`, `DROP CACHE name [WHERE …]` or `SHOW CACHE [name]`.

        `CACHE TABLE` leaves an existing rule with that filter as it is, with its end and its byte
        limit.
        `DROP CACHE` ends all rules of the table, or with WHERE those of exactly that filter.

        Raises:
            CacheSqlError: The statement is not supported, or no rule has its filter.
        """
        # Few callers use SQL, and importing its parser takes a while.
        from windrow.calls.cache_sql import parse_cache_sql

        statement = parse_cache_sql(text)
        table, filter = statement.table, statement.filter
        if table is None or statement.action == "show":
            rules = self.cache_rules(table)
        elif filter is not None and statement.action == "cache":
            rules = self._lasting(table, filter) or [self.cache_table(table, filter)]
        else:
            rules = self._drop(table, filter)
        return CacheSqlResult(statement.action, table, rules)

    def _of_filter(self, table: str, filter: str) -> list[CacheRule]:
        return [one for one in self.cache_rules(table) if plain(one.filter) == plain(filter)]

    def _lasting(self, table: str, filter: str) -> list[CacheRule]:
        """Return the rules of a filter that have not ended."""
        now = datetime.now(timezone.utc)
        rules = self._of_filter(table, filter)
        return [one for one in rules if one.expires_at is None or one.expires_at > now]

    def _drop(self, table: str, filter: str | None) -> list[CacheRule]:
        if filter is None:
            rules = self.cache_rules(table)
        else:
            rules = self._of_filter(table, filter)
            if not rules:
                raise CacheSqlError(
                    f"no cache rule of {table} has exactly this filter: SHOW CACHE {table} lists "
                    "those it has"
                )
        for one in rules:
            # Somebody else may have been faster.
            with suppress(NotFoundError):
                self.drop_cache(table, one.rule)
        return rules


def rule_name(filter: Filter) -> str:
    """Return the name of a rule with this filter."""
    return f"rule-{hashlib.sha256(plain(filter).encode()).hexdigest()[:_DIGITS]}"


def plain(filter: Filter) -> str:
    """Return a filter such that two are equal if they differ only in space and comments."""
    if not isinstance(filter, str):
        return filter.model_dump_json()
    spaced = _PARTS.sub(lambda part: part["quoted"] or " ", filter).strip()
    # Names and keywords need a space between them, and nothing else does.
    return _PARTS.sub(lambda part: part["quoted"] or _space(part), spaced)


def _space(part: re.Match[str]) -> str:
    around = part.string[part.start() - 1] + part.string[part.end()]
    return " " if re.fullmatch(r"\w\w", around) else ""


def _rule_path(table: str, rule: str) -> str:
    return f"{table_path(table)}/cache-rules/{quote(rule, safe='')}"
