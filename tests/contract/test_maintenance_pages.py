"""The pages that act: who may queue, pause, exempt and define what, and what then happens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any

import httpx
import pytest

from tests.support.api.dashboards import (
    LAKE,
    Operated,
    lose_workers,
    past_hours,
    token,
    written,
)
from tests.support.servers.coordinators import PLAIN, running
from windrow_service.settings import Settings

PAGE, DAYS = "/dashboard/maintenance", ["ds=2026-11-02", "ds=2026-11-03"]
EAGER = {"min_age_seconds": 0, "min_gain": 0.0, "reads_per_day": 100.0}


def of_table(name: str) -> str:
    """Return the path of the page of a table's maintenance."""
    return f"/dashboard/tables/{name}/maintenance"


class Site:
    """A coordinator that needs tokens, and the browsers of its callers."""

    def __init__(self, url: str, settings: Settings) -> None:
        self.url = url
        self.settings = settings
        self.operated = Operated(url, token(settings, "operator", "admin"))
        self.browsers: dict[str, httpx.Client] = {}

    def browser(self, *grants: str) -> httpx.Client:
        """Return the browser of a caller that has these grants and their name."""
        name = "-".join(one.replace(":", "-").replace(".*", "") for one in grants)
        if name not in self.browsers:
            http = httpx.Client(verify=PLAIN, base_url=self.url, timeout=60)
            self.browsers[name] = http
            sent = {"token": token(self.settings, name, *grants)}
            assert http.post("/dashboard/sign-in", data=sent).status_code == 303
        return self.browsers[name]

    def send(self, path: str, *grants: str, **fields: str) -> httpx.Response:
        """Send a form of a page, as a caller with these grants."""
        http = self.browser(*grants)
        (form, *_) = re.findall(r'name="form" value="([^"]+)"', http.get("/dashboard/work").text)
        return http.post(path, data={"form": form, **fields})

    def receipts(self, table: str) -> list[dict[str, Any]]:
        answer = self.operated.http.get("/maintenance/receipts", params={"table": table})
        return list(answer.raise_for_status().json()["receipts"])

    def changes(self, table: str) -> list[tuple[str, str, str, str]]:
        """Return who changed what of a table, the latest first."""
        answer = self.operated.http.get("/audit", params={"table": table}).raise_for_status()
        return [
            (one["principal"], one["operation"], one["kind"], one["outcome"])
            for one in answer.json()["changes"]
        ]

    def claim(self, pattern: str = "*") -> dict[str, Any] | None:
        body = {"worker": "spark-1:7", "pattern": pattern}
        answer = self.operated.http.post("/maintenance/claims", json=body).raise_for_status()
        return dict(answer.json()) if answer.content else None

    def done(self, item: dict[str, Any]) -> None:
        outcome = {"files_before": 6, "files_after": 2, "core_seconds": 1.5, "bytes_before": 10}
        body = {"state": "done", "text": "6 files became 2", "outcome": outcome}
        path = f"/maintenance/claims/{item['claim_id']}"
        self.operated.http.put(path, json=body).raise_for_status()

    def decide(self) -> None:
        self.operated.http.post("/maintenance/rounds").raise_for_status()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    settings = Settings(
        state_dir=tmp_path_factory.mktemp("acting"), allowed_locations=(LAKE,), require_tokens=True
    )
    with running(settings) as url:
        site = Site(url, settings)
        yield site
        for http in (*site.browsers.values(), site.operated.http):
            http.close()


@pytest.fixture
def make(site: Site) -> Iterator[Callable[[str], str]]:
    """Return a function that makes a table of two days, three small files each."""

    def table(name: str) -> str:
        site.operated.register(name)
        site.operated.publish(name, written(DAYS, 3, 100_000, day=1))
        return name

    yield table
    for policy in site.operated.http.get("/policies").json()["policies"]:
        site.operated.http.delete(f"/policies/{policy['pattern']}").raise_for_status()
    site.operated.http.put("/maintenance/budget", json={}).raise_for_status()


