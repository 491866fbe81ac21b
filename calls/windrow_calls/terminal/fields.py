"""Options of commands that are fields of requests: named, typed and described by their models."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as attribute
from functools import wraps
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from windrow_calls.terminal.options import (
    ColumnNames,
    DeleteVanished,
    FilterText,
    Limit,
    MaxSplitSize,
    Metastore,
    Parallelism,
    RefreshedTables,
    RefreshOnSpark,
    SparkSettings,
    Strategy,
    TakeOver,
    TrustPartitions,
    byte_size,
    duration,
    named_texts,
    names,
)
from windrow_core.models import CompactionRequest, PolicyDefinition
from windrow_core.models.base import Size
from windrow_core.models.field_texts import help_of, plain_type


@dataclass(frozen=True, slots=True)
class FieldsOf:
    """Where the options of a request stand among the parameters of a command.

    Attributes:
        model: The request.
        options: The options by field; an empty one is named like its field.
        more: What options have otherwise than their fields say, as for `typer.Option`.
    """

    model: type[BaseModel]
    options: Mapping[str, str]
    more: Mapping[str, Mapping[str, Any]] = attribute(default_factory=dict)

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield a parameter for each option."""
        for name, option in self.options.items():
            type_ = _type_of(self.model.model_fields[name])
            option = option or f"--{name.replace('_', '-')}"
            if type_ is bool and "/" not in option:
                option += f"/--no-{option.removeprefix('--')}"
            of = option_of(self.model, name, option, **self.more.get(name, {}))
            annotation: Any = Annotated[type_ | None, of]
            kind = inspect.Parameter.KEYWORD_ONLY
            yield inspect.Parameter(name, kind, default=None, annotation=annotation)


@dataclass(frozen=True, slots=True)
class SharedOptions:
    """Where options that several commands share stand among the parameters of a command.

    Attributes:
        options: Their types, as typer takes them, by the arguments that they give.
        defaults: The arguments of options that are not given, if they are not left out.
    """

    options: Mapping[str, Any]
    defaults: Mapping[str, Any] = attribute(default_factory=dict)

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield a parameter for each option."""
        for name, annotation in self.options.items():
            default, kind = self.defaults.get(name), inspect.Parameter.KEYWORD_ONLY
            yield inspect.Parameter(name, kind, default=default, annotation=annotation)


def with_fields(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that it has a parameter `fields` for.

    The parameter gets the values of the options that are given, by field.
    """
    own = inspect.signature(command, eval_str=True)
    (fields,) = get_args(own.parameters["fields"].annotation)[1:]
    parameters: list[inspect.Parameter] = []
    for one in own.parameters.values():
        parameters += fields.parameters() if one.name == "fields" else [one]

    @wraps(command)
    def run(**arguments: Any) -> None:
        values = {name: arguments.pop(name) for name in fields.options}
        texts = {name: value for name, value in values.items() if value not in (None, [])}
        command(fields=texts, **arguments)

    kind = inspect.Parameter.KEYWORD_ONLY
    run.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[one.replace(kind=kind) for one in parameters]
    )
    return run


def option_of(model: type[BaseModel], name: str, option: str, **more: Any) -> Any:
    """Return the option of a field of a model, and what it has otherwise than the field says."""
    of = model.model_fields[name]
    type_, checks = plain_type(of)
    last = name.split("_")[-1].upper()
    settings: dict[str, Any] = {"help": help_of(name, of)}
    if any(isinstance(one, Size) for one in checks):
        settings |= {"parser": byte_size, "metavar": "SIZE"}
    elif name.endswith("_seconds"):
        settings |= {"parser": _seconds, "metavar": "TIME"}
    elif type_ in (int, float):
        lows = (getattr(one, "low", getattr(one, "ge", None)) for one in checks)
        settings["min"] = next((one for one in lows if one is not None), None)
        settings["metavar"] = "COUNT" if type_ is int else "NUMBER"
    elif type_ is not bool and get_origin(type_) is not Literal:
        settings["metavar"] = "SQL" if name == "filter" else last.removesuffix("S")
    return typer.Option(option, **(settings | more))


def _type_of(field: FieldInfo) -> Any:
    """Return what the option of a field takes."""
    type_, _ = plain_type(field)
    if get_origin(type_) is list:
        return list[str]
    return type_ if type_ in (bool, int, float) or get_origin(type_) is Literal else str


def _seconds(text: str) -> int:
    return int(duration(text).total_seconds())


CompactionFields: TypeAlias = Annotated[
    dict[str, Any],
    FieldsOf(
        CompactionRequest,
        {
            "target_file_size": "--target-size",
            "filter": "",
            "min_files": "",
            "worth_reads": "",
            "max_batch_bytes": "",
        },
        {
            "filter": {
                "help": "Partitions to consider, in SQL, such as \"ds >= '2026-11-01'\"; all by "
                "default."
            },
            "worth_reads": {"metavar": "READS"},
            "max_batch_bytes": {
                "help": "Maximum size of the files that one commit rewrites; 8GB by default."
            },
        },
    ),
]
ReadersMaySeeBoth: TypeAlias = Annotated[
    bool, option_of(PolicyDefinition, "readers_may_see_both", "--readers-may-see-both")
]
TargetSize: TypeAlias = Annotated[
    int | None, option_of(CompactionRequest, "target_file_size", "--target-size")
]
# Options of plans, and of imports from a metastore.
PLANNING: Mapping[str, Any] = {
    "filter": FilterText,
    "columns": ColumnNames,
    "limit": Limit,
    "parallelism": Parallelism,
    "strategy": Strategy,
    "max_split_size": MaxSplitSize,
}
IMPORTING: Mapping[str, Any] = {
    "refresh": RefreshedTables,
    "on_spark": RefreshOnSpark,
    "trust_partitions": TrustPartitions,
    "take_over": TakeOver,
    "delete_vanished": DeleteVanished,
    "metastore": Metastore,
    "settings": SparkSettings,
}
_FLAGS = dict.fromkeys(("on_spark", "trust_partitions", "take_over", "delete_vanished"), False)
SyncFields: TypeAlias = Annotated[
    dict[str, Any], SharedOptions(IMPORTING, {"refresh": "all", **_FLAGS})
]
ImportFields: TypeAlias = Annotated[
    dict[str, Any], SharedOptions(IMPORTING, {"refresh": "changed", **_FLAGS})
]


def planning_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a plan from the options of `PLANNING`."""
    columns = names(fields.get("columns"))
    return {**fields} if columns is None else {**fields, "columns": columns}


def importing_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an import from the options of `IMPORTING`."""
    return {**fields, "settings": named_texts(fields.get("settings", []), "--conf")}
