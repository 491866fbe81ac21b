"""A process that has neither Spark nor pandas, and reads a table or a pickled part of a scan.

`python -m tests.programs.scanning URL TABLE` prints the rows of a table, and
`python -m tests.programs.scanning` those of the part that arrives on standard input, as JSON.
"""

from __future__ import annotations

import json
import pickle
import sys

from tests.programs.hiding import hide

if __name__ == "__main__":
    hide(["fastapi", "pandas", "py4j", "pyspark", "sqlalchemy", "sqlglot"])
    import windrow

    if len(sys.argv) == 3:
        url, table = sys.argv[1:]
        with windrow.connect(url) as client:
            rows = client.scan(table).to_table()
    else:
        rows = pickle.load(sys.stdin.buffer).read()
    print(json.dumps(rows.to_pylist()))
