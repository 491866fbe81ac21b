"""Cache rules: mark files of a table as cacheable, by calls or by SQL, and see what is cached."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Literal

from windrow_calls.arguments import RULE_NAMES, checked
from windrow_calls.errors import CacheSqlError, InvalidArgumentError, NotFoundError
from windrow_calls.transport import Calls, read_answer, table_path
from windrow_core.cards import Card, Shown, ShownList, card_of, grid_of
from windrow_core.models import (
    CACHE_RULE_PATTERN,
    CacheRule,
    CacheRuleDefinition,
    CacheRules,
    Filter,
    TableCache,
    TablePage,
)

# Quoted text, and the separators of tokens: white space and comments.
_PARTS = re.compile(
    r"""(?P<quoted>'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`)|(?:\s|--[^\n]*|/\*.*?\*/)+""",
    re.DOTALL,
)
_DIGITS = 12


@dataclass(frozen=True, slots=True, repr=False)
class CacheSqlResult(Shown):
    """The result of a statement.

    Attributes:
        action: `cache`, `drop` or `show`.
        table: Name of the table; None for all tables.
        rules: Rules that the statement made, found or dropped.
    """

    action: Literal["cache", "drop", "show"]
    table: str | None
    rules: list[CacheRule]


@card_of.register
def _(result: CacheSqlResult) -> Card:
    facts = [("table", result.table or "all"), ("rules", f"{len(result.rules):,}")]
    grids = [grid_of(result.rules)] if result.rules else []
    return Card(
        {"cache": "Cached", "drop": "Dropped", "show": "Rules"}[result.action], facts, grids
    )


class CacheRuleCalls(Calls):
    """Calls about cache rules, and about the cached files of a table."""

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
            table: Name of the table.
            filter: Filter on partition columns only, such as `"ds >= '2026-11-01'"`, or a JSON
                tree.
            rule: Name of the rule. By default it is derived from the filter, so that repeating the
                call makes no second rule.
            expires_at: When the rule expires, with a time zone.
            max_bytes: Maximum bytes that the rule makes cacheable, as a number or as text such as
                `"500GB"`; files whose paths sort last are chosen first.

        Example:
            client.cache_table("sales.events", "ds >= '2026-11-01'", rule="november", max_bytes="500GB")
        """
        definition = checked(
            CacheRuleDefinition,
            {"filter": filter, "expires_at": expires_at, "max_bytes": max_bytes},
        )
        path = _rule_path(table, rule_name(definition.filter) if rule is None else rule)
        answer = self._transport.call("PUT", path, body=definition.model_dump_json())
        return read_answer(CacheRule, answer)

    def cache_rules(self, table: str | None = None) -> list[CacheRule]:
        """Return the cache rules of a table, or of all tables, by name.

        Example:
            client.cache_rules("sales.events")
        """
        if table is not None:
            answer = self._transport.call("GET", f"{table_path(table)}/cache-rules")
            return ShownList(read_answer(CacheRules, answer).rules, "rules")
        rules: list[CacheRule] = []
        for page in self._transport.pages(TablePage, "/tables"):
            for info in page.tables:
                # The table may have been deleted since it was listed.
                with suppress(NotFoundError):
                    rules += self.cache_rules(info.name)
        return ShownList(rules, "rules")

    def cache_rule(self, table: str, rule: str) -> CacheRule:
        """Return one cache rule of a table.

        Example:
            client.cache_rule("sales.events", "november")
        """
        return read_answer(CacheRule, self._transport.call("GET", _rule_path(table, rule)))

    def drop_cache(self, table: str, rule: str) -> None:
        """Delete a cache rule; its files stay in caches until other files need the room.

        Example:
            client.drop_cache("sales.events", "november")
        """
        self._transport.call("DELETE", _rule_path(table, rule))

    def cache(self, table: str) -> TableCache:
        """Return how much of a table is cacheable, and where it is cached.

        Example:
            cache = client.cache("sales.events")
            cache.cached_bytes, cache.cacheable_bytes
        """
        return read_answer(TableCache, self._transport.call("GET", f"{table_path(table)}/cache"))

    def cache_sql(self, text: str) -> CacheSqlResult:
        """Run `CACHE TABLE name WHERE …`, `DROP CACHE name [WHERE …]` or `SHOW CACHE [name]`.

        If an unexpired rule with the same filter exists, `CACHE TABLE` leaves it as it is, with
        its time of expiry and its byte limit. `DROP CACHE` deletes all rules of the table or, with
        WHERE, the rules with exactly that filter.

        Raises:
            CacheSqlError: The statement is not supported, or no rule has its filter.

        Example:
            client.cache_sql("CACHE TABLE sales.events WHERE ds >= '2026-11-01'")
        """
        # Few callers use SQL, and importing its parser takes a while.
        from windrow_calls.cache_sql import parse_cache_sql

        statement = parse_cache_sql(text)
        table, filter = statement.table, statement.filter
        if table is None or statement.action == "show":
            rules = self.cache_rules(table)
        elif filter is not None and statement.action == "cache":
            rules = self._unexpired_rules(table, filter) or [self.cache_table(table, filter)]
        else:
            rules = self._drop(table, filter)
        return CacheSqlResult(statement.action, table, rules)

    def _rules_with_filter(self, table: str, filter: str) -> list[CacheRule]:
        return [one for one in self.cache_rules(table) if plain(one.filter) == plain(filter)]

    def _unexpired_rules(self, table: str, filter: str) -> list[CacheRule]:
        now = datetime.now(timezone.utc)
        rules = self._rules_with_filter(table, filter)
        return [one for one in rules if one.expires_at is None or one.expires_at > now]

    def _drop(self, table: str, filter: str | None) -> list[CacheRule]:
        if filter is None:
            rules = self.cache_rules(table)
        else:
            rules = self._rules_with_filter(table, filter)
            if not rules:
                raise CacheSqlError(
                    f"no cache rule of {table} has exactly this filter: SHOW CACHE {table} lists "
                    "its rules"
                )
        for one in rules:
            # Another caller may have deleted it first.
            with suppress(NotFoundError):
                self.drop_cache(table, one.rule)
        return rules


def rule_name(filter: Filter) -> str:
    """Return the name of a rule with this filter."""
    return f"rule-{hashlib.sha256(plain(filter).encode()).hexdigest()[:_DIGITS]}"


def plain(filter: Filter) -> str:
    """Return a normal form, equal for filters that differ only in white space and comments."""
    if not isinstance(filter, str):
        return filter.model_dump_json()
    words = _PARTS.sub(lambda part: part["quoted"] or " ", filter).strip()
    # Only names and keywords need a space between them.
    return _PARTS.sub(lambda part: part["quoted"] or _space(part), words)


def _space(part: re.Match[str]) -> str:
    around = part.string[part.start() - 1] + part.string[part.end()]
    return " " if re.fullmatch(r"\w\w", around) else ""


def _rule_path(table: str, rule: str) -> str:
    if not re.fullmatch(CACHE_RULE_PATTERN, rule):
        # Names of rules that were made without one are derived from the filter.
        is_filter = re.search(r"[=<>]|\b(IN|LIKE|IS)\b", rule, re.I)
        hint = f"the rule of that filter is {rule_name(rule)!r}" if is_filter else RULE_NAMES
        raise InvalidArgumentError("rule", f"{rule!r} is not the name of a rule: {hint}")
    return f"{table_path(table)}/cache-rules/{rule}"
