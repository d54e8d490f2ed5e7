"""Killed at any moment, a federation goes on: kills by the dozen, and single ones.

`make test-all` has 1,000 kills (`python -m benchmarks.federation_kills`).
"""

import contextlib
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from quick import some_or_all
from service.federation.services import (
    Place,
    a_run,
    aggregators,
    coordinator,
    step_until,
)

from tacit.errors import Refused
from tacit.service.federation.aggregator import Aggregator
from tacit.service.federation.sealing import Role, new_private_key, public_key
from tacit.service.federation.settings import read_signing_key
from tacit.service.federation.store import OPEN, VOID, AggregatorStore
from tacit.service.signing import Signer

ROOT = Path(__file__).parents[3]


def test_sixty_kills_lose_nothing_and_double_nothing():
    """Every named point of every role is among them, or the exit code is 1."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.federation_kills", "--times", "60"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = re.search(r"(\d+) kills in \d+ lives, 0 wrong", done.stdout)
    assert told is not None, done.stdout
    assert int(told[1]) == 60


MUTANTS = (
    "noise drawn late",
    "sum not kept",
    "ids in their own commit",
    "answers before commit",
    "batch named early",
    "ledger line late",
)


@some_or_all("names", MUTANTS[:2], MUTANTS)
def test_every_broken_variant_is_caught(names):
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.federation_mutants", "--only", *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" caught: ") == len(names)


class Death(BaseException):
    """In place of SIGKILL: nothing that runs afterwards may matter."""


def helper_of(place: Place) -> Aggregator:
    settings = place.aggregator("helper")
    keys = (bytes.fromhex(place.keys[role]) for role in ("leader", "helper"))
    signer = Signer(
        read_signing_key(settings.signing_key),
        dict(zip(("leader", "helper"), keys, strict=True)),
    )
    store = AggregatorStore(settings.folder, "helper")
    return Aggregator(Role.HELPER, store, signer, settings.limits)


@pytest.fixture
def place(tmp_path, monkeypatch) -> Place:
    monkeypatch.setenv("TACIT_STATE", str(tmp_path / "state"))
    return Place(tmp_path)


@contextlib.contextmanager
def coordinating(place: Place, urls, **schedule):
    run = coordinator(place, urls, a_run(place), **schedule)
    yield run
    run.close()
    for one in (run.leader, run.helper):
        one.close_connection()


@pytest.fixture
def opened(place: Place) -> Place:
    """A place whose aggregators were stopped with an open round."""
    with aggregators(place) as urls, coordinating(place, urls) as run:
        step_until(run, OPEN)
    return place


def test_killed_between_a_keys_file_and_its_row_a_helper_forgets_the_file(place):
    one = helper_of(place)
    folder = place.folder / "helper" / "keys"
    private = new_private_key()
    orphan = folder / f"{public_key(private).hex()}.key"
    orphan.write_bytes(private)
    one.store.keep_key(bytes(16), 0, private := new_private_key(), public_key(private))
    one.store.close()
    helper_of(place).store.close()
    known = {f"{public_key(private).hex()}.key", "signing.key", "signing.pub"}
    assert {path.name for path in folder.iterdir()} == known


def test_killed_while_it_deletes_an_open_round_a_helper_starts_and_has_deleted_it(
    opened, monkeypatch
):
    one = helper_of(opened)
    [row] = one.store.rounds()
    assert row.state == OPEN

    def forget(*_, **__):
        one.store.delete_key(row.run, row.number)
        raise Death

    monkeypatch.setattr(one.store, "forget", forget)
    with pytest.raises(Death):
        one.delete(row.id)
    one.store.close()
    again = helper_of(opened)
    assert [row.state for row in again.store.rounds()] == [VOID]
    again.store.close()


@pytest.mark.parametrize("where", ["void", "_expect"])
def test_killed_while_it_voids_a_copy_a_helper_voids_it_at_its_next_start(
    opened, monkeypatch, where
):
    for path in (opened.folder / "state" / "services").iterdir():
        path.write_text("{}")  # no mark is known: every file is a copy

    def die(*_):
        raise Death

    with monkeypatch.context() as patched:
        patched.setattr(AggregatorStore, where, die)
        with pytest.raises(Death):
            helper_of(opened)
    again = helper_of(opened)
    assert again.store.is_copy
    assert [row.state for row in again.store.rounds()] == [VOID]
    again.store.close()


def test_a_coordinator_that_is_refused_says_so_and_asks_again(place, monkeypatch):
    with aggregators(place) as urls, coordinating(place, urls, enough=1) as run:
        sign, asked, stop = run.leader.sign, [], threading.Event()

        def refuse(document):
            asked.append(document)
            if len(asked) == 1:
                raise Refused("not today")
            assert run.trouble == "not today"
            stop.set()
            return sign(document)

        monkeypatch.setattr(run.leader, "sign", refuse)
        run.play(stop=stop)
        assert len({*asked}) == 1
        assert len(asked) == 2