def test_without_a_worker_the_page_has_the_command_and_with_one_a_button(
    site: Site, make: Callable[[str], str]
) -> None:
    name = make("idle.t")
    command = f"windrow compact {name} --url {site.url}"

    before = site.browser("admin").get(of_table(name)).text
    site.claim("other.*")
    of_another = site.browser("admin").get(of_table(name)).text
    site.claim("idle.*")
    after = site.browser("admin").get(of_table(name)).text
    reader = site.browser("read").get(of_table(name)).text

    assert command in before
    assert "6 small files" in before
    assert ">Compact now</button>" not in before
    assert ">Compact now</button>" not in of_another
    assert ">Compact now</button>" in after
    assert "spark-1:7" in after
    assert command in after
    assert ">Compact now</button>" not in reader
    assert "write:idle.t" in reader


def test_pages_name_a_worker_while_it_is_there_and_not_once_it_is_gone(
    site: Site, make: Callable[[str], str]
) -> None:
    name = make("gone.t")
    site.operated.http.put(f"/policies/{name}", json=EAGER).raise_for_status()
    site.decide()
    assert site.claim("gone.*") is not None
    site.decide()
    pages = (PAGE, of_table(name))

    there = [site.browser("admin").get(page).text for page in pages]
    lose_workers(site.settings.state_dir)
    site.decide()
    gone = [site.browser("admin").get(page).text for page in pages]

    assert all("spark-1:7" in text for text in there)
    assert not any("its worker is gone" in text for text in there)
    assert not any("spark-1:7" in text for text in gone)
    assert all(
        "running; its worker is gone, and the next one takes the work" in text for text in gone
    )
    assert "No worker is running now" in gone[0]
    # What a worker has, or had, is in the list of what runs.
    reasons = {one["reason"]: one["state"] for one in site.receipts(name)}
    assert reasons == {"running": "running"}
    item = site.claim("gone.*")
    assert item is not None
    assert "spark-1:7" in site.browser("admin").get(PAGE).text
    site.done(item)


def test_compact_now_comes_before_all_other_work_and_is_recorded(
    site: Site, make: Callable[[str], str]
) -> None:
    name, other = make("now.t"), make("now.other")
    site.operated.http.put(f"/policies/{other}", json=EAGER).raise_for_status()
    site.operated.http.put(
        f"/policies/{name}", json={"enabled": False, "windows": ["00:00-00:01"]}
    ).raise_for_status()
    site.decide()
    path = f"{PAGE}/{name}/compact"

    assert site.send(path, "read").status_code == 403
    assert site.send(path, "write:idle.*").status_code == 404
    assert site.browser("admin").post(path, data={"form": "x"}).status_code == 403
    answer = site.send(path, "write:now.*")
    again = site.send(path, "write:now.*")
    site.decide()

    assert (answer.status_code, again.status_code) == (303, 303)
    assert answer.headers["Location"].endswith(f"{name}/maintenance?count=1")
    assert site.changes(name)[0] == ("write-now", "request_work", "work", "created")
    first, second, third = site.claim("now.*"), site.claim("now.*"), site.claim("now.*")
    assert first is not None
    assert second is not None
    assert (first["table"], sorted(first["folders"])) == (name, DAYS)
    assert (second["table"], third) == (other, None)
    assert any("write-now asked for it" in one["text"] for one in site.receipts(name))
    nothing = site.send(path, "write:now.*")
    assert nothing.headers["Location"].endswith("?count=0")
    site.done(first)
    site.done(second)


def test_work_that_was_asked_for_is_withdrawn(site: Site, make: Callable[[str], str]) -> None:
    name = make("back.t")
    site.send(f"{PAGE}/{name}/compact", "admin", folder=DAYS[1])
    (waiting,) = site.receipts(name)
    assert (waiting["reason"], waiting["folders"]) == ("requested", [DAYS[1]])
    shown = site.browser("admin").get(of_table(name)).text
    assert f'aria-label="Withdraw work {waiting["number"]}"' in shown

    assert site.send(f"{PAGE}/{name}/withdraw", "admin", number="x").status_code == 403
    number = str(waiting["number"])
    assert site.send(f"{PAGE}/{name}/withdraw", "admin", number=number).status_code == 303

    assert site.receipts(name) == []
    assert site.changes(name)[0] == ("admin", "withdraw_work", "work", "cancelled")


