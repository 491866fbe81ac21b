"""The modules that only plans and reads need, and that the creation of a token imports.

`python -m tests.programs.token_imports STATE_DIR`
"""

from __future__ import annotations

import sys

from windrow_cli.app import run

if __name__ == "__main__":
    run(["token", "create", "me", "--scope", "read", "--state-dir", sys.argv[1]])
    print(sorted({"fastapi", "httpx", "windrow_core.models", "windrow.client"} & {*sys.modules}))
