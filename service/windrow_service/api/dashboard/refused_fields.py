"""Fields of forms that cannot be used, which the pages name beside the field."""

from __future__ import annotations


class RefusedFieldError(Exception):
    """A field of a form whose text cannot be used.

    Args:
        name: The field.
        reason: Why, for the person who wrote it.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name = name
