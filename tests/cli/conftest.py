import json
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from tacit.cli import main


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)  # one document and nothing else


@pytest.fixture
def tacit(capsys, monkeypatch, tmp_path_factory):
    """The command line, called in this process with its own cache.

    It stands outside of `tmp_path`, where tests look at what a command has written:
    whoever has TACIT_DATA set gets a cache from the real archives there.
    """
    monkeypatch.setenv("TACIT_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["tacit", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        written = capsys.readouterr()
        return Answer(code, written.out, written.err)

    return call


EXPERIMENT = """
[data]
source = "table"
min_interactions = 2
validation = 8
test = 8

[data.table]
path = "table.csv"
user = "who"
item = "what"

[method]
name = "federated_popularity"

[run]
rounds = 3
sampler = { name = "once" }

[evaluate]
metrics = ["ndcg@10", "recall@5"]
baselines = ["popularity", "ease"]
"""


@pytest.fixture
def experiment(tmp_path):
    """A small experiment on a table of forty users."""
    lines = [
        f"user {p},item {(p * 7 + i * i) % 15}" for p in range(40) for i in range(9)
    ]
    (tmp_path / "table.csv").write_text("who,what\n" + "\n".join(lines) + "\n")
    path = tmp_path / "exp.toml"
    path.write_text(EXPERIMENT)
    return path
