"""Some harmed inputs for every decoder; `make test-all` has a million of them.

No decoder may raise what is not a `TacitError`, whatever the bytes are.
"""

from __future__ import annotations

import time

import pytest

from benchmarks.fuzz import Outcome, fuzz
from benchmarks.fuzz_targets import Target, targets
from tacit.errors import BadData


@pytest.fixture(scope="module")
def known(tmp_path_factory) -> dict[str, Target]:
    return {t.name: t for t in targets(tmp_path_factory.mktemp("fuzz"))}


NAMES = (
    *(
        "broadcast message",
        "broadcast",
        "reports",
        "event",
        "release",
        "terms",
        "strings",
        "columns",
    ),
    *("csv", "items", "cache manifest.json", "cache 0000.npy", "movielens-100k"),
    *("movielens-latest-small", "citeulike-a", "steam-200k", "filmtrust", "lastfm"),
    *("frappe", "mind-small-sample", "zip", "experiment", "model.safetensors"),
    *("model.json", "ledger.json", "result.json", "metrics.jsonl"),
    *("privacy-card.json", "state.safetensors", "checkpoint", "ledger.db"),
    *("ledger.db rows", "query", "answer", "model", "basis"),
    *("manifest", "epoch manifest", "sealed report", "seed batch", "closing"),
    *("relay closing", "upload", "relay batch", "node answer", "new items"),
    *("rotation", "invitation"),
)


def test_every_target_is_here_and_all_of_the_inputs_are_shared_out(known):
    assert tuple(known) == NAMES
    assert sum(target.share for target in known.values()) == pytest.approx(1, abs=0.02)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_nothing_foreign_comes_out(known, name):
    target = known[name]
    target.read(target.sound)  # what is harmed was sound
    inputs = max(25, round(target.share * 4_000))
    found = fuzz(target, inputs, seed=1, until=time.perf_counter() + 60)
    assert found.findings == {}
    assert found.inputs == inputs == found.accepted + found.refused
    assert found.refused or name.startswith("cache")  # a cache refuses by None


def test_the_fuzzer_sees_what_is_foreign():
    """A reader that lets one kind through, one that is slow, one that is right."""

    def reader(raw: bytes) -> object:
        if raw == b"key":
            return {}["x"]
        if raw == b"bad":
            raise BadData("f", 1, "no")
        return raw

    inputs = iter([b"key", b"bad", b"fine", b"key"])
    target = Target("t", 1.0, lambda _: next(inputs), reader, b"")
    found = fuzz(target, 4, seed=0, until=time.perf_counter() + 60)
    assert isinstance(found, Outcome)
    assert (found.accepted, found.refused, found.foreign) == (1, 1, 2)
    [(kind, kept)] = found.findings.items()
    assert kind.startswith("KeyError")
    assert [given for _, given in kept] == [b"key".hex()] * 2
