"""Files of settings, as Hadoop and its clients read them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape


def write_settings(file: Path, settings: Mapping[str, str]) -> None:
    """Write a `core-site.xml`, or another file of this kind."""
    each = (
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in settings.items()
    )
    file.write_text(f"<configuration>{''.join(each)}</configuration>")
