"""Lists of the coordinator, of which the pages after the first come when they are needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar, overload

from windrow_core.cards import SHOWN_ROWS, Card, Shown, card_of, grid_of, singular

T = TypeVar("T")


class Page(NamedTuple):
    """A part of a list.

    Attributes:
        items: Its items.
        is_last: Whether no page follows.
    """

    items: Sequence[Any]
    is_last: bool


class Listing(Shown, Sequence[T]):
    """The items of a list, in the coordinator's order.

    The first page is there from the start. Later pages are requested when their items are used;
    `len` and negative positions request all of them.

    Args:
        pages: The pages, at least one.
        noun: What is listed, such as `tables`.
    """

    def __init__(self, pages: Iterable[Page], noun: str) -> None:
        self._pages = iter(pages)
        self._noun = noun
        self._items: list[T] = []
        self._is_whole = False
        self._load()

    def _load(self) -> None:
        page = next(self._pages)
        self._items.extend(page.items)
        self._is_whole = page.is_last

    def _load_up_to(self, count: int | None) -> None:
        """Have at least so many items, or all of them."""
        while not self._is_whole and (count is None or len(self._items) < count):
            self._load()

    def __len__(self) -> int:
        self._load_up_to(None)
        return len(self._items)

    def __bool__(self) -> bool:
        self._load_up_to(1)
        return bool(self._items)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            is_near = index.stop is not None and index.stop >= 0 and (index.start or 0) >= 0
            self._load_up_to(index.stop if is_near else None)
        else:
            self._load_up_to(index + 1 if index >= 0 else None)
        return self._items[index]

    def __iter__(self) -> Iterator[T]:
        at = 0
        while True:
            self._load_up_to(at + 1)
            if at == len(self._items):
                return
            yield self._items[at]
            at += 1

    def stream(self) -> Iterator[T]:
        """Yield the items without keeping them, for lists that are too long for memory.

        Afterwards, this list is empty.
        """
        while True:
            items, self._items = self._items, []
            yield from items
            if self._is_whole:
                return
            self._load()

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, list | Listing) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    @property
    def known_count(self) -> int | None:
        """The number of items; None if there are pages that nobody has requested yet."""
        return len(self._items) if self._is_whole else None

    def _card(self) -> Card:
        count = len(self._items)
        or_more = "" if self._is_whole else " or more"
        noun = singular(self._noun) if count == 1 and self._is_whole else self._noun
        left = count - SHOWN_ROWS
        more = "" if self._is_whole else "and more"
        if left > 0:
            more = f"and {left:,}{or_more.removesuffix(' more')} more"
        grids = [grid_of(self._items[:SHOWN_ROWS], note=more)] if count else []
        return Card(f"{count:,} {noun}{or_more}", grids=grids)


@card_of.register
def _(listing: Listing) -> Card:  # type: ignore[type-arg]
    return listing._card()
