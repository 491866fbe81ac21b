"""Remedies of the coordinator's problems, reworded from HTTP calls into commands."""

from __future__ import annotations

import re
from collections.abc import Sequence

from windrow.errors import ProblemError

_TABLE = r"/tables/([\w.-]+)"
_Phrases = Sequence[tuple[str, str]]

# Longest first, since some calls are prefixes of others.
_CALLS: _Phrases = (
    (rf", or PUT {_TABLE}", ""),
    (rf"PUT {_TABLE}\?replace=true \(`replace=True`\)", "--replace"),
    (rf"GET {_TABLE}/cache-rules(/[\w.-]+)?", r"`windrow cache list \1`"),
    (rf"GET {_TABLE}/snapshots", r"`windrow table snapshots \1`"),
    (rf"POST {_TABLE}/snapshots", r"`windrow table import \1 FILE`"),
    (
        rf"GET {_TABLE}/refresh tells how the last one ended",
        r"`windrow table refresh \1` starts one",
    ),
    (rf"POST {_TABLE}/refresh", r"`windrow table refresh \1`"),
    (rf"GET {_TABLE}/writes", r"`windrow write list \1`"),
    (rf"GET {_TABLE}", r"`windrow table show \1`"),
    (r"GET /plans/\w+ until its status is completed", "try again in a moment"),
    (
        r"send PUT /workers/[\w.-]+, then report .*",
        "`windrow worker run` on its host does the rest",
    ),
    (r"DELETE /workers/([\w.-]+) and report anew", r"`windrow worker forget \1`"),
    (", or repeat it with the same Idempotency-Key", ""),
    ("send `Authorization: Bearer ...` with", "set WINDROW_TOKEN to"),
    (r"; set WINDROW_TOKEN or WINDROW_TOKEN_FILE, or windrow\.connect\(.*\)", ""),
)
# For `windrow write-plan`: its problems name fields of the request.
_OPTIONS: _Phrases = (
    ("give rows, keys, keys_from or files", "give --rows, --counts, --keys-from or --files"),
    (r"(?<=give )keys(\.\w+)?\b", "--counts"),
    (r"leave keys\.buckets out", "leave the column bucket out of the counts"),
    ("leave rows out", "leave --rows out"),
    ("keys_from '(files|history)'", r"--keys-from \1"),
    (r"\bbytes_per_row\b", "--bytes-per-row"),
    (r"\bfiles_per_key\b", "--files-per-key"),
    (r"\bkeys_from\b", "--keys-from"),
    (r"\bmax_files\b", "--max-files"),
    (r"\bsource_tasks\b", "--source-tasks"),
    (r"\btarget_rows\b", "--target-rows"),
)
_WRITE_PLANS = ("no-estimate", "too-many-files", "scheme-unfit", "invalid-keys")


def in_commands(error: ProblemError) -> str:
    """Return the text of an error, with commands instead of HTTP calls."""
    of_write_plans = error.problem.type.rpartition(":")[2] in _WRITE_PLANS
    text = str(error)
    for pattern, replacement in (*_CALLS, *(_OPTIONS if of_write_plans else ())):
        text = re.sub(pattern, replacement, text)
    return text
