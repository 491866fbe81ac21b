"""A program that runs cells in a kernel of Jupyter, as a notebook would.

`python -m tests.programs.notebook_cells CELLS NOTEBOOK`

`CELLS` has lines `# %%` before each cell. The notebook with the cells and their outputs is written
to `NOTEBOOK`, and the page that a browser shows of it beside it, as `.html`. A cell that fails does not keep the others from running.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter

_TIMEOUT_S = 300


def main(cells: Path, notebook: Path) -> None:
    """Run the cells, and write the notebook and its page."""
    sources = [one.partition("\n")[2].strip() for one in cells.read_text().split("# %%")[1:]]
    document = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in sources],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    NotebookClient(document, timeout=_TIMEOUT_S, allow_errors=True).execute()
    nbformat.write(document, notebook)
    page, _ = HTMLExporter().from_notebook_node(document)
    notebook.with_suffix(".html").write_text(page)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
