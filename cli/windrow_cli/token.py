"""`windrow token …`: manage callers' tokens in the coordinator's database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from anyio.from_thread import start_blocking_portal

from windrow_calls.errors import WindrowError
from windrow_calls.installed import require_service
from windrow_calls.terminal.consoles import error_console, show, show_json
from windrow_calls.terminal.options import AsJson, StateDir, duration
from windrow_calls.terminal.render import drawn_list, message
from windrow_cli.errors import CommandError
from windrow_cli.groups import command_group
from windrow_core.cards import DASH

if TYPE_CHECKING:
    from windrow.client import Client
    from windrow_core.models import TokenInfo
    from windrow_service.usecases.access.ports import Token
    from windrow_service.usecases.access.tokens import ManageTokens

T = TypeVar("T")
_SCOPES = ("read", "write", "worker", "admin")
OfCoordinator = Annotated[
    str | None,
    typer.Option(
        "--url",
        help="Ask the coordinator at this URL; WINDROW_TOKEN must hold a token with the scope "
        "admin.",
        metavar="URL",
    ),
]

app = command_group(
    "Make, list and revoke the tokens of callers.\n\nThey are kept in the database that "
    "WINDROW_DATABASE_URL names, or else in the embedded one. With --url, a running coordinator is "
    "asked instead."
)


def _scope(text: str) -> str:
    if text not in _SCOPES:
        raise typer.BadParameter(f"{text!r} is not one of {', '.join(_SCOPES)}")
    return text


@dataclass(eq=False)
class NoDatabaseError(WindrowError):
    """There is no embedded database, so there are no tokens."""

    state_dir: Path
    message = "there is no database in state folder {state_dir}: {remedy}"
    remedy = (
        "name the coordinator's own with --state-dir, as `windrow serve` prints it, or ask a running "
        "coordinator with --url"
    )


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the caller.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(
            parser=_scope,
            help="What the token allows on everything: read, write (includes read), worker, or "
            "admin (includes all others); repeatable.",
            metavar="SCOPE",
        ),
    ] = None,
    grant: Annotated[
        list[str] | None,
        typer.Option(
            help="What the token allows on some tables, such as read:sales.* or "
            "write:sales.orders; worker:NAME lets it speak only for that worker; repeatable.",
            metavar="SCOPE:TABLES",
        ),
    ] = None,
    expires: Annotated[
        timedelta | None,
        typer.Option(
            parser=duration,
            help="How long the token is valid, such as 90d; until it is revoked by default.",
            metavar="TIME",
        ),
    ] = None,
    url: OfCoordinator = None,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """Create a token, and print it once.

    Only the token itself is printed on stdout. Tokens of the same name belong to the same caller:
    to replace one, create another with its name, give it to the caller, and revoke the first.
    """
    scopes, grants = scope or [], grant or []
    if not scopes and not grants:
        raise typer.BadParameter("say what the token allows", param_hint="--scope or --grant")
    token: Token | TokenInfo
    if url is not None:
        with _connected(url) as client:
            new_token = client.create_token(name, scopes=scopes, grants=grants, expires_in=expires)
        if new_token.token is None:
            raise CommandError(
                f"token {new_token.token_id} was made, but the answer with its secret was lost: "
                f"revoke it with `windrow token revoke {new_token.token_id}`, and make another"
            )
        token, secret = new_token, new_token.token
    else:
        scopes_and_grants = [*scopes, *grants]
        token, secret = _with_tokens(
            state_dir, lambda tokens: tokens.create(name, scopes_and_grants, expires)
        )
    if as_json:
        show_json(_as_json(token) | {"token": secret})
        return
    lasts = f"until {_time_text(token.expires_at)}" if token.expires_at else "until it is revoked"
    error_console().print(
        message(
            f"token {token.token_id} of {token.name} is valid {lasts}: {_allowed(token)}",
            "it is not shown again: callers set it as WINDROW_TOKEN",
        )
    )
    typer.echo(secret)


@app.command("list")
def list_tokens(
    url: OfCoordinator = None, state_dir: StateDir = None, as_json: AsJson = False
) -> None:
    """List the tokens, without their secrets."""
    tokens: Sequence[Token | TokenInfo]
    if url is not None:
        with _connected(url) as client:
            tokens = list(client.tokens())
    else:
        tokens = _with_tokens(state_dir, lambda tokens: tokens.list(), makes_database=False)
    if as_json:
        show_json({"tokens": [_as_json(token) for token in tokens]})
    else:
        # Imported here because the creation of a token takes no models.
        from windrow_core.models import TokenInfo

        none = ("no tokens yet", "`windrow token create NAME --scope read` makes one")
        show(drawn_list([TokenInfo.model_validate(_as_json(one)) for one in tokens], *none))


@app.command()
def revoke(
    token_id: Annotated[
        str, typer.Argument(metavar="ID", help="Id of the token, from `windrow token list`.")
    ],
    url: OfCoordinator = None,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a token.

    Every coordinator refuses it within five seconds.
    """
    token: Token | TokenInfo
    if url is not None:
        with _connected(url) as client:
            token = client.revoke_token(token_id)
    else:
        token = _with_tokens(
            state_dir, lambda tokens: tokens.revoke(token_id), makes_database=False
        )
    if as_json:
        show_json(_as_json(token))
    else:
        since = _time_text(token.revoked_at)
        show(message(f"token {token.token_id} of {token.name} was revoked at {since}"))


def _with_tokens(
    state_dir: Path | None,
    work: Callable[[ManageTokens], Awaitable[T]],
    *,
    makes_database: bool = True,
) -> T:
    require_service()
    from windrow_service import administration
    from windrow_service.settings import Settings

    values: dict[str, Any] = {} if state_dir is None else {"state_dir": state_dir}
    settings = Settings.model_validate(values)
    # A folder that nobody has named may well be another one than the coordinator's.
    is_named = {"state_dir", "database_url"} & settings.model_fields_set
    if not (makes_database and is_named) and not administration.is_database_there(settings):
        raise NoDatabaseError(settings.state_dir)

    async def opened() -> T:
        async with administration.open_tokens(settings) as tokens:
            return await work(tokens)

    # In its own thread, since the caller may already be in an event loop.
    with start_blocking_portal() as portal:
        return portal.call(opened)


def _connected(url: str) -> Client:
    # Importing a client takes longer than making a token.
    from windrow.connecting import connect

    return connect(url, check=False)


def _as_json(token: Token | TokenInfo) -> dict[str, Any]:
    def stamp(at: datetime | None) -> str | None:
        return None if at is None else at.isoformat()

    return {
        "token_id": token.token_id,
        "name": token.name,
        "scopes": list(token.scopes),
        "grants": list(token.grants),
        "created_at": stamp(token.created_at),
        "expires_at": stamp(token.expires_at),
        "revoked_at": stamp(token.revoked_at),
    }


def _allowed(token: Token | TokenInfo) -> str:
    return ", ".join((*token.scopes, *token.grants))


def _time_text(at: datetime | None) -> str:
    return DASH if at is None else f"{at:%Y-%m-%d %H:%M:%S %Z}"
