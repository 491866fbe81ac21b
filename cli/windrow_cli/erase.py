"""`windrow erase | receipt`: erase rows of a table, and verify receipts."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from typing import Annotated, Any

import typer

from windrow.connecting import connect
from windrow_calls.terminal.consoles import show, show_result
from windrow_calls.terminal.options import DEFAULT_URL, AsJson, Url
from windrow_calls.terminal.render import drawn, message
from windrow_cli.arguments import TableName
from windrow_cli.errors import CommandError


def erase(
    table: TableName,
    key: Annotated[
        str | None,
        typer.Option(
            "--key", metavar="COLUMN", help="Column of the keys, or a path: payload.user.id."
        ),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="FILE", help="Keys: a CSV file with a header, or a Parquet file."
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            "--where",
            metavar="SQL",
            help="Instead of keys, a condition: \"user_id = 7 AND ds < '2025-01-01'\".",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Look for the rows and show what would be erased; change nothing."
        ),
    ] = False,
    processes: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of processes; one per core by default."),
    ] = None,
    readers_may_see_both: Annotated[
        bool,
        typer.Option(
            "--readers-may-see-both",
            help="Consent for tables on HDFS and S3, which are refused without it: readers that "
            "list folders may find rows twice for a while.",
        ),
    ] = False,
    receipt: Annotated[
        str | None,
        typer.Option("--receipt", metavar="FILE", help="Write the receipt to a new file, as JSON."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Erase the rows of some keys, or of a condition, for good.

    Rewrites only files that hold such rows, and keeps everything else in them. The rows cannot be
    restored. Runs without Spark.
    """
    if (key is None) != (from_ is None):
        raise CommandError("keys need both their column and a file: --key user_id --from keys.csv")
    if (key is None) == (where is None):
        raise CommandError("say which rows: --key with --from, or --where")
    if receipt is not None and os.path.lexists(receipt):
        raise CommandError(f"{receipt!r} is there already: name a new file for the receipt")
    from windrow_tables.erasing.keys import keys_in

    keys = keys_in(from_, key) if key is not None and from_ is not None else None
    rows: dict[str, Any] = {
        "key": key,
        "values": keys,
        "where": where,
        "processes": processes or os.cpu_count(),
    }
    with connect(url, check=False) as client:
        if not (dry_run or yes):
            if not sys.stdin.isatty():
                raise CommandError(
                    "the rows cannot be restored: add --yes, or preview with --dry-run"
                )
            show(drawn(client.erase(table, dry_run=True, **rows)))
            typer.confirm(f"Erase these rows of {table} for good?", abort=True, err=True)
        erasure = client.erase(
            table, dry_run=dry_run, readers_may_see_both=readers_may_see_both, **rows
        )
    if receipt is not None and erasure.receipt is not None:
        text = erasure.receipt.model_dump_json(indent=2)
        try:
            with open(receipt, "x", encoding="utf-8") as file:
                file.write(text + "\n")
        except OSError as error:
            # The coordinator keeps no copy.
            typer.echo(text)
            raise CommandError(
                f"the rows are erased, but {receipt!r} cannot be written ({error.strerror}): keep the "
                "receipt that is printed above"
            ) from error
    fields = asdict(erasure)
    if erasure.receipt is not None:
        fields["receipt"] = erasure.receipt.model_dump(mode="json")
    show_result({"erasure": fields}, lambda: drawn(erasure), as_json)


receipts = typer.Typer(help="Verify receipts of erasures.", no_args_is_help=True)


@receipts.callback()
def _receipts() -> None:
    """Verify receipts of erasures."""


@receipts.command("verify")
def verify(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The receipt, as JSON.")],
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Check that a receipt of this coordinator is genuine."""
    from windrow_core.models.erasures import ErasureReceipt

    try:
        with open(file, "rb") as content:
            receipt = ErasureReceipt.model_validate_json(content.read())
    except OSError as error:
        raise CommandError(f"{file!r} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise CommandError(f"{file!r} is no receipt of an erasure") from error
    with connect(url, check=False) as client:
        is_genuine = client.verify_receipt(receipt)
    if not is_genuine:
        raise CommandError(
            f"receipt {receipt.receipt_id} is not genuine: this coordinator did not sign it, or it was "
            "changed"
        )
    what = f"{receipt.rows_removed:,} rows of {receipt.table} erased by {receipt.erased_by}"
    answer = {"receipt_id": receipt.receipt_id, "is_genuine": is_genuine}
    show_result(answer, lambda: message(f"genuine: {what}, {receipt.last_byte_at}"), as_json)