def test_one_button_pauses_everything_and_another_resumes_it(
    site: Site, make: Callable[[str], str]
) -> None:
    name = make("stop.t")
    budget = {"core_seconds_per_hour": 7_200.0, "bytes_per_hour": 10**12}
    site.operated.http.put("/maintenance/budget", json=budget).raise_for_status()
    site.operated.http.put(f"/policies/{name}", json=EAGER).raise_for_status()
    site.decide()
    assert site.send("/dashboard/budget", "write", on="no").status_code == 403
    assert "Pause everything" not in site.browser("write").get(PAGE).text

    assert site.send("/dashboard/budget", "admin", on="no").status_code == 303
    none = site.claim("stop.*")
    site.decide()
    (receipt,) = site.receipts(name)
    shown = site.browser("read").get(PAGE).text
    assert site.send("/dashboard/budget", "admin", on="yes").status_code == 303
    site.decide()

    assert none is None
    assert (receipt["reason"], receipt["state"]) == ("paused", "left_alone")
    assert "All maintenance is paused" in shown
    assert site.operated.http.get("/maintenance/budget").json() == budget
    item = site.claim("stop.*")
    assert item is not None
    site.done(item)


def test_a_table_is_left_alone_and_maintained_again_by_its_own_policy(
    site: Site, make: Callable[[str], str]
) -> None:
    name, http = make("own.t"), site.operated.http
    http.put("/policies/own.*", json=EAGER).raise_for_status()
    path = f"{PAGE}/{name}/switch"

    assert site.send(path, "read", on="no").status_code == 403
    assert site.send(path, "write:own.*", on="no").status_code == 303
    off = http.get(f"/tables/{name}/maintenance").json()
    shown = unescape(site.browser("read").get(of_table(name)).text)
    assert site.send(path, "write:own.*", on="yes").status_code == 303
    on = http.get(f"/tables/{name}/maintenance").json()

    assert (off["policy"]["enabled"], off["sources"]["enabled"]) == (False, name)
    assert off["policy"]["min_gain"] == 0.0
    assert "Windrow leaves this table alone, because the policy" in shown
    assert (on["policy"]["enabled"], on["sources"]["enabled"]) == (True, "own.*")
    assert http.get(f"/policies/{name}").status_code == 404
    operations = [change[1:] for change in site.changes(name)[:2]]
    assert operations == [
        ("define_policy", "policy", "deleted"),
        ("define_policy", "policy", "created"),
    ]


def test_a_partition_is_exempt_until_it_is_included_again(
    site: Site, make: Callable[[str], str]
) -> None:
    name, http = make("part.t"), site.operated.http
    http.put("/policies/part.*", json=EAGER).raise_for_status()
    path = f"{PAGE}/{name}/exempt"

    assert site.send(path, "read", folder=DAYS[0]).status_code == 403
    for _ in range(2):
        assert site.send(path, "write:part.*", folder=f"/{DAYS[0]}/").status_code == 303
    site.decide()
    exempt = {one["reason"]: one for one in site.receipts(name)}
    assert f"{DAYS[0]} was left out by its policy" in exempt["excluded"]["text"]
    assert exempt["waiting"]["folders"] == [DAYS[1]]
    assert http.get(f"/tables/{name}/maintenance").json()["policy"]["exempt_folders"] == [DAYS[0]]
    # Whoever asks for all of the table does not mean it, but whoever names it does.
    site.send(f"{PAGE}/{name}/compact", "admin")
    assert site.receipts(name)[0]["folders"] == [DAYS[1]]
    site.send(f"{PAGE}/{name}/compact", "admin", folder=DAYS[0])
    assert site.receipts(name)[0]["folders"] == [DAYS[0]]

    assert site.send(path, "write:part.*", folder=DAYS[0], on="yes").status_code == 303
    assert http.get(f"/policies/{name}").status_code == 404


