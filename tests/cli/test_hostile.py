"""A catalog that attacks whoever looks at it: terminals, pages, spreadsheets."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

TITLES = [
    "\x1b]0;owned\x07Window",
    "\x1b[2J\x1b[31mCleared",
    "Back\rspace\x08",
    "Two\nlines: error: all is well",
    "Turned \u202eecnad\u202c \u2066round\u2069\u200f",
    "[red]markup[/red] [link=http://x]y[/link] [/]",
    "<script>alert(1)</script><img src=x onerror=y>",
    "$\\frac{1}{0$ :smile: _under",
    "\u009b31mC1 and \u2028 line \u200b zero",
    "=cmd|' /C calc'!A0",
    "\"quoted\" & 'single'",
    "\ue000 private \ufeff mark",
]
EXPERIMENT = """
[data]
source = "table"
split = "new-users"
validation = 6
test = 8
[data.table]
path = "events.csv"
user = "who\\u001b[1m"
item = "what"
title = "name"
[method]
name = "gram"
[privacy]
mechanism = "none"
[run]
rounds = 2
sampler = { name = "everyone" }
"""


def program(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    environment = {k: v for k, v in os.environ.items() if k != "FORCE_COLOR"}
    return subprocess.run(
        [sys.executable, "-m", "tacit", *map(str, words)],
        capture_output=True,
        cwd=cwd,
        env={**environment, "PYTHONUTF8": "1", "TACIT_CACHE": str(cwd / "cache")},
        check=False,
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A trained run on the hostile catalog."""
    folder = tmp_path_factory.mktemp("hostile")
    with (folder / "events.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["who\x1b[1m", "what", "name"])
        for user in range(40):
            for k in range(5):
                item = (user + 5 * k) % len(TITLES)
                who = f"u{user}" if user else "\x1b[5mu0\n"
                writer.writerow([who, f"{item}\x1b[0m", TITLES[item]])
    (folder / "hostile.toml").write_text(EXPERIMENT, "utf-8")
    done = program("train", "hostile.toml", "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr.decode()
    assert_clean(done.stdout)
    assert_clean(done.stderr)
    return folder


def assert_clean(output: bytes) -> None:
    """Valid UTF-8, and besides line ends only what can be seen."""
    for character in set(output.decode("utf-8")) - {"\n"}:
        kind = unicodedata.category(character)
        assert kind not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}, repr(character)


@pytest.mark.parametrize(
    "words",
    [
        ("recommend", "run", "--user", "\x1b[5mu0\n", "--why"),
        ("recommend", "run", "--history", "0\x1b[0m,1\x1b[0m", "-k", "12"),
        ("report", "run"),
        ("plan", "hostile.toml"),
        ("data", "describe", "synthetic"),
        ("init", "events.csv", "--user", "who\x1b[1m", "--item", "what"),
    ],
    ids=lambda words: " ".join(words).encode("unicode_escape").decode(),
)
def test_a_terminal_is_told_nothing_to_obey(tacit, place, monkeypatch, words):
    monkeypatch.chdir(place)
    done = tacit(*words)
    assert done.code == 0, done.err
    assert_clean(done.out.encode())
    assert_clean(done.err.encode())


def test_titles_are_told_apart_and_not_read_as_markup(place):
    done = program("recommend", "run", "--history", "0\x1b[0m", "-k", "12", cwd=place)
    printed = done.stdout.decode()
    assert "[red]markup[/red] [link=http://x]y[/link] [/]" in printed
    assert "\\x1b[2J\\x1b[31mCleared" in printed
    assert "$\\frac{1}{0$ :smile: _under" in printed
    *listed, served = printed.splitlines()
    assert len(listed) == 12
    assert served == "on_device: nothing is sent: epsilon 0"


def test_json_has_the_exact_titles(tacit, place):
    call = ("--history", "0\x1b[0m", "-k", "12", "--json")
    done = tacit("recommend", place / "run", *call)
    assert_clean(done.out.encode())
    found = [line["title"] for line in done.json["items"]]
    assert sorted(found) == sorted(TITLES[1:])


@pytest.mark.parametrize(
    "words",
    [
        ("recommend", "run", "--user", "no\x1b[1m\nerror: fine \u202e"),
        ("recommend", "run", "--history", "no\x1b[1m\nerror: fine \u202e"),
        ("recommend", "no\x1b[1m\nerror: fine \udcff", "--user", "u1"),
        ("train", "no\x1b[1m\nerror: fine.toml", "--out", "other"),
        ("init", "events.csv", "--user", "no\x1b", "--item", "what"),
    ],
    ids=["user", "history", "run", "experiment", "column"],
)
def test_errors_quote_what_they_refuse_and_do_not_obey_it(
    tacit, place, monkeypatch, words
):
    monkeypatch.chdir(place)
    done = tacit(*words, "--json")
    assert done.code == 2
    assert_clean(done.out.encode())
    assert_clean(done.err.encode())
    assert re.findall(r"^error: ", done.err, re.MULTILINE) == ["error: "]
    assert "no" in done.json["error"]["message"]


def test_pages_have_no_markup_of_the_data(place):
    pages = list((place / "run").glob("*.html"))
    assert {page.name for page in pages} >= {"report.html", "privacy-card.html"}
    for page in pages:
        assert_clean(page.read_bytes())
        text = page.read_text("utf-8")
        assert "<script" not in text
        assert "onerror=y>" not in text


def test_init_writes_no_line_of_the_data(tacit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    odd = '"x\n[run]\nseed = 7"'
    (tmp_path / "e.csv").write_text(
        f"u,i\n{odd},1\n{odd},2\ny,2\ny,3\nz,1\nz,3\n", "utf-8"
    )
    done = tacit("init", "e.csv", "--user", "u", "--item", "i")
    assert done.code == 0, done.err
    assert "\nseed = 7" not in (tmp_path / "exp.toml").read_text("utf-8")
