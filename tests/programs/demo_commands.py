"""Commands of the demo, one after another in one JVM, each with its own folder, output and exit code.

`python -m tests.programs.demo_commands FOLDER COMMANDS`
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.support.spark.quick_spark import remember_classes
from windrow_demo.commands import main

remember_classes()
folder, commands = sys.argv[1:]
code: Any = 0
for name, words in json.loads(commands).items():
    os.chdir(f"{folder}/{name}")
    for number, file in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    sys.argv = ["windrow_demo", *words]
    try:
        main()
    except SystemExit as end:
        code = end.code
        sys.stdout.flush()
        Path("code").write_text(str(code))
sys.exit(code)
