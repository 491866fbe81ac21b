"""`windrow token`: made once and shown once, listed without secrets, revoked for good."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes.forks import run_forked
from tests.unit.cli.conftest import Said
from windrow_cli.app import run

Token = Callable[..., Said]


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def token(state_dir: Path, capsys: pytest.CaptureFixture[str]) -> Token:
    """Run a `windrow token` command on its own database."""

    def command(*arguments: str) -> Said:
        capsys.readouterr()
        code = run(["token", *arguments, "--state-dir", str(state_dir)])
        return Said(code, *capsys.readouterr())

    return command


def test_only_the_token_is_on_stdout_so_a_variable_can_take_it(token: Token) -> None:
    said = token("create", "etl", "--scope", "read", "--scope", "write", "--expires", "90d")

    assert said.code == 0
    assert said.out.startswith("wdr_")
    assert len(said.out.split()) == 1
    assert "read, write" in said.err
    assert "WINDROW_TOKEN" in said.err
    assert said.out.strip() not in said.err


def test_a_program_gets_the_token_as_json(token: Token) -> None:
    made = json.loads(token("create", "etl", "--scope", "admin", "--json").out)

    assert made["token"].startswith("wdr_")
    assert (made["name"], made["scopes"], made["expires_at"]) == ("etl", ["admin"], None)


def test_a_token_may_be_limited_to_some_tables(token: Token) -> None:
    asked = ("--grant", "write:sales.*", "--grant", "read:hr.x", "--scope", "read")
    said = token("create", "etl", *asked)

    assert "read, read:hr.x, write:sales.*" in said.err
    (listed,) = json.loads(token("list", "--json").out)["tokens"]
    assert listed["grants"] == ["read:hr.x", "write:sales.*"]
    assert "write:sales.*" in token("list").out


def test_tokens_are_listed_without_their_secrets(token: Token, state_dir: Path) -> None:
    made = [
        json.loads(token("create", name, "--scope", "read", "--json").out)
        for name in ("b", "a", "a")
    ]

    shown, listed = token("list"), token("list", "--json")

    tokens = json.loads(listed.out)["tokens"]
    assert [one["name"] for one in tokens] == ["a", "a", "b"]
    assert {one["token_id"] for one in tokens} == {one["token_id"] for one in made}
    kept = b"".join(path.read_bytes() for path in state_dir.iterdir())
    for one in made:
        assert one["token_id"] in shown.out
        assert one["token"] not in shown.out + listed.out
        assert one["token"].encode() not in kept


def test_a_folder_without_a_database_is_named_and_gets_none(token: Token, state_dir: Path) -> None:
    for arguments in (("list",), ("revoke", "nope")):
        said = token(*arguments)
        assert "no database in state folder" in said.err
        assert "with --url" in said.err
    assert not state_dir.exists()


def test_a_token_is_revoked_once_and_for_good(token: Token) -> None:
    made = json.loads(token("create", "etl", "--scope", "read", "--json").out)

    first = json.loads(token("revoke", made["token_id"], "--json").out)
    again = json.loads(token("revoke", made["token_id"], "--json").out)

    assert first["revoked_at"] is not None
    assert again == first
    assert "was revoked at" in token("revoke", made["token_id"]).out


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (("revoke", "nope"), 1, "no token 'nope'"),
        (("create", "anonymous", "--scope", "read"), 1, "anonymous"),
        (("create", "", "--scope", "read"), 1, "is not a name"),
        (("create", "a b", "--scope", "read"), 1, "is not a name"),
        (("create", "x" * 129, "--scope", "read"), 1, "at most 128"),
        (("create", "etl", "--grant", "read:a*"), 1, "names no table"),
        (("create", "etl", "--scope", "root"), 2, "read, write, worker, admin"),
        (("create", "etl"), 2, "--scope"),
        (("create", "etl", "--scope", "read", "--expires", "0d"), 1, "more than 0"),
        (("create", "etl", "--scope", "read", "--expires", "999999w"), 1, "3,650 days"),
        (("create", "etl", "--scope", "read", "--expires", "soon"), 2, "such as 90d"),
    ],
)
def test_invalid_requests_are_refused_with_one_line(
    token: Token, arguments: tuple[str, ...], code: int, named: str
) -> None:
    token("create", "first", "--scope", "read")

    said = token(*arguments)

    assert said.code == code
    assert named in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert len(json.loads(token("list", "--json").out)["tokens"]) == 1


@pytest.mark.slow
def test_tokens_of_a_database_that_is_not_upgraded_are_refused_with_the_remedy(
    tmp_path: Path, postgresql_url: str
) -> None:
    said = run_forked(tmp_path, "windrow_cli", "token", "list", WINDROW_DATABASE_URL=postgresql_url)

    assert (said.returncode, said.stdout) == (1, "")
    assert "windrow db upgrade" in said.stderr
    assert "Traceback" not in said.stderr
