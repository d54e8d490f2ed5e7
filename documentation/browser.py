"""The built site in Chromium: what it measures, and what it looks like.

Pages stand in frames of a chosen width inside one page, so that a phone's width can be
had without a driver: Chromium's own window is never narrower than 500 pixels. Nothing
but the local server can be reached.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PHONE, DESK = 390, 1280  # widths in pixels
SECONDS = 300
RESULT = re.compile(r'<pre id="result">(.*?)</pre>', re.DOTALL)
PROBE = """<!doctype html><meta charset="utf-8"><body><script>
// The browser's clock is virtual and waits for requests alone, so time is one.
const wait = seconds => fetch("/wait?" + seconds);
async function framed(page, width, height) {
  const frame = document.createElement("iframe");
  Object.assign(frame.style, {width: width + "px", height: height + "px", border: 0});
  const loaded = new Promise(done => frame.onload = done);
  frame.src = page;
  document.body.append(frame);
  await loaded;
  await wait(.05);
  return frame;
}
function outside(root, width) {
  const scrolls = e => /auto|scroll/.test(getComputedStyle(e).overflowX);
  const inBox = e => e !== root.body && (scrolls(e) || inBox(e.parentElement));
  return [...root.querySelectorAll("article *")]
    .filter(e => !inBox(e.parentElement) && e.getBoundingClientRect().right > width + 1)
    .map(e => e.tagName + " " + e.textContent.trim().slice(0, 60)).slice(0, 3);
}
async function measured(page, width) {
  const frame = await framed(page, width, 900), root = frame.contentDocument;
  root.querySelectorAll("img").forEach(image => image.loading = "eager");
  const found = {
    page, width, title: root.title, scroll: root.documentElement.scrollWidth,
    outside: outside(root, width),
    lost: [...root.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src),
  };
  frame.remove();
  return found;
}
async function searched(words) {
  const frame = await framed("index.html", 1280, 900), root = frame.contentDocument;
  const field = root.querySelector("input.md-search__input");
  field.focus();
  field.value = words;
  for (const kind of ["input", "keyup", "change"])
    field.dispatchEvent(new frame.contentWindow.Event(kind, {bubbles: true}));
  let links = [];
  for (let turn = 0; turn < 100 && !links.length; turn++) {
    await wait(.2);
    links = [...root.querySelectorAll("a.md-search-result__link")].map(a => a.href);
  }
  frame.remove();
  return links;
}
(async () => {
  const asked = ASKED, answer = {measured: [], searched: {}};
  for (const width of asked.widths)
    for (const page of asked.pages) answer.measured.push(await measured(page, width));
  for (const words of asked.searches) answer.searched[words] = await searched(words);
  const place = document.createElement("pre");
  place.id = "result";
  place.textContent = JSON.stringify(answer);
  document.body.append(place);
})();
</script>"""


def chromium() -> str | None:
    """The browser's program, or None where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


def pages(site: Path) -> list[str]:
    """The addresses of all pages of a built site."""
    return [
        path.relative_to(site).as_posix()
        for path in sorted(site.rglob("*.html"))
        if path.name != "404.html"
    ]


def look(
    site: Path,
    *,
    pages: Sequence[str],
    widths: Sequence[int] = (PHONE, DESK),
    searches: Sequence[str] = (),
) -> dict[str, Any]:
    """Widths, lost pictures and search results, as the browser has them."""
    asked = {"pages": [*pages], "widths": [*widths], "searches": [*searches]}
    probe = PROBE.replace("ASKED", json.dumps(asked))
    with serving(site, {"probe.html": probe}) as address:
        text = _run(
            f"{address}/probe.html", "--dump-dom", f"--virtual-time-budget={9**7}"
        )
    found = RESULT.search(text)
    if found is None:
        raise RuntimeError(f"the browser gave no answer:\n{text[-2000:]}")
    answer: dict[str, Any] = json.loads(unescape(found[1]))
    return answer


def screenshot(
    address: str, out: Path, *, width: int, height: int, dark: bool = False
) -> None:
    """What a window of this size shows, as a PNG file."""
    more = ["--blink-settings=preferredColorScheme=0"] if dark else []
    size = f"--window-size={width},{height}"
    _run(address, f"--screenshot={out}", size, "--hide-scrollbars", *more)


@contextmanager
def serving(site: Path, more: dict[str, str]) -> Iterator[str]:
    """A local server of the site and of some pages beside it; gives its address."""
    handler = partial(_Handler, more, directory=str(site))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(SimpleHTTPRequestHandler):
    """Serves a folder, and some pages that are in none."""

    def __init__(self, more: dict[str, str], *given: Any, **named: Any) -> None:
        self.more = more
        super().__init__(*given, **named)

    def do_GET(self) -> None:
        name, _, asked = self.path.lstrip("/").partition("?")
        if name == "wait":
            time.sleep(float(asked))
        elif name not in self.more:
            return super().do_GET()
        body = self.more.get(name, "").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *_: Any) -> None:
        """Say nothing: there is no reader."""


def _run(address: str, *options: str) -> str:
    program = chromium()
    if program is None:
        raise RuntimeError(
            "there is no chromium; install Debian's package of that name"
        )
    with tempfile.TemporaryDirectory() as profile:
        command = [
            program,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={profile}",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            *options,
            address,
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, env={**os.environ}
        )
    if done.returncode != 0:
        raise RuntimeError(
            f"chromium: exit code {done.returncode}\n{done.stderr[-2000:]}"
        )
    return done.stdout
