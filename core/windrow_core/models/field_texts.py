"""Fields of requests in the words of commands and pages, and those of policies as texts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

from pydantic.fields import FieldInfo

from windrow_core.filter_text import filter_text
from windrow_core.models.base import Size
from windrow_core.sizes import parse_duration, short_duration_text, size_text


def plain_type(field: FieldInfo) -> tuple[Any, list[Any]]:
    """Return a field's type without None and without what checks its values; and the checks."""
    type_: Any = field.annotation
    checks = list(field.metadata)
    while True:
        inner = [one for one in get_args(type_) if one is not type(None)]
        if get_origin(type_) is Annotated:
            for one in type_.__metadata__:
                checks += [one, *getattr(one, "metadata", ())]
            type_ = inner[0]
        elif len(inner) < len(get_args(type_)) and len(inner) == 1:
            type_ = inner[0]
        else:
            return type_, checks


def help_of(name: str, field: FieldInfo, many: str = "repeatable") -> str:
    """Return the description of a field for people, who write texts instead of JSON.

    Args:
        name: The field's name.
        field: The field.
        many: How several items are given, if it is a list.
    """
    type_, checks = plain_type(field)
    text = (field.description or "").replace("`", "").removesuffix(".")
    text = re.sub(r" in bytes, or as text such as '(\w+)'", r", such as \1", text)
    if name.endswith("_seconds"):
        text = re.sub(
            "([0-9]+) by def", lambda of: f"{short_duration_text(int(of[1]))} by def", text
        )
    if get_origin(type_) is list:
        text += f"; {many}"
    default = field.default
    if "default" not in text and type_ in (int, float) and isinstance(default, int | float):
        is_size = any(isinstance(one, Size) for one in checks)
        text += f"; {size_text(default) if is_size else f'{default:,}'} by default"
    return f"{text}."


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyField:
    """A field of a policy.

    Attributes:
        name: Its name in the model.
        title: What people call it; with dashes, the option of commands.
        write: Makes the text of a value.
        read: Makes a value, which the model then checks, of a text.
        none: What cards show where there is no value.
        of_retention: Whether it only matters where partitions are dropped; pages do not change it,
            since dropping needs a look at what would go.
        choices: Values of a selection on pages, which is an input for text without them.
        is_long: Whether that input has several lines.
    """

    name: str
    title: str
    write: Callable[[Any], str] = str
    read: Callable[[str], object] = str
    none: str = ""
    of_retention: bool = False
    choices: Mapping[str, str] | None = None
    is_long: bool = False


def _number(text: str) -> float:
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not a number")
    return value


def _whole(text: str) -> int:
    value = _number(text)
    if value != int(value):
        raise ValueError(f"{text!r} is not a whole number")
    return int(value)


def share_of(text: str) -> float:
    """Return the share in a text such as `0.25` or `25%`."""
    match = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,5})?)(%?)", text.strip())
    share = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if not 0 < share <= 1:
        raise ValueError(f"{text!r} is not a share: give a number up to 1, or a part such as 25%")
    return share


def _items(text: str) -> list[str]:
    return [one.strip().strip("/") for one in re.split(r",|\n", text) if one.strip()]


def _windows(text: str) -> list[str]:
    return [one.removesuffix(" UTC") for one in _items(text)]


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _windows_text(windows: list[str]) -> str:
    return ", ".join(one if " " in one else f"{one} UTC" for one in windows)


POLICY_FIELDS = (
    PolicyField(name="target_file_size", title="target", write=size_text),
    PolicyField(name="min_files", title="min files", read=_whole),
    PolicyField(name="min_gain", title="min gain", write="{:,.6g}".format, read=_number),
    PolicyField(name="reads_per_day", title="reads per day", write="{:,.6g}".format, read=_number),
    PolicyField(
        name="min_age_seconds", title="min age", write=short_duration_text, read=parse_duration
    ),
    PolicyField(
        name="windows", title="window", write=_windows_text, read=_windows, none="at any time"
    ),
    PolicyField(
        name="max_share",
        title="max share",
        write=lambda share: f"{100 * share:.6g}%",
        read=share_of,
    ),
    PolicyField(name="filter", title="filter", write=filter_text, none="none", is_long=True),
    PolicyField(name="keep_days", title="keep days", none="all", of_retention=True),
    PolicyField(name="keep_by", title="keep by", none="the column with dates", of_retention=True),
    PolicyField(name="keep_zone", title="keep zone", of_retention=True),
    PolicyField(name="keep_before", title="keep before", of_retention=True),
    PolicyField(name="may_drop_all", title="may drop all", write=_yes, of_retention=True),
    PolicyField(
        name="exempt_folders",
        title="exempt",
        write="\n".join,
        read=_items,
        none="none",
        is_long=True,
    ),
    PolicyField(
        name="readers_may_see_both",
        title="readers may see both",
        write=_yes,
        read=lambda text: text == "yes",
        choices={"": "not said here", "yes": "maintain them too", "no": "leave them alone"},
    ),
    PolicyField(
        name="pack",
        title="pack",
        write=_yes,
        read=lambda text: text == "yes",
        choices={"": "not said here", "yes": "pack small files", "no": "rewrite small files"},
    ),
    PolicyField(name="pack_max_bytes", title="pack max bytes", write=size_text, none="any number"),
    PolicyField(
        name="pack_rights_are_stated",
        title="pack rights are stated",
        write=_yes,
        read=lambda text: text == "yes",
        choices={"": "not said here", "yes": "they are", "no": "they are not"},
    ),
)
