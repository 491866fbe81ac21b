"""Every accepted inventory can be planned, with correct figures."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, example, given, note
from hypothesis import strategies as st

from tests.support.api.problems import problem_of
from tests.support.laws import examples
from tests.support.servers.coordinators import PLAIN, running
from windrow_service.planner.packing.strategies import STRATEGIES
from windrow_service.settings import Settings

MOST = 2**53
COLUMNS = {"i": "bigint", "d": "decimal(38,10)", "x": "double", "t": "timestamp", "s": "string"}
FILE = {"size_bytes": 1, "mtime_ns": 0, "row_count": 1}
NUMBERS = st.sampled_from([0, 1, 2, 4095, 2**31, 2**40, 2**50, MOST - 2, MOST, MOST + 1, 2**63 - 1])
FIT = st.sampled_from([0, 1, 2, 4095, 2**31, 2**40, 2**50])


def bounds(*ends: Any) -> st.SearchStrategy[dict[str, Any]]:
    ordered = st.lists(st.sampled_from(range(len(ends))), min_size=2, max_size=2).map(sorted)
    return ordered.map(lambda at: {"min": ends[at[0]], "max": ends[at[1]]})


STATS = st.fixed_dictionaries(
    {},
    optional={
        "i": bounds(-(2**63), 0, 2**63 - 1),
        "d": bounds(f"-{'9' * 28}.{'9' * 10}", "0", f"{'9' * 28}.{'9' * 10}"),
        "x": bounds(-1.7976931348623157e308, 5e-324, 1.7976931348623157e308),
        "s": bounds("", "a", "\U0010ffff"),
    },
)


def files(numbers: st.SearchStrategy[int]) -> st.SearchStrategy[list[dict[str, Any]]]:
    one = st.fixed_dictionaries(
        {
            "size_bytes": numbers,
            "mtime_ns": st.sampled_from([-(2**63), 0, 2**63 - 1]),
            "row_count": numbers,
            "bucket": st.sampled_from([None, 0, 2**31 - 1]),
            "hosts": st.lists(st.sampled_from(["a", "/r/b", "localhost"]), max_size=2, unique=True),
            "row_group_offsets": st.sampled_from([[], [4], [0, 2**40, 2**50 - 1], [2**63 - 1]]),
            "delete_count": st.sampled_from([0, 1, 2**31 - 1]),
            "delete_bytes": st.sampled_from([0, 1, 2**62, 2**63 - 1]),
            "stats_see_nan": st.booleans(),
            "stats": STATS,
            "suffix": st.sampled_from(["", ".csv", ".gz"]),
        }
    )
    return st.lists(one, min_size=1, max_size=8)


# Files as large as above have too many splits of these sizes for a plan, or fewer than a million:
# explaining a plan of a million splits takes longer than everything else here.
SIZES = st.sampled_from([1, 2**15, 2**25, 2**50])
OPTIONS = st.fixed_dictionaries(
    {"max_split_size": SIZES},
    optional={
        "max_initial_splits": st.sampled_from([0, 1, 1_000_000]),
        "max_small_splits_grouped": st.sampled_from([1, 10_000_000]),
        "open_file_cost": st.sampled_from([0, 1, 2**40]),
        "parallelism": st.sampled_from([1, 7, 1_000_000]),
        "cached_splits": st.sampled_from(["separate", "by_worker"]),
    },
)
FILTERS = st.sampled_from(
    [None, "i = 9223372036854775807", "d > 0", "x < 1e308", "s >= 'a'", "i IS NULL", "p = '1'"]
)
_NAMES = count()


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("extremes")
    with (
        running(Settings(state_dir=folder / "state", allowed_locations=(str(folder),))) as url,
        httpx.Client(verify=PLAIN, base_url=url, timeout=120) as http,
    ):
        yield http


def published(http: httpx.Client, sent: list[dict[str, Any]], folder: Path) -> httpx.Response:
    """Publish files as a new table, whose name `table_of` finds in the answer."""
    name = f"t{next(_NAMES)}"
    columns = [{"name": column, "type": type_} for column, type_ in COLUMNS.items()]
    partition = [{"name": "p", "type": "string"}]
    definition = {"location": str(folder), "columns": columns, "partition_columns": partition}
    http.put(f"/tables/{name}", json=definition).raise_for_status()
    return http.post(f"/tables/{name}/snapshots", json={"added": named(sent)})


def named(sent: list[dict[str, Any]], prefix: str = "f") -> list[dict[str, Any]]:
    return [
        {
            "path": f"p={number % 2}/{prefix}{number}{file.get('suffix', '')}",
            **{name: value for name, value in file.items() if name != "suffix"},
        }
        for number, file in enumerate(sent)
    ]


def table_of(answer: httpx.Response) -> str:
    return answer.request.url.path.split("/")[2]


def fits(sent: list[dict[str, Any]]) -> bool:
    return all(sum(file[name] for file in sent) <= MOST for name in ("size_bytes", "row_count"))


@pytest.fixture(scope="module")
def folder(http: httpx.Client) -> Path:
    return Path(http.get("/config").json()["allowed_locations"][0])


SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


@pytest.mark.slow
def test_totals_above_the_limit_are_refused(http: httpx.Client, folder: Path) -> None:
    @examples(20, suppress_health_check=SLOW)
    @given(sent=files(NUMBERS))
    @example(sent=[{**FILE, "size_bytes": 2**63 - 1}] * 4)
    @example(sent=[{**FILE, "size_bytes": 2**62}] * 4)
    @example(sent=[{**FILE, "row_count": 2**63 - 1}] * 2)
    @example(sent=[{**FILE, "size_bytes": MOST}])
    def law(sent: list[dict[str, Any]]) -> None:
        answer = published(http, sent, folder)

        if fits(sent):
            assert answer.status_code == 201, answer.text
            assert answer.json()["size_bytes"] == sum(file["size_bytes"] for file in sent)
            assert answer.json()["row_count"] == sum(file["row_count"] for file in sent)
        else:
            detail = problem_of(answer, 422, "totals-too-large")["detail"]
            assert f"{MOST:,}" in detail

    law()


def test_a_delta_with_totals_above_the_limit_is_refused(http: httpx.Client, folder: Path) -> None:
    half = {**FILE, "size_bytes": MOST // 2}
    table = table_of(published(http, [half], folder))

    def add(*added: dict[str, Any]) -> httpx.Response:
        return http.post(f"/tables/{table}/snapshots?mode=delta", json={"added": list(added)})

    first, second = named([half, half], "g")
    problem_of(add({**first, "size_bytes": 2**63 - 1}), 422, "totals-too-large")
    problem_of(add({**first, "row_count": 2**63 - 1}), 422, "totals-too-large")
    assert add(first).is_success
    problem_of(add({**second, "size_bytes": 2}), 422, "totals-too-large")
    assert add({**first, "size_bytes": 1}, {**second, "size_bytes": MOST // 2 - 1}).is_success
    assert http.get(f"/tables/{table}").json()["current_snapshot"]["size_bytes"] == MOST


@pytest.mark.slow
def test_every_accepted_inventory_can_be_planned_with_every_strategy(
    http: httpx.Client, folder: Path
) -> None:
    def check(body: dict[str, Any], options: dict[str, Any], size_bytes: int | None) -> None:
        made = http.post("/plans", json=body | {"options": options})
        if made.status_code == 422:
            problem_of(made, 422, "plan-too-large")
            return
        assert made.status_code == 200, made.text
        plan = made.json()
        _has_sane_figures(plan["summary"])
        assert size_bytes in (None, plan["summary"]["size_bytes"])
        explained = http.get(f"/plans/{plan['plan_id']}/explain")
        assert explained.status_code == 200, explained.text
        _has_sane_figures(explained.json())

    @examples(15, suppress_health_check=SLOW)
    @given(sent=files(FIT), options=OPTIONS, sql=FILTERS, limit=st.none() | st.just(10**11))
    # No array may be as long as the highest bucket number.
    @example(sent=[{**FILE, "bucket": 2**31 - 1}], options={}, sql=None, limit=None)
    @example(
        sent=[{**FILE, "delete_count": 2**31 - 1, "delete_bytes": 2**63 - 1}] * 8,
        options={"max_split_size": 1, "open_file_cost": 2**40},
        sql=None,
        limit=None,
    )
    def law(
        sent: list[dict[str, Any]], options: dict[str, Any], sql: str | None, limit: int | None
    ) -> None:
        answer = published(http, sent, folder)
        assert answer.is_success, answer.text
        body = {"table": table_of(answer), "filter": sql, "limit": limit}
        is_whole = sql is None and limit is None
        size_bytes = sum(file["size_bytes"] for file in sent) if is_whole else None
        for strategy in STRATEGIES:
            note(strategy)
            check(body, {"strategy": strategy, **options}, size_bytes)

    law()


@pytest.mark.slow
def test_compactions_and_writes_of_every_accepted_inventory_can_be_planned(
    http: httpx.Client, folder: Path
) -> None:
    @examples(15, suppress_health_check=SLOW)
    @given(sent=files(FIT), target=SIZES, rows=st.sampled_from([None, 1, 2**31, 2**50]))
    def law(sent: list[dict[str, Any]], target: int, rows: int | None) -> None:
        answer = published(http, sent, folder)
        assert answer.is_success, answer.text
        table = table_of(answer)
        asked = {"target_file_size": target, "max_batch_bytes": 2**50, "min_files": 2}
        compaction = http.post(f"/tables/{table}/compaction-plans", json=asked)
        assert compaction.status_code == 200, compaction.text
        _has_sane_figures(compaction.json())
        advice = http.get(f"/tables/{table}/advice", params={"target_file_size": target})
        assert advice.status_code == 200, advice.text
        given = {"rows": rows} if rows else {"keys_from": "files"}
        _is_planned(http, {"table": table, "target_file_size": target, **given})

    law()


def many_keys(rows: int, count: int) -> dict[str, Any]:
    return {
        "columns": [{"name": "p", "type": "int"}],
        "values": [list(range(count))],
        "rows": [rows] * count,
    }


def test_every_valid_write_is_planned_or_refused(
    http: httpx.Client,
) -> None:
    @examples(40, suppress_health_check=SLOW)
    @given(
        asked=st.fixed_dictionaries(
            {},
            optional={
                "target_file_size": SIZES,
                "target_rows": st.sampled_from([1, 2**31, 2**50]),
                "rows": st.sampled_from([0, 1, 2**31, 2**50]),
                "bytes_per_row": st.sampled_from([0.001, 1.0, 2.0**40]),
                "keys": st.builds(
                    many_keys, st.sampled_from([0, 1, 2**31, 2**50]), st.sampled_from([1, 3])
                ),
                "files": st.sampled_from([1, 10_000]),
                "files_per_key": st.sampled_from([1, 10_000]),
                "scheme": st.sampled_from(["exact", "coalesce", "salted"]),
                "source_tasks": st.sampled_from([1, 1_000_000]),
                "parallelism": st.sampled_from([1, 1_000_000]),
                "efficiency": st.sampled_from([5e-324, 0.5, 0.99]),
                "max_files": st.sampled_from([1, 10_000]),
            },
        )
    )
    @example(asked={"keys": many_keys(2**50, 20_000), "bytes_per_row": 2.0**40})
    @example(asked={"keys": many_keys(2**50, 20_000), "files_per_key": 1})
    @example(asked={"keys": many_keys(2**50, 20_000), "target_rows": 2**50})
    def law(asked: dict[str, Any]) -> None:
        _is_planned(http, asked)

    law()


def _is_planned(http: httpx.Client, asked: dict[str, Any]) -> None:
    answer = http.post("/write-plans", json=asked)
    assert answer.status_code in (200, 422), answer.text
    if answer.status_code == 200:
        # A row may have 1 TiB, so the total may exceed 64 bits.
        _has_sane_figures(answer.json(), most=float("inf"))


def _has_sane_figures(value: Any, most: float = 2.0**63) -> None:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            _has_sane_figures(inner, most)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        assert 0 <= value < most, value
