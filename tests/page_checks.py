"""Looks at a page in Chromium, as a reader would, and says what is wrong with it.

`problems` opens a file, unfolds all that is folded, and looks at 1280 and 390 pixels,
light and dark. Each sentence that it returns is something that a reader would see:

    a message on the console, or a request that leaves the page
    something that stands outside of the screen, or scrolls sideways
    a chart without anything drawn, with letters below 11 pixels, or overprinted
    a violation that axe-core finds: contrast, labels, headings, roles

Chromium is the system's own: nothing is downloaded. It needs `playwright` and
`axe-playwright-python`, which come with the extra `dev`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

HEIGHT = 844  # pixels, of a phone; pages scroll downwards
NAMES = ("chromium", "chromium-browser", "google-chrome")

OUTSIDE = """() => {
  const found = [], page = document.documentElement, width = page.clientWidth;
  const name = e => `${e.tagName.toLowerCase()} "${e.textContent.trim().slice(0, 30)}"`;
  const every = [...document.body.querySelectorAll('*')];
  // What only a screen reader reads is clipped away; what a box hides is not seen.
  const hides = e => getComputedStyle(e).clipPath !== 'none'
    || getComputedStyle(e).textOverflow === 'ellipsis';
  const inside = e => [...e.querySelectorAll('*')];
  const hidden = new Set(every.filter(hides).flatMap(inside));
  if (page.scrollWidth > width) found.push(`the page scrolls to ${page.scrollWidth}`);
  for (const e of every) {
    const box = e.getBoundingClientRect();
    if (!box.width || hidden.has(e)) continue;
    if (box.right > width + 1 || box.left < -1)
      found.push(`off the screen: ${name(e)}`);
    if (e.scrollWidth > e.clientWidth + 1
      && /auto|scroll/.test(getComputedStyle(e).overflowX))
      found.push(`scrolls: ${name(e)}`);
  }
  return found;
}"""

CHARTS = """() => {
  const found = [], box = e => e.getBoundingClientRect();
  const meets = (a, b) => a.left < b.right - 1 && b.left < a.right - 1
    && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const isBarSeen = bar => {
    const value = bar.closest('li').querySelector('.value').textContent;
    const isThere = box(bar).height >= 4
      && (box(bar).width >= 1 || parseFloat(value) < 0.01);
    return isThere && getComputedStyle(bar).backgroundColor !== 'rgba(0, 0, 0, 0)';
  };
  for (const figure of document.querySelectorAll('figure')) {
    const caption = figure.querySelector('figcaption')?.textContent ?? 'no caption';
    const about = what => found.push(`${what}: ${caption.slice(0, 40)}`);
    const bars = [...figure.querySelectorAll('.bars .bar')];
    const lines = [...figure.querySelectorAll('.plot path.line')];
    if (!bars.length && !lines.length) about('nothing is drawn');
    if (!bars.every(isBarSeen)) about('a bar is not seen');
    for (const line of lines) {
      const [own, area] = [box(line), box(line.closest('.area'))];
      const isOnePoint = !line.getAttribute('d').includes('L');
      if (getComputedStyle(line).stroke === 'none' || (own.width < 1 && !isOnePoint))
        about('a line is not seen');
      if (own.left < area.left - 1 || own.right > area.right + 1
        || own.top < area.top - 1 || own.bottom > area.bottom + 1)
        about('a line leaves its chart');
    }
    const hasText = e => e.getClientRects().length
      && [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    const words = [...figure.querySelectorAll('*')].filter(hasText);
    const boxes = words.map(box);
    for (const [i, one] of words.entries()) {
      const size = parseFloat(getComputedStyle(one).fontSize);
      if (size < 11) about(`letters of ${size} pixels`);
      for (let j = i + 1; j < words.length; j++)
        if (meets(boxes[i], boxes[j]) && !one.contains(words[j]))
          about(`"${one.textContent}" and "${words[j].textContent}" overprint`);
    }
  }
  return found;
}"""


def chromium() -> str | None:
    """The path of the system's Chromium, if there is one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def started(path: str) -> Iterator[Any]:
    """A browser for some tests; while it is open, no other event loop can run."""
    from playwright.sync_api import sync_playwright

    # Root may not use the sandbox; continuous integration is often root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


@dataclass(frozen=True)
class Looking:
    """How a page is looked at: at which widths, in which schemes, with axe or not."""

    widths: tuple[int, ...] = (1280, 390)
    schemes: tuple[str, ...] = ("light", "dark")
    with_axe: bool = True

    def axe_options(self, width: int, scheme: str) -> Iterator[dict[str, Any]]:
        """What axe looks for: colors in each scheme, all else at each width.

        Contrast takes a second of a processor and no color depends on the width, so it
        is looked at where lines are narrowest.
        """
        if not self.with_axe:
            return
        if scheme == self.schemes[0]:
            yield {"rules": {"color-contrast": {"enabled": False}}}
        if width == min(self.widths):
            yield {"runOnly": ["color-contrast"]}


FULLY = Looking()


def problems(browser: Any, file: Path, how: Looking = FULLY) -> list[str]:
    """All that is wrong with a page, each with the width and the scheme."""
    page, found = browser.new_page(), list[str]()
    page.on("console", lambda said: found.append(f"console: {said.text}"))
    page.on("pageerror", lambda error: found.append(f"error: {error}"))
    own = file.resolve().as_uri()

    def answer(route: Any) -> None:
        if route.request.url == own:
            route.continue_()
        else:
            found.append(f"request: {route.request.url}")
            route.abort()

    page.route("**/*", answer)
    page.goto(own)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    if how.with_axe:
        page.evaluate(axe_script())
    for width in how.widths:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        for scheme in how.schemes:
            page.emulate_media(color_scheme=scheme)
            seen = [*page.evaluate(OUTSIDE), *page.evaluate(CHARTS)]
            for options in how.axe_options(width, scheme):
                seen += _violations(page, options)
            found += [f"{width} pixels, {scheme}: {problem}" for problem in seen]
    page.close()
    return found


@cache
def axe_script() -> str:
    """The source of axe-core, which the package brings with it."""
    from axe_playwright_python.sync_playwright import Axe

    return Axe().axe_script


def _violations(page: Any, options: dict[str, Any]) -> list[str]:
    options = {"resultTypes": ["violations"], **options}
    found = page.evaluate("options => axe.run(options)", options)["violations"]
    return [
        f"axe: {one['id']}: {one['nodes'][0]['html'][:80]}: {one['help']}"
        for one in found
    ]
