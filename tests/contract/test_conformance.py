"""A published inventory is planned over HTTP into the groups that other systems would make."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest

import windrow
from tests.support.plans.conformance import HADOOP, ICEBERG, OPENLOOKENG, SPARK, TEZ, Case
from windrow_core.planning import StrategyName

MakePlan = Callable[..., dict[str, Any]]

CASES = [
    case
    for case in [*OPENLOOKENG, *SPARK, *ICEBERG, *TEZ, *HADOOP]
    if case.name
    in {
        "small splits",
        "two replicas, over ten a host",
        "buckets",
        "alternating sizes",
        "15, 3 at 10",
        "bzip2 is cut",
        "seven files in three buckets",
        "the hosts of a group are those with most bytes",
        "task groups",
        "files with delete files",
        "corrupt offsets",
        "100 splits of 10 MB, 1 wanted",
        "what nodes leave is grouped by racks, in smaller groups",
        "a bucket wants its part by bytes",
        "250 bytes are cut at 100",
    }
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.strategy}: {case.name}")
def test_the_groups_of_a_published_inventory_are_those_of_the_original(
    url: str, name: str, location: Path, make_plan: MakePlan, case: Case
) -> None:
    location.mkdir()
    with windrow.connect(url) as client:
        client.register_table(name, str(location), columns={"id": "bigint"})
        client.publish(name, case.published())

    plan = make_plan(name, options={"strategy": case.strategy, **case.options})

    assert plan["next_page_token"] is None
    case.check(
        [[split["length"] for split in group["splits"]] for group in plan["groups"]],
        [group["hosts"] for group in plan["groups"]],
    )


def test_files_ruled_out_by_a_filter_are_in_no_group(
    url: str, name: str, location: Path, make_plan: MakePlan
) -> None:
    location.mkdir()
    files = Case(name="", strategy="openlookeng", sizes=[100] * 10).published()
    paths = pa.array([f"pt_d={n % 2}/{n}" for n in range(10)])
    with windrow.connect(url) as client:
        client.register_table(name, str(location), columns={"id": "bigint"})
        client.publish(name, files.set_column(0, "path", paths))

    plan = make_plan(name, filter="pt_d = 1", options={"strategy": "openlookeng"})

    assert [len(group["splits"]) for group in plan["groups"]] == [5]


@pytest.mark.parametrize("strategy", get_args(StrategyName))
def test_a_strategy_states_its_defaults(events: str, make_plan: MakePlan, strategy: str) -> None:
    plan = make_plan(events, options={"strategy": strategy})

    assert plan["summary"]["strategy"] == strategy
    assert None not in {
        plan["options"]["min_split_size"],
        plan["options"]["open_file_cost"],
        plan["options"]["max_initial_split_size"],
    }
