"""Procedures of catalogs, `CALL windrow.system.erase(…)`: what they take and give, and who runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from windrow_calls.errors import InvalidArgumentError
from windrow_tables.errors import UnfitReadError

# Their namespace, in every catalog.
SYSTEM = "system"
# Carries a procedure out with a client, in a session, and returns its only row.
Run = Callable[[Any, SparkSession, Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a procedure.

    Attributes:
        name: Its name.
        comment: What it is for.
        type: Its type in SQL: `STRING`, `BOOLEAN` or `ARRAY<STRING>`.
        is_needed: Whether calls must give it; otherwise it is NULL by default, or false.
    """

    name: str
    comment: str
    type: str = "STRING"
    is_needed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A procedure.

    Attributes:
        name: Its name.
        description: What it does, in a sentence.
        parameters: What it takes.
        columns: What it gives: a row of these columns, by their types in SQL, `BIGINT`, `DOUBLE`,
            `BOOLEAN` or `STRING`.
        run: Carries it out; gets the arguments that are not NULL.
    """

    name: str
    description: str
    parameters: Sequence[Parameter]
    columns: Mapping[str, str]
    run: Run

    def told(self) -> dict[str, Any]:
        """Return what `Procedures.java` makes a procedure of."""
        return {
            "name": self.name,
            "description": self.description,
            "columns": ", ".join(f"`{name}` {type_}" for name, type_ in self.columns.items()),
            "parameters": [
                {name: getattr(one, name) for name in Parameter.__dataclass_fields__}
                for one in self.parameters
            ],
        }

    def answer(
        self, client: Any, spark: SparkSession, arguments: Mapping[str, Any]
    ) -> list[list[Any]]:
        """Carry it out, and return its rows.

        Raises:
            InvalidArgumentError: An argument is neither true nor false.
        """
        for name, value in arguments.items():
            if value is None:
                raise InvalidArgumentError(name, f"{name!r} is NULL: say true or false")
        row = self.run(client, spark, arguments)
        return [[row[name] for name in self.columns]]


def named(procedures: Sequence[Procedure], namespace: Sequence[str], name: str) -> Procedure:
    """Return a procedure by its name, whatever its case.

    Raises:
        UnfitReadError: There is none.
    """
    for one in procedures:
        if [part.lower() for part in (*namespace, name)] == [SYSTEM, one.name]:
            return one
    names = ", ".join(f"{SYSTEM}.{one.name}" for one in procedures)
    raise UnfitReadError(
        f"there is no procedure {'.'.join((*namespace, name))!r}", f"call one of {names}"
    )
