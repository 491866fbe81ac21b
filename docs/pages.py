"""Hooks of MkDocs: pages that are not files of docs/, and what the site leaves out."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_ROOT = Path(__file__).parents[1]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages; MkDocs calls this when it has listed docs/."""
    for page, content in {
        "reference/glossary.md": _from_root("GLOSSARY.md"),
        "reference/changes.md": _from_root("CHANGELOG.md"),
    }.items():
        files.append(File.generated(config, page, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Let searches show other pages before decisions and changes."""
    if page.file.src_uri.startswith(("decisions/", "reference/changes")):
        page.meta["search"] = {"boost": 0.2}
    return markdown


def on_page_content(html: str, **_: object) -> str:
    """Return a page without styles of its own, which the coordinator's policy forbids."""
    return html.replace('style="text-align: right;"', 'class="right"')


def on_post_build(config: MkDocsConfig) -> None:
    """Remove what no reader needs: maps of scripts, other languages, a list for search engines."""
    site = Path(config.site_dir)
    for path in (*site.rglob("*.map"), *site.glob("sitemap.xml*"), site / "404.html"):
        path.unlink()
    shutil.rmtree(site / "assets" / "javascripts" / "lunr")


def _from_root(name: str) -> str:
    """Return a document of the root with links as seen from docs/reference/."""
    return re.sub(r"\]\(docs/", "](../", (_ROOT / name).read_text())
