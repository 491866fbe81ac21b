"""The fields of a policy as texts: in sentences, and in the form that changes it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from windrow_core.filter_text import filter_text
from windrow_core.models import EffectivePolicy, Policy, PolicyDefinition
from windrow_core.sizes import size_text
from windrow_service.api.dashboard.refused_fields import RefusedFieldError


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyField:
    """A field of a policy that has an input in the form.

    Attributes:
        name: Its name in the model.
        label: Its label.
        hint: An example, and what holds without it.
        phrase: The words around its text in sentences, where `{}` stands.
        write: Makes the text.
        read: Makes the value from a text that is not empty.
        choices: Values of a selection; an input for text if there are none.
        is_long: Whether the input has several lines.
    """

    name: str
    label: str
    hint: str
    phrase: str
    write: Callable[[Any], str] = str
    read: Callable[[str], object] = str
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


def _lines(text: str) -> list[str]:
    return [line.strip().strip("/") for line in text.splitlines() if line.strip()]


def _windows(text: str) -> list[str]:
    return [one.strip() for one in re.split(r",|\n", text) if one.strip()]


FIELDS = (
    PolicyField(
        name="target_file_size",
        label="Target size of a file",
        hint="Such as 256MB; 128MB by default.",
        phrase="files of {}",
        write=size_text,
    ),
    PolicyField(
        name="min_files",
        label="Fewest small files",
        hint="Partitions with fewer are left alone; 2 by default.",
        phrase="at least {} small files",
        write=str,
        read=_whole,
    ),
    PolicyField(
        name="min_gain",
        label="Smallest useful gain",
        hint="Seconds of reading that a second of rewriting must save; 1 by default.",
        phrase="a gain of {} or more",
        write="{:g}".format,
        read=_number,
    ),
    PolicyField(
        name="reads_per_day",
        label="Reads in a day",
        hint="Reads of each partition to expect in any case, for tables that are also read without "
        "Windrow; 0 by default.",
        phrase="{} reads in a day or more",
        write="{:g}".format,
        read=_number,
    ),
    PolicyField(
        name="min_age_seconds",
        label="Quiet time, in minutes",
        hint="Partitions that were written to more recently are left alone; 15 by default.",
        phrase="quiet for {} min",
        write=lambda seconds: f"{seconds / 60:g}",
        read=lambda text: round(60 * _number(text)),
    ),
    PolicyField(
        name="windows",
        label="Windows",
        hint="When work may begin, such as 22:00-06:00 in UTC, or 22:00-06:00 Europe/Berlin; several "
        "with commas; at any time by default.",
        phrase="{} only",
        write=", ".join,
        read=_windows,
    ),
    PolicyField(
        name="max_share",
        label="Most of the budget, in %",
        hint="That one table may use in an hour; 100 by default.",
        phrase="at most {} % of the budget",
        write=lambda share: f"{100 * share:g}",
        read=lambda text: _number(text) / 100,
    ),
    PolicyField(
        name="filter",
        label="Partitions to maintain",
        hint="In SQL on partition columns, such as ds >= '2026-11-01'; all by default.",
        phrase="where {}",
        write=filter_text,
        is_long=True,
    ),
    PolicyField(
        name="exempt_folders",
        label="Partitions to leave alone",
        hint="Their folders, such as ds=2026-11-01, one in a line; none by default.",
        phrase="not {}",
        write="\n".join,
        read=_lines,
        is_long=True,
    ),
    PolicyField(
        name="readers_may_see_both",
        label="On HDFS and S3",
        hint="Readers that list folders may see old and new files for a while; tables there are left "
        "alone without this consent.",
        phrase="readers may see both: {}",
        write=lambda value: "yes" if value else "no",
        read=lambda text: text == "yes",
        choices={"": "not said here", "yes": "maintain them too", "no": "leave them alone"},
    ),
)


def sentence_of(policy: Policy | EffectivePolicy) -> str:
    """Return what a policy says besides whether it is on; what it does not say has its default."""
    default = EffectivePolicy()
    parts = []
    for field in FIELDS:
        value = getattr(policy, field.name)
        if value is None or (
            isinstance(policy, EffectivePolicy) and value == getattr(default, field.name)
        ):
            continue
        parts.append(field.phrase.format(field.write(value).replace("\n", ", ")))
    return ", ".join(parts) or "everything by default"


def texts_of(definition: PolicyDefinition) -> dict[str, str]:
    """Return the texts of a policy's fields; empty ones for those that it does not say."""
    return {
        field.name: "" if (value := getattr(definition, field.name)) is None else field.write(value)
        for field in FIELDS
    }


def definition_from(form: Mapping[str, str], before: PolicyDefinition) -> PolicyDefinition:
    """Return the policy of a form; what the form does not have stays as it was.

    Args:
        form: The texts of its fields.
        before: What the policy phrase before.

    Raises:
        RefusedFieldError: A text cannot be used.
    """
    values: dict[str, Any] = dict(before)
    texts = texts_of(before)
    values["enabled"] = form.get("enabled", "yes") == "yes"
    for field in FIELDS:
        text = form.get(field.name, "").replace("\r\n", "\n").strip()
        # A filter may be a tree, which its text only shows.
        if text == texts[field.name]:
            continue
        try:
            values[field.name] = field.read(text) if text else None
        except ValueError as error:
            raise RefusedFieldError(field.name, str(error)) from error
    try:
        return PolicyDefinition(**values)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else ""
        raise RefusedFieldError(name, str(first["msg"])) from error
