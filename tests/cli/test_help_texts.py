from __future__ import annotations

import itertools
import re

import pytest

COMMANDS = [
    *(["init"], ["train"], ["plan"], ["compare"], ["recommend"], ["release"]),
    *(["data", "list"], ["data", "describe"], ["data", "prepare"]),
]


@pytest.fixture(autouse=True)
def _eighty_columns(tacit, monkeypatch):  # after tacit, which sets 200
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_paragraphs_flow_at_80_columns(tacit, command):
    """A line ends early only at the end of a paragraph, or before a long word."""
    shown = tacit(*command, "--help").out
    prose = shown.split("╭")[0].splitlines()
    assert max(map(len, prose)) <= 80
    for line, following in itertools.pairwise(prose):
        if line.strip() and following.strip():
            word = following.split()[0]
            assert len(f" {line.strip()} {word}") >= 78, line


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_arguments_say_what_they_are_for(tacit, command):
    shown = tacit(*command, "--help").out
    for panel in re.findall(r"─ Arguments ─+╮\n(.*?)╰", shown, re.DOTALL):
        assert len(re.findall(r"[a-z]{3,}", panel)) > 4, panel


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["trian"], "train"),
        (["inti", "x.csv"], "init"),
        (["data", "lsit"], "list"),
        (["init", "x.csv", "--usr", "a"], "--user"),
        (["train", "x.toml", "--ouut", "a"], "--out"),
    ],
)
def test_a_typing_error_gets_one_suggestion(tacit, typed, meant):
    answer = tacit(*typed)
    assert answer.code == 2
    assert re.findall(r"Did you mean '([^']*)'\?", answer.err) == [meant]
    assert answer.err.count("id you mean") == 1
    message = tacit(*typed, "--json").json["error"]["message"]
    assert message.count("id you mean") == 1
