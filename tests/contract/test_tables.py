"""`/tables`: register, look up, list, delete."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.support.api.problems import problem_of


def test_a_new_table_is_created_and_repeating_it_changes_nothing(
    http: httpx.Client, name: str, location: Path
) -> None:
    body = {"location": str(location)}

    first = http.put(f"/tables/{name}", json=body)
    again = http.put(f"/tables/{name}", json=body)

    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert first.headers["ETag"] == again.headers["ETag"]


def test_a_changed_definition_gets_a_new_etag(
    http: httpx.Client, name: str, location: Path
) -> None:
    first = http.put(f"/tables/{name}", json={"location": str(location)})

    changed = http.put(
        f"/tables/{name}", json={"location": str(location), "sort_columns": [{"name": "id"}]}
    )

    assert changed.status_code == 200
    assert changed.headers["ETag"] != first.headers["ETag"]
    assert http.get(f"/tables/{name}").json()["definition"]["sort_columns"][0]["name"] == "id"


def test_a_change_with_the_current_etag_is_made_and_with_an_old_one_refused(
    http: httpx.Client, name: str, location: Path
) -> None:
    body = {"location": str(location)}
    old = http.put(f"/tables/{name}", json=body).headers["ETag"]
    sorted_by_id = body | {"sort_columns": [{"name": "id"}]}

    made = http.put(f"/tables/{name}", json=sorted_by_id, headers={"If-Match": old})
    refused = http.put(f"/tables/{name}", json=body, headers={"If-Match": old})

    assert made.status_code == 200
    problem_of(refused, 412, "table-changed")
    assert http.get(f"/tables/{name}").json() == made.json()


def test_if_match_with_a_star_only_requires_the_table_to_exist(
    http: httpx.Client, name: str, location: Path
) -> None:
    body = {"location": str(location)}

    missing = http.put(f"/tables/{name}", json=body, headers={"If-Match": "*"})
    http.put(f"/tables/{name}", json=body)
    there = http.put(f"/tables/{name}", json=body, headers={"If-Match": "*"})

    problem_of(missing, 412, "table-changed")
    assert there.status_code == 200


def test_a_refused_registration_registers_nothing(
    http: httpx.Client, name: str, location: Path
) -> None:
    http.put(f"/tables/{name}", json={"location": str(location)}, headers={"If-Match": '"x"'})

    problem_of(http.get(f"/tables/{name}"), 404, "table-not-found")


def test_an_unknown_field_is_refused_and_named(
    http: httpx.Client, name: str, location: Path
) -> None:
    answer = http.put(f"/tables/{name}", json={"location": str(location), "colour": "red"})

    assert "colour" in problem_of(answer, 422, "invalid-request")["detail"]


@pytest.mark.parametrize(
    "bad",
    ["a b", "a.b.c.d", "-a", "a..b", "a'b", "a%00b", "%2e%2e", "x" * 200, "a;b", "%ff", "é"],
)
def test_a_malformed_name_is_refused(http: httpx.Client, location: Path, bad: str) -> None:
    answer = http.put(f"/tables/{bad}", json={"location": str(location)})

    problem_of(answer, 422, "invalid-request")


@pytest.mark.parametrize(
    ("fields", "slug", "word"),
    [
        ({"columns": [{"name": "a", "type": "quux"}]}, "unknown-type", "quux"),
        ({"columns": [{"name": "a", "type": "decimal(99,2)"}]}, "unknown-type", "decimal(99,2)"),
        ({"columns": [{"name": "a", "type": "array<" * 500}]}, "unknown-type", "array"),
        ({"columns": [{"name": "a", "type": "\0"}]}, "unknown-type", "type"),
        (
            {"columns": [{"name": "a", "type": "int"}, {"name": "A", "type": "int"}]},
            "invalid-table",
            "'a'",
        ),
        ({"sort_columns": [{"name": "a"}, {"name": "a"}]}, "invalid-table", "'a'"),
        ({"columns": [{"name": "a", "type": "char(3)"}]}, "invalid-table", "as string"),
        (
            {"columns": [{"name": "a", "type": "array<struct<b: CHAR (3)>>"}]},
            "invalid-table",
            "'a'",
        ),
        (
            {
                "columns": [{"name": "a", "type": "int"}],
                "partition_columns": [],
                "bucket_spec": {"columns": ["b"], "count": 4},
            },
            "invalid-table",
            "'b'",
        ),
        ({"bucket_spec": {"columns": ["a"], "count": 0}}, "invalid-request", "bucket_spec"),
        ({"format": "xml"}, "invalid-request", "format"),
        ({"location": ""}, "invalid-request", "location"),
    ],
)
def test_an_invalid_definition_is_refused_with_the_position_of_the_fault(
    http: httpx.Client,
    name: str,
    location: Path,
    fields: dict[str, object],
    slug: str,
    word: str,
) -> None:
    answer = http.put(f"/tables/{name}", json={"location": str(location)} | fields)

    assert word in problem_of(answer, 422, slug)["detail"]
    problem_of(http.get(f"/tables/{name}"), 404, "table-not-found")


def test_a_definition_that_is_too_long_is_refused(
    http: httpx.Client, name: str, location: Path
) -> None:
    columns = [{"name": f"c{at}", "type": f"struct<{'x' * 65_000}{at}:int>"} for at in range(70)]

    answer = http.put(f"/tables/{name}", json={"location": str(location), "columns": columns})

    assert "4,194,304" in problem_of(answer, 422, "invalid-table")["detail"]


def test_tables_are_listed_by_name_a_page_at_a_time(http: httpx.Client, location: Path) -> None:
    names = [f"paging.t{number}" for number in range(5)]
    for each in names:
        http.put(f"/tables/{each}", json={"location": str(location)})

    listed: list[str] = []
    params: dict[str, str] = {"page_size": "2"}
    while True:
        page = http.get("/tables", params=params).raise_for_status().json()
        assert len(page["tables"]) <= 2
        listed += [table["name"] for table in page["tables"]]
        if page["next_page_token"] is None:
            break
        params["page_token"] = page["next_page_token"]

    assert listed == sorted(listed)
    assert [each for each in listed if each.startswith("paging.")] == names


def test_a_page_token_that_was_not_made_for_this_list_is_refused(
    http: httpx.Client, events: str, location: Path
) -> None:
    for number in range(2):
        http.put(f"/tables/tokens.t{number}", json={"location": str(location)})
    token = http.get("/tables", params={"page_size": 1}).json()["next_page_token"]
    body, _, signature = token.rpartition(".")

    foreign = http.get(f"/tables/{events}/snapshots", params={"page_token": token})
    tampered = http.get("/tables", params={"page_token": f"{body}x.{signature}"})
    invented = http.get("/tables", params={"page_token": "Mg"})
    empty = http.get("/tables", params={"page_token": ""})

    for answer in (foreign, tampered, invented, empty):
        problem_of(answer, 404, "page-not-found")


@pytest.mark.parametrize("size", ["0", "-1", "10001", "many", "1e3"])
def test_a_page_size_out_of_bounds_is_refused(http: httpx.Client, size: str) -> None:
    problem_of(http.get("/tables", params={"page_size": size}), 422, "invalid-request")


def test_a_deleted_table_is_gone_and_its_files_stay(
    http: httpx.Client, events: str, location: Path
) -> None:
    files = sorted(location.rglob("*"))

    deleted = http.delete(f"/tables/{events}")

    assert (deleted.status_code, deleted.content) == (204, b"")
    problem_of(http.get(f"/tables/{events}"), 404, "table-not-found")
    problem_of(http.get(f"/tables/{events}/snapshots"), 404, "table-not-found")
    problem_of(http.get(f"/tables/{events}/refresh"), 404, "table-not-found")
    problem_of(http.post("/plans", json={"table": events}), 404, "table-not-found")
    problem_of(http.delete(f"/tables/{events}"), 404, "table-not-found")
    assert sorted(location.rglob("*")) == files


def test_a_delete_with_an_old_etag_deletes_nothing(http: httpx.Client, events: str) -> None:
    refused = http.delete(f"/tables/{events}", headers={"If-Match": '"old"'})
    current = http.get(f"/tables/{events}").headers["ETag"]

    problem_of(refused, 412, "table-changed")
    assert http.delete(f"/tables/{events}", headers={"If-Match": current}).status_code == 204


def test_a_new_table_under_an_old_name_inherits_nothing(
    http: httpx.Client, events: str, location: Path
) -> None:
    before = http.get(f"/tables/{events}").headers["ETag"]
    http.delete(f"/tables/{events}")

    made = http.put(f"/tables/{events}", json={"location": str(location)})

    assert made.status_code == 201
    assert made.headers["ETag"] != before
    assert made.json()["current_snapshot"] is None
    problem_of(http.get(f"/tables/{events}/refresh"), 404, "refresh-not-found")
    problem_of(http.post("/plans", json={"table": events}), 409, "table-not-refreshed")


@pytest.mark.parametrize(
    "outside", ["/", "/etc", "{allowed}/..", "{allowed}/../other", "{allowed}x"]
)
def test_a_location_outside_the_allowed_folders_is_forbidden(
    http: httpx.Client, name: str, tables_folder: Path, outside: str
) -> None:
    location = outside.format(allowed=tables_folder)

    answer = http.put(f"/tables/{name}", json={"location": location})

    assert "WINDROW_ALLOWED_LOCATIONS" in problem_of(answer, 403, "location-not-allowed")["detail"]


def test_a_link_that_leads_out_of_the_allowed_folders_is_forbidden(
    http: httpx.Client, name: str, location: Path, tmp_path: Path
) -> None:
    location.symlink_to(tmp_path)

    problem_of(
        http.put(f"/tables/{name}", json={"location": str(location)}), 403, "location-not-allowed"
    )


def test_a_location_that_later_leads_out_of_the_allowed_folders_is_not_listed(
    http: httpx.Client, name: str, location: Path, tmp_path: Path
) -> None:
    location.mkdir()
    http.put(f"/tables/{name}", json={"location": str(location)}).raise_for_status()
    location.rmdir()
    location.symlink_to(tmp_path)

    problem_of(http.post(f"/tables/{name}/refresh"), 403, "location-not-allowed")


def test_a_location_is_stored_without_links_and_dots(
    http: httpx.Client, name: str, location: Path
) -> None:
    answer = http.put(f"/tables/{name}", json={"location": f"file://{location}/../{name}/./"})

    assert answer.json()["definition"]["location"] == str(location)


@pytest.mark.parametrize(
    ("location", "word"),
    [
        ("data/events", "not absolute"),
        ("~/events", "not absolute"),
        ("ftp://server/events", "ftp: is not supported"),
        ("file://server/events", "another machine"),
        ("/data/\0events", "control character"),
    ],
)
def test_a_location_that_is_not_an_absolute_path_is_refused_clearly(
    http: httpx.Client, name: str, location: str, word: str
) -> None:
    answer = http.put(f"/tables/{name}", json={"location": location})

    assert word in problem_of(answer, 422, "invalid-location")["detail"]
