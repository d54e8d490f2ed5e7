"""Links, anchors and pictures of a built site that lead nowhere.

python -m documentation.links site
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

SOURCES = {"a": ("href",), "link": ("href",), "img": ("src",), "script": ("src",)}
SETS = ("img", "source")  # elements that name several pictures, each for a width


@dataclass
class Page(HTMLParser):
    """What a page links to, and the anchors that it has."""

    targets: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note ids and whatever is linked to."""
        given = {name: value for name, value in attrs if value is not None}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        found = [given[name] for name in SOURCES.get(tag, ()) if name in given]
        if tag in SETS:
            found += [
                one.split()[0] for one in given.get("srcset", "").split(",") if one
            ]
        self.targets += found


def broken(site: Path) -> list[str]:
    """Every link of a page of the site that has no file or no anchor behind it."""
    pages = {path: _read(path) for path in sorted(site.rglob("*.html"))}
    return [
        f"{path.relative_to(site)}: {target}"
        for path, page in pages.items()
        if path.name != "404.html"  # its links are those of the site's root
        for target in dict.fromkeys(page.targets)
        if _is_lost(path, target, pages)
    ]


def _read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text("utf-8"))
    return page


def _is_lost(path: Path, target: str, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return False  # another site: its links are not checked
    there = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
    if there.is_dir():
        there /= "index.html"
    if not there.exists():
        return True
    anchor = unquote(parts.fragment)
    return bool(anchor) and there in pages and anchor not in pages[there].anchors


def main() -> int:
    """Print what leads nowhere; 1 if something does."""
    found = broken(Path(sys.argv[1]).resolve())
    print("\n".join(found) or "every link leads somewhere")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
