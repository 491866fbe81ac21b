"""The base of every error raised on purpose: fields, a message made from them, and a remedy."""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Any, ClassVar


class Fault(Enum):
    """What sort of fault an error is; each edge decides what that is to its callers."""

    UNAUTHENTICATED = auto()
    FORBIDDEN = auto()
    NOT_FOUND = auto()
    GONE = auto()
    CONFLICT = auto()
    CHANGED = auto()
    OUTDATED = auto()
    INVALID = auto()
    TOO_LARGE = auto()
    TOO_OFTEN = auto()
    UNAVAILABLE = auto()
    UNKNOWN = auto()
    DAMAGED = auto()


class Call:
    """A call of the coordinator that is the remedy of an error; each edge has its own words for it.

    Attributes:
        operation: The operation's id in the HTTP contract, or `repeat`: the same request again.
        arguments: Parameters of the operation; None is a value that the caller has to choose.
        text: The words for it, where they are the same everywhere.
    """

    def __init__(self, operation: str, text: str = "", /, **arguments: Any) -> None:
        self.operation = operation
        self.arguments = arguments
        self.text = text

    @property
    def signature(self) -> str:
        """The operation with its parameters, such as `get_table(name)`."""
        return f"{self.operation}({', '.join(self.arguments)})"

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return self.text or f"{self.operation}({arguments})"


class StatedError(Exception):
    """An error that consists of its fields, and says what is wrong and what to do about it.

    A subclass with fields is a `@dataclass(eq=False)`: it equals only itself and can be hashed, as
    tracebacks need. Errors come back from other processes, so `args`, by which exceptions are
    pickled, holds the constructor's arguments. Nothing here calls `dataclasses.fields`, which finds
    no fields in a class that Spark has pickled by value.

    An error with a fault may be answered to callers, as a problem whose title is the first line of
    its class's docstring.

    Attributes:
        fault: What sort of fault it is; None if no caller gets to see it.
        slug: Last part of the problem's type; if empty, the name of the class without `Error`.
        message: Template of the text, as for `str.format`, with the error's attributes by name,
            numbers with their noun (`{files:file}`), and `{remedy}` where that belongs; empty if
            the text is the error's only argument.
        remedy: Template of what to do about it, with `{call}` where the call belongs.
        call: The call that helps, with the names of attributes as arguments; None if none does.
    """

    __match_args__: ClassVar[tuple[str, ...]] = ()
    fault: ClassVar[Fault | None] = None
    slug: ClassVar[str] = ""
    message: ClassVar[str] = ""
    remedy: ClassVar[str] = ""
    call: ClassVar[Call | None] = None

    def __post_init__(self) -> None:
        self.args = tuple(getattr(self, name) for name in self.__match_args__)

    def remedy_call(self) -> Call | None:
        """Return the call that helps, with its arguments."""
        if self.call is None:
            return None
        arguments = {name: getattr(self, field) for name, field in self.call.arguments.items()}
        return Call(self.call.operation, **arguments)

    def __str__(self) -> str:
        return self.message.format_map(_Attributes(self)) if self.message else super().__str__()


class _Attributes:
    def __init__(self, error: StatedError) -> None:
        self._error = error

    def __getitem__(self, name: str) -> Any:
        if name == "call":
            return self._error.remedy_call()
        value = getattr(self._error, name)
        if name == "remedy":
            return value.format_map(self)
        return _Count(value) if type(value) is int else value


class _Count(int):
    """A number, whose format may be the noun of what it counts: `{files:file}` is `1 file`."""

    def __format__(self, spec: str) -> str:
        if not re.fullmatch("[a-z ]{2,}", spec):
            return super().__format__(spec)
        return f"{int(self):,} {spec}{'' if self == 1 else 's'}"
