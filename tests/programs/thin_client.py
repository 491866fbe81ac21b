"""A client without the packages of the extras."""

from __future__ import annotations

from tests.programs.hiding import hide

if __name__ == "__main__":
    hide(["fastapi", "numpy", "pyspark", "sqlalchemy", "sqlglot", "uvicorn"])
    import windrow

    windrow.connect("http://127.0.0.1:1", check=False).close()