def test_a_policy_is_added_changed_switched_and_removed_by_forms(
    site: Site, make: Callable[[str], str]
) -> None:
    name, http = make("form.t"), site.operated.http
    fields = {"pattern": "form.*", "enabled": "yes", "target_file_size": "256MB"}
    fields |= {"windows": "22:00-06:00, 12:00-13:00 Europe/Berlin", "max_share": "25%"}

    assert site.send("/dashboard/policies", "read", **fields).status_code == 403
    assert site.send("/dashboard/policies", "write:form.t", **fields).status_code == 403
    assert site.send("/dashboard/policies", "write:form.*", **fields).status_code == 303
    policy = http.get("/policies/form.*").json()
    refusal = site.send("/dashboard/policies", "write:form.*", **fields)
    page = site.browser("read:form.*").get("/dashboard/policies/form.*").text

    assert policy["target_file_size"] == 256 * 2**20
    assert policy["windows"] == ["22:00-06:00", "12:00-13:00 Europe/Berlin"]
    assert policy["max_share"] == 0.25
    assert refusal.status_code == 422
    assert "there is a policy for it already" in refusal.text
    assert 'value="256 MB"' in page
    assert ">Change it</button>" not in page
    (version,) = re.findall(r'name="version" value="([^"]+)"', page)
    sent = fields | {"version": version, "min_files": "5"}
    assert site.send("/dashboard/policies", "admin", **sent).status_code == 303
    # Another form that was opened before does not undo that.
    assert site.send("/dashboard/policies", "admin", **fields, version=version).status_code == 412
    assert http.get("/policies/form.*").json()["min_files"] == 5
    switch = "/dashboard/policies/form.*/switch"
    assert site.send(switch, "write:form.t", on="no").status_code == 403
    assert site.send(switch, "write:form.*", on="no").status_code == 303
    assert http.get("/policies/form.*").json()["enabled"] is False
    assert http.get("/policies/form.*").json()["min_files"] == 5
    remove = "/dashboard/policies/form.*/remove"
    assert "Remove the policy of form.*?" in site.send(remove, "write:form.*").text
    assert http.get("/policies/form.*").status_code == 200
    assert site.send(remove, "write:form.*", sure="yes").status_code == 303
    assert http.get("/policies/form.*").status_code == 404
    assert name


@pytest.mark.parametrize(
    ("fields", "name", "reason"),
    [
        ({"pattern": "a b"}, "pattern", "a table's name"),
        ({"min_files": "few"}, "min_files", "is not a number"),
        ({"windows": "22:00-22:00"}, "", "begins when it ends"),
        ({"filter": "ds >="}, "filter", "ds"),
    ],
)
def test_a_form_says_beside_the_field_why_it_is_refused(
    site: Site, fields: dict[str, str], name: str, reason: str
) -> None:
    answer = site.send("/dashboard/policies", "admin", **{"pattern": "bad.*", **fields})

    assert answer.status_code == 422
    (told,) = re.findall(rf'role="alert" id="refused-{name}">([^<]+(?:<[^p][^<]*)*)', answer.text)
    assert reason in unescape(told)
    for value in fields.values():
        assert unescape(answer.text).count(value) >= 1


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("table", "no.such", "no table"),
        ("rule", "a b", "consists of letters"),
        ("filter", "ds >=", "ds"),
        ("filter", "id > 1", "cannot be in a cache rule"),
        ("max_bytes", "few", "text such as"),
        ("days", "2", "choose"),
    ],
)
def test_the_form_of_a_cache_rule_says_beside_the_field_why_it_is_refused(
    site: Site, make: Callable[[str], str], field: str, value: str, reason: str
) -> None:
    rule = {"table": make("hot.fields"), "rule": "latest", "filter": "ds >= '2026-11-03'"}

    answer = site.send("/dashboard/cache/rules", "admin", **rule | {field: value})

    assert answer.status_code == 422
    (told,) = re.findall(rf'role="alert" id="refused-{field}">(.*?)</p>', answer.text, re.DOTALL)
    assert reason in unescape(told)
    assert re.search(rf'name="{field}"[^>]*aria-describedby="refused-{field}', answer.text)


