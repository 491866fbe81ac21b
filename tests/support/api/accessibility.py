"""Checks that people can use a page: by axe-core, and by going through it with the keyboard."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from playwright.sync_api import Page, ViewportSize

from tests.support.api.browsing import PHONE, WIDE

_LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
_RULES = {"runOnly": {"type": "tag", "values": _LEVELS}, "resultTypes": ["violations"]}
# Numbers the controls that the keyboard must reach, in page order: what is folded away comes after
# its summary has been opened.
_NUMBER_CONTROLS = """() => {
  const kinds = "a[href], button, select, input:not([type=hidden]), summary, [tabindex]"
  const all = [...document.querySelectorAll(kinds)].filter((control) =>
    control.tagName === "SUMMARY" || !control.closest("details:not([open])"))
  all.forEach((control, number) => { control.dataset.control = number })
  return all.length
}"""
# Tells which control has the focus, and whether its outline is visible.
_FOCUSED = """() => {
  const control = document.activeElement
  if (!control.dataset.control) return null
  const [style, place] = [getComputedStyle(control), control.getBoundingClientRect()]
  const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2
    && place.right > 0 && place.left < innerWidth && place.bottom > 0 && place.top < innerHeight
  return [Number(control.dataset.control), seen, control.outerHTML.slice(0, 200)]
}"""


def violations(page: Page) -> list[str]:
    """Return where a page violates the rules of WCAG 2.2, levels A and AA, that a program can check."""
    # Imported late: only one test needs it, and it reads half a megabyte of script.
    from axe_playwright_python.sync_playwright import Axe

    # A page that is checked again at another size has the script already.
    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    rules: list[dict[str, Any]] = page.evaluate(
        "rules => axe.run(rules).then(results => results.violations)", _RULES
    )
    return [
        f"{rule['id']}: {json.dumps([node['html'][:200] for node in rule['nodes']])}"
        for rule in rules
    ]


def lost_to_the_keyboard(page: Page) -> list[str]:
    """Return the controls that the Tab key does not reach, or whose focus is not visible."""
    count: int = page.evaluate(_NUMBER_CONTROLS)
    missing, unseen = set(range(count)), []
    # Several presses per control: a date has several stops, and the browser itself has some.
    for _ in range(10 * count):
        if not missing:
            break
        page.keyboard.press("Tab")
        focus = page.evaluate(_FOCUSED)
        if focus is not None:
            number, is_seen, text = focus
            missing.discard(number)
            unseen += [] if is_seen else [text]
    texts = page.evaluate(
        "numbers => numbers.map(number => "
        "document.querySelector(`[data-control='${number}']`).outerHTML.slice(0, 200))",
        sorted(missing),
    )
    return [*texts, *unseen]


@dataclass(frozen=True, slots=True)
class Look:
    """How somebody looks at pages."""

    name: str
    size: ViewportSize
    scheme: Literal["light", "dark"]

    def problems(self, page: Page, url: str) -> list[str]:
        """Open a page, and return what is wrong with it; on a wide screen also for the keyboard."""
        page.set_viewport_size(self.size)
        page.emulate_media(color_scheme=self.scheme)
        page.goto(url)
        return violations(page) + (lost_to_the_keyboard(page) if self.size == WIDE else [])


LOOKS = (Look("wide", WIDE, "light"), Look("on a phone in the dark", PHONE, "dark"))
