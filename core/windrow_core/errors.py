"""The base of every error raised on purpose: fields, a message made from them, and a remedy."""

from __future__ import annotations

from typing import Any, ClassVar


class StatedError(Exception):
    """An error that consists of its fields, and says what is wrong and what to do about it.

    A subclass with fields is a `@dataclass(eq=False)`: it equals only itself and can be hashed, as
    tracebacks need. Errors come back from other processes, so `args`, by which exceptions are
    pickled, holds the constructor's arguments. Nothing here calls `dataclasses.fields`, which finds
    no fields in a class that Spark has pickled by value.

    Attributes:
        message: Template of the text, as for `str.format`, with the error's attributes by name and
            `{remedy}` where that belongs; empty if the text is the error's only argument.
        remedy: Template of what to do about it.
    """

    __match_args__: ClassVar[tuple[str, ...]] = ()
    message: ClassVar[str] = ""
    remedy: ClassVar[str] = ""

    def __post_init__(self) -> None:
        self.args = tuple(getattr(self, name) for name in self.__match_args__)

    def __str__(self) -> str:
        return self.message.format_map(_Attributes(self)) if self.message else super().__str__()


class _Attributes:
    def __init__(self, error: StatedError) -> None:
        self._error = error

    def __getitem__(self, name: str) -> Any:
        value = getattr(self._error, name)
        return value.format_map(self) if name == "remedy" else value
