"""The built site in Chromium (`documentation.browser`, `documentation.screenshots`).

No page scrolls sideways on a phone, no picture is lost, and search finds pages. Skipped
where MkDocs or Chromium is missing; `make docs` builds the site and checks its links.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from documentation import browser, screenshots

ROOT = Path(__file__).parents[1]

pytestmark = [
    pytest.mark.slow,  # a minute: every page is loaded at two widths
    pytest.mark.skipif(
        importlib.util.find_spec("mkdocs") is None,
        reason="MkDocs is not installed: make docs",
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
