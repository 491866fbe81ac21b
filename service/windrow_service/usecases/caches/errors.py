"""Errors of cache rules.

* UseCaseError
  + NotFoundError
    - CacheRuleNotFoundError
  + CacheRuleChangedError
  + TooManyCacheRulesError
  + InvalidCacheRuleError
"""

from windrow_service.usecases.errors import NotFoundError, UseCaseError


class CacheRuleNotFoundError(NotFoundError):
    """The table has no such cache rule."""

    def __init__(self, table: str, rule: str) -> None:
        super().__init__(table, rule)
        self.table = table
        self.rule = rule

    def __str__(self) -> str:
        return (
            f"table {self.table!r} has no cache rule {self.rule!r}: "
            f"GET /tables/{self.table}/cache-rules lists those it has"
        )


class CacheRuleChangedError(UseCaseError):
    """The cache rule is not in the state that the caller said it must be in."""

    def __init__(self, table: str, rule: str, expected: str, actual: str) -> None:
        super().__init__(table, rule, expected, actual)
        self.table = table
        self.rule = rule
        self.expected = expected
        self.actual = actual

    def __str__(self) -> str:
        return (
            f"cache rule {self.rule!r} of table {self.table!r} was expected at {self.expected} "
            f"and is at {self.actual}; GET /tables/{self.table}/cache-rules/{self.rule} and "
            "decide again"
        )


class TooManyCacheRulesError(UseCaseError):
    """The table has as many cache rules as it may."""

    def __init__(self, table: str, max_rules: int) -> None:
        super().__init__(table, max_rules)
        self.table = table
        self.max_rules = max_rules

    def __str__(self) -> str:
        return (
            f"table {self.table!r} has {self.max_rules:,} cache rules already: delete one, or let "
            "one rule say what several do"
        )


class InvalidCacheRuleError(UseCaseError):
    """A cache rule cannot be kept as it was given."""
