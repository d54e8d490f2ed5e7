"""The built site in Chromium (`documentation.browser`, `documentation.screenshots`).

No page scrolls sideways on a phone, no picture is lost, search finds pages, and
axe-core finds nothing on the pages that one reads first. Skipped where MkDocs or
Chromium is missing; `make docs` builds the site and checks its links.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import page_checks
import pytest

from documentation import browser, screenshots

ROOT = Path(__file__).parents[1]
FIRST = ("index.html", "start.html", "concepts.html", "choosing.html", "api.html")
LEFT_OUT = (
    "empty-table-header",  # the corner of a table with names on both sides
    "landmark-unique",  # the theme's own menus
)

pytestmark = [
    pytest.mark.slow,  # a minute: every page is loaded at two widths
    pytest.mark.skipif(
        importlib.util.find_spec("mkdocstrings") is None,
        reason="the extra `docs` is not installed: make docs",
    ),
    pytest.mark.skipif(
        browser.chromium() is None, reason="Chromium is not installed: apt install it"
    ),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    subprocess.run([*command, "--site-dir", str(place)], cwd=ROOT, check=True)
    return place


def problems(measured: list[dict[str, object]]) -> list[str]:
    """Pages that are wider than their window, or lack a picture."""
    return [
        f"{one['page']} at {one['width']}: {one['scroll']} wide, {one['outside']}, "
        f"without {one['lost']}"
        for one in measured
        if one["scroll"] > one["width"] or one["outside"] or one["lost"]
    ]


def test_no_page_scrolls_sideways_and_no_picture_is_lost(site: Path) -> None:
    found = browser.look(site, pages=browser.pages(site))
    assert problems(found["measured"]) == []


def test_search_finds_pages(site: Path) -> None:
    asked = {"ledger cap": "ledger.html", "refresh": "retraining.html"}
    found = browser.look(site, pages=[], searches=[*asked])["searched"]
    for words, page in asked.items():
        assert any(page in link for link in found[words]), words


@pytest.mark.parametrize(
    ("width", "scheme"), [(browser.DESK, "light"), (browser.PHONE, "dark")]
)
def test_axe_finds_nothing(site: Path, width: int, scheme: str) -> None:
    path = page_checks.chromium()
    assert path is not None
    with browser.serving(site, {}) as address, page_checks.started(path) as opened:
        found = [
            f"{name}: {problem}"
            for name in FIRST
            for problem in violations(opened, f"{address}/{name}", width, scheme)
        ]
    assert found == []


def violations(opened: Any, address: str, width: int, scheme: str) -> list[str]:
    """What axe-core and the console say of a page."""
    page, found = opened.new_page(color_scheme=scheme), list[str]()
    page.on("console", lambda said: found.append(f"console: {said.text}"))
    page.set_viewport_size({"width": width, "height": page_checks.HEIGHT})
    page.goto(address, wait_until="networkidle")
    page.wait_for_selector(".md-search[aria-label]", state="attached")  # javascripts/
    page.evaluate(page_checks.axe_script())
    told = page.evaluate("() => axe.run({resultTypes: ['violations']})")["violations"]
    page.close()
    return found + [
        f"{one['id']}: {one['nodes'][0]['html'][:80]}"
        for one in told
        if one["id"] not in LEFT_OUT
    ]


def test_screenshots_are_taken(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screenshots, "DESKS", ("index.html",))
    monkeypatch.setattr(screenshots, "SHEETS", {"start": ("index.html",)})
    made = screenshots.take(site, tmp_path)
    assert len(made) == 8
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in made)


def test_a_page_that_is_too_wide_is_found(tmp_path: Path) -> None:
    wide = '<article><p style="width:500px">wide</p><img src="gone.png"></article>'
    (tmp_path / "index.html").write_text(f"<title>x</title>{wide}")
    found = browser.look(tmp_path, pages=["index.html"], widths=[browser.PHONE])
    [one] = found["measured"]
    assert one["scroll"] > browser.PHONE
    assert one["outside"] == ["P wide"]
    assert len(one["lost"]) == 1
    assert len(problems([one])) == 1
