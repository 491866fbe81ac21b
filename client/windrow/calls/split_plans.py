"""A plan on the client's side: what it says, and its groups as an Arrow table."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pyarrow as pa

from windrow.errors import IncompletePlanError
from windrow.models import Plan, PlanSummary

_END_MARKER = b"windrow:end"


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """A plan with all its groups.

    Attributes:
        info: The plan as the coordinator describes it, without groups.
        groups: One row per group: `group_id`, `bucket`, `hosts`, `cached_on`, `size_bytes`,
            `residual_filter` (JSON), `splits` (list of structs); largest group first.
    """

    info: Plan
    groups: pa.Table

    @property
    def summary(self) -> PlanSummary:
        """The plan in figures."""
        return self.info.summary

    def __len__(self) -> int:
        return len(self.groups)


def read_group_stream(plan_id: str, body: bytes) -> pa.Table:
    """Return the groups in an Arrow stream.

    Raises:
        IncompletePlanError: The stream was cut, or its end marker does not add up.
    """
    batches: list[pa.RecordBatch] = []
    marker: dict[str, int] | None = None
    try:
        with pa.ipc.open_stream(pa.py_buffer(body)) as stream:
            while marker is None:
                batch, metadata = stream.read_next_batch_with_custom_metadata()
                if metadata is not None and _END_MARKER in metadata:
                    marker = json.loads(metadata[_END_MARKER])
                else:
                    batches.append(batch)
            table = pa.Table.from_batches(batches, stream.schema)
    except StopIteration as error:
        raise IncompletePlanError(plan_id, "it has no end marker") from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise IncompletePlanError(plan_id, str(error)) from error
    if "splits" not in table.schema.names:
        raise IncompletePlanError(plan_id, "it holds something else than split groups")
    splits = sum(len(chunk.flatten()) for chunk in table["splits"].chunks)
    if marker != {"groups": len(table), "splits": splits}:
        raise IncompletePlanError(
            plan_id, f"{len(table)} groups of {splits} splits came, {marker} were sent"
        )
    return table
