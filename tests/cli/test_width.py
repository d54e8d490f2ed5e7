"""What commands print in terminals of 80 and 60 columns: whole words, short lines."""

import io
import re
import sys

import pytest
from ledger.small import gaussian
from service.federation.two_operators import TwoOperators, invitation_of

from tacit.cli import main
from tacit.data.catalog import Catalog
from tacit.ledger.budget import Cap
from tacit.ledger.durable import ClientLedger
from tacit.method import CentralGaussian
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.plans import Plan

WIDE = 1000
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
_DRAWN = set("─│╭╮╰╯├┤●·")

PRIVATE = """
[privacy]
mechanism = "central"
channel = "secure_sum"
delta = 1e-6
target_epsilon = 2.0
"""


class Terminal(io.StringIO):
    """Takes what is printed, and says that it is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def printed(monkeypatch, tmp_path_factory):
    """The lines that a command prints at a width; progress is not among them."""
    monkeypatch.setenv("TACIT_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("TERM", "xterm")

    def call(width, *arguments):
        out = Terminal()
        with monkeypatch.context() as now:
            now.setenv("COLUMNS", str(width))
            now.setattr(sys, "stdout", out)
            now.setattr(sys, "stderr", io.StringIO())
            now.setattr(sys, "argv", ["tacit", *map(str, arguments)])
            with pytest.raises(SystemExit) as stop:
                main()
        assert not stop.value.code, arguments
        return [line.rstrip() for line in _ESCAPE.sub("", out.getvalue()).splitlines()]

    return call


def words(lines):
    """The words of a text, without lines that are drawn and what ends a name."""
    found = {word.strip(":│") for line in lines for word in line.split()}
    return {word for word in found if not _DRAWN & {*word}}


def too_long(lines, width):
    """The lines that are wider, but for those of one word, such as a path."""
    return [line for line in lines if len(line) > width and " " in line.strip()]


def refuse_broken(printed, *arguments, drawn=None):
    """Refuse long lines and broken words; those that match `drawn` are drawn anew."""
    whole = words(printed(WIDE, *arguments))
    assert whole
    for width in (80, 60):
        lines = printed(width, *arguments)
        assert not too_long(lines, width), (arguments, width)
        broken = words(lines) - whole
        if drawn is not None:
            broken = {word for word in broken if not re.fullmatch(drawn, word)}
        assert not broken, (arguments, width)


@pytest.fixture
def private(experiment):
    experiment.write_text(experiment.read_text() + PRIVATE)
    return experiment


def test_a_run_from_plan_to_ledger(printed, private, tmp_path):
    run = tmp_path / "run"
    printed(80, "train", private, "--out", run)
    refuse_broken(printed, "plan", private)
    refuse_broken(printed, "plan", private, "--long")
    refuse_broken(printed, "evaluate", run)
    refuse_broken(printed, "ledger", "show", run / "ledger.json")
    refuse_broken(printed, "recommend", run, "--user", "user 1")
    assert not too_long(printed(60, "train", private, "--out", tmp_path / "b"), 60)


def test_a_comparison(printed, private, tmp_path):
    call = ("compare", private, "--epsilons", "1,4,inf", "--seeds", "1")
    refuse_broken(printed, *call, "--out", tmp_path / "c")


def test_the_ledger_of_a_client(printed, tmp_path):
    file = tmp_path / "device.db"
    with ClientLedger(file) as ledger:
        ledger.join("a-run-with-a-rather-long-name", gaussian(5.0), state=b"")
        ledger.permits("a-run-with-a-rather-long-name", 0, asked=b"")
        ledger.set_cap(Cap(2.0))
    refuse_broken(printed, "ledger", "show", file)


def test_a_client_of_two_servers(printed, tmp_path):
    method = FederatedPopularity(privacy=CentralGaussian())
    plan = Plan(40, channel="two_servers", delta=1e-6, target_epsilon=4.0)
    catalog = Catalog.of_ids([f"item {n}" for n in range(9)])
    made = invitation_of("federated_popularity", method, plan, catalog)
    history, folder = tmp_path / "history.txt", tmp_path / "client"
    history.write_text("item 1\nanother item\n")
    with TwoOperators(made).running() as world:
        joining = ("client", "join", world.url, "--history", history)
        assert not too_long(printed(60, *joining, "--folder", folder), 60)
        world.open()
        assert not too_long(printed(60, "client", "once", "--folder", folder), 60)
        refuse_broken(printed, "client", "show", "--folder", folder)
        leaving = ("client", "leave", "--yes", "--folder", folder)
        assert not too_long(printed(60, *leaving), 60)


@pytest.mark.parametrize(
    "command", [("data", "list"), ("data", "describe", "synthetic")]
)
def test_data_sets(printed, command):
    refuse_broken(printed, *command)
    if command[1] == "list":
        assert any(
            "https://grouplens.org/datasets/movielens/100k/" in line
            for line in printed(60, *command)
        )


def test_a_reproduction(printed):
    refuse_broken(printed, "reproduce", "fmf-ldp", "--table", "5.3")


@pytest.mark.slow
def test_an_audit(printed):
    # The noise of exact sums is the operating system's, which no seed repeats.
    refuse_broken(printed, "audit", "federated_popularity", drawn=r"\d\.\d{4}")


@pytest.mark.slow
def test_the_demo(printed, tmp_path):
    refuse_broken(printed, "demo", "--out", tmp_path / "demo")
