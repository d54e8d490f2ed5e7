"""Screenshots of README and site: on a desk and on phones, light and dark.

    mkdocs build --strict
    python -m documentation.screenshots OUT [--site site]

A phone sheet has several pages side by side, each in a frame of a phone's width.
"""

from __future__ import annotations

import argparse
from html import escape
from pathlib import Path

import markdown

from documentation.browser import DESK, PHONE, screenshot, serving
from documentation.page_tables import ROOT

SHEETS = {
    "start": ("index.html", "start.html", "concepts.html", "choosing.html"),
    "reference": (
        "statement.html",
        "commands.html",
        "methods/gram.html",
        "glossary.html",
    ),
}
DESKS = ("index.html", "concepts.html", "choosing.html", "commands.html")
TALL = 2400  # pixels of a page that are shown
README_STYLE = """
:root { color-scheme: light dark; }
body { max-width: 860px; margin: 0 auto; padding: 20px 16px; line-height: 1.5;
  font: 16px/1.5 system-ui, sans-serif; background: Canvas; color: CanvasText; }
img { max-width: 100%; height: auto; }
table { border-collapse: collapse; display: block; overflow-x: auto; max-width: 100%; }
th, td { border: 1px solid #8886; padding: 6px 12px; vertical-align: top; }
pre { overflow-x: auto; padding: 14px; background: #8882; border-radius: 6px; }
code { font-size: 85%; }
"""


def readme() -> str:
    """README as a page, about as a code host shows it."""
    text = (ROOT / "README.md").read_text("utf-8")
    body = markdown.markdown(text, extensions=["fenced_code", "tables", "toc"])
    view = '<meta name="viewport" content="width=device-width">'
    head = f'<!doctype html><meta charset="utf-8">{view}<style>{README_STYLE}</style>'
    return head + body


def sheet(names: tuple[str, ...]) -> str:
    """Some pages side by side, each as wide as a phone."""
    frames = "".join(
        f'<iframe src="{escape(name)}" width="{PHONE}" height="{TALL}" '
        'style="border:0;margin:0 6px"></iframe>'
        for name in names
    )
    style = "body{margin:6px 0;background:#888;white-space:nowrap}"
    return f'<!doctype html><meta charset="utf-8"><style>{style}</style>{frames}'


def take(site: Path, out: Path) -> list[Path]:
    """Write all screenshots; gives their files."""
    out.mkdir(parents=True, exist_ok=True)
    extra = {f"sheet-{name}.html": sheet(pages) for name, pages in SHEETS.items()}
    extra["sheet-readme.html"] = sheet(("readme.html",))
    extra["readme.html"] = readme().replace("docs/figures/", "figures/")
    wide = len(SHEETS["start"]) * (PHONE + 16)
    shots = [("readme.html", DESK), ("sheet-readme.html", 500)]
    shots += [(name, DESK) for name in DESKS]
    shots += [(f"sheet-{name}.html", wide) for name in SHEETS]
    made: list[Path] = []
    with serving(site, extra) as address:
        for dark in (False, True):
            for name, width in shots:
                stem = name.removesuffix(".html").replace("/", "-")
                path = out / f"{stem}-{'dark' if dark else 'light'}.png"
                screenshot(
                    f"{address}/{name}", path, width=width, height=TALL, dark=dark
                )
                made.append(path)
    return made


def main() -> None:
    """Take all screenshots of a built site."""
    parser = argparse.ArgumentParser(description="Takes screenshots of the pages.")
    parser.add_argument("out", type=Path, help="the folder for the PNG files")
    parser.add_argument("--site", type=Path, default=ROOT / "site", help="a built site")
    asked = parser.parse_args()
    for path in take(asked.site.resolve(), asked.out):
        print(path)


if __name__ == "__main__":
    main()