def test_cache_rules_are_added_and_removed_by_forms(site: Site, make: Callable[[str], str]) -> None:
    name, http = make("hot.t"), site.operated.http
    rule = {"table": name, "rule": "latest", "filter": "ds >= '2026-11-03'", "days": "7"}
    add, remove = "/dashboard/cache/rules", f"/dashboard/tables/{name}/cache-rules/remove"

    assert site.send(add, "read", **rule).status_code == 403
    assert site.send(add, "write:idle.*", **rule).status_code == 422
    refused = site.send(add, "write:hot.*", **rule | {"filter": "id > 1"})
    assert site.send(add, "write:hot.*", **rule).status_code == 303
    stored = http.get(f"/tables/{name}/cache-rules/latest").json()
    assert refused.status_code == 422
    assert "cannot be in a cache rule" in refused.text
    assert stored["filter"] == rule["filter"]
    assert stored["expires_at"] is not None
    assert site.send(remove, "read", rule="latest", sure="yes").status_code == 403
    assert "Remove the rule latest" in site.send(remove, "write:hot.*", rule="latest").text
    assert http.get(f"/tables/{name}/cache-rules/latest").status_code == 200
    assert site.send(remove, "write:hot.*", rule="latest", sure="yes").status_code == 303
    assert http.get(f"/tables/{name}/cache-rules/latest").status_code == 404
    assert site.changes(name)[0][1:] == ("delete_cache_rule", "cache_rule", "deleted")


def test_a_refresh_is_started_by_callers_who_may_write(
    site: Site, make: Callable[[str], str]
) -> None:
    name = make("again.t")
    path = f"/dashboard/tables/{name}/refresh"

    assert site.send(path, "read").status_code == 403
    assert site.send(path, "write:idle.*").status_code == 404
    assert site.send(path, "write:again.*").status_code == 303

    assert site.operated.http.get(f"/tables/{name}/refresh").status_code == 200
    assert ">Refresh now</button>" in site.browser("admin").get(f"/dashboard/tables/{name}").text
    assert ">Refresh now</button>" not in site.browser("read").get(f"/dashboard/tables/{name}").text


def test_the_overview_shows_what_its_caller_may_see(site: Site, make: Callable[[str], str]) -> None:
    names = (make("seen.t"), make("unseen.t"))
    few = site.browser("read:seen.*").get("/dashboard/overview").text
    for name in names:
        site.operated.publish(name, written(DAYS, 300, 1_000, day=2))
    past_hours(site.settings.state_dir, 3)

    mine = site.browser("read:seen.*").get("/dashboard/overview").text
    every = site.browser("read").get("/dashboard", follow_redirects=True).text

    assert "Nothing worth doing: opening 4 excess files takes" in few
    assert "compact seen.t" not in few
    assert "compact seen.t" in mine
    assert "unseen.t" not in mine
    assert "Database on disk" not in mine
    assert "compact unseen.t" in every
    assert "Database on disk" in every
    # The trend ends at now, with the figure of now.
    number = re.findall(r"Excess files</a></dt><dd>([0-9,]+)</dd>", every)[0]
    points = re.findall(r"<title>(\S+ \S+ UTC) excess files: ([0-9,]+)</title>", every)
    assert points[-1][1] == number
    assert points[-1][0] == max(at for at, _ in points)
    (path,) = re.findall(
        r'aria-label="Excess files">.*?<path class="line first" d="([^"]+)"', every
    )
    *_, last = re.findall(
        r'<circle class="first" cx="([0-9.]+)"', every.split("Time of planning")[0]
    )
    assert path.endswith(f"H{last}")
