"""Write golden files anew: `python -m tests.support.golden [NAME…]`."""

from __future__ import annotations

import sys

from tests.support.golden.files import FOLDER, GOLDENS

FOLDER.mkdir(exist_ok=True)
for name in sys.argv[1:] or GOLDENS:
    golden = GOLDENS[name]
    golden.path.write_text(golden.text(), encoding="utf-8")
