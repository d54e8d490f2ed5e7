"""Tests of a budget for sensitive categories alone."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tacit.audits.likelihood_ratios import check_epsilon
from tacit.data.catalog import Catalog
from tacit.data.features import Category, Text
from tacit.data.impressions import Impressions
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.data.strings import Strings
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.method import Clients, Plan
from tacit.methods.privaterec_local import PrivateRecLocal
from tacit.privacy import SensitiveClicks
from tacit.privacy.sensitive_clicks import OPEN
from tacit.release import Standing
from tacit.statement import account
from tacit.tree import Tree

PRIVACY = SensitiveClicks(1.0, ("health",), "kind")
METHOD = PrivateRecLocal(
    content=("title",),
    dimensions=None,
    interests=2,
    most_impressions=2,
    most_shown=4,
    negatives=3,
    privacy=PRIVACY,
)
# Items 0 to 3 are of health, 4 to 7 of sport.
CATALOG = replace(
    Catalog.of_ids([f"{kind} {n}" for kind in ("cure", "ball") for n in range(4)]),
    features={
        "kind": Category.of(["health"] * 4 + ["sport"] * 4),
        "title": Text(
            Strings.of(["cure doctor"] * 4 + ["ball goal"] * 2 + ["win cup"] * 2)
        ),
    },
)
PLAN = Plan(10, rounds=3, delta=1e-6)
DRAWS = 40_000


def people(n, *, read, clicked, shown=((0, 1, 4, 5), (4, 5, 6, 7))):
    """Clients who were shown these slates, with one click of each, and read this."""
    rows = [row for _ in range(n) for row in shown]
    is_clicked = [item in clicked for row in rows for item in row]
    impressions = Impressions.of_columns(
        np.repeat(np.arange(n), len(shown)),
        Ragged.of_lengths([len(row) for row in rows], np.ravel(rows).astype(np.int32)),
        clicked=np.array(is_clicked),
        histories=Ragged.of_lengths([len(read)], np.array(read, np.int32)),
        history_of=np.zeros(len(rows), np.int64),
        times=np.arange(len(rows)),
        n_users=n,
        n_items=8,
    )
    held = Shards.of_histories([np.array(read)] * n, n_items=8, value=1.0)
    return replace(held, impressions=impressions)


def reports(n, *, method=METHOD, seed=0, **whom):
    """What these clients send in a round."""
    server = method.start(PLAN, CATALOG, Key.from_seed(0))
    keys = Key.from_seed(seed).each(np.arange(n))
    zeros = np.zeros(n, np.int64)
    clients = Clients(PLAN, np.arange(n), zeros, Tree({}))
    broadcast = method.broadcast(server)
    _, updates = method.local_update(
        broadcast, clients, people(n, **whom), keys.at("update")
    )
    return method.privatize(broadcast, clients, updates, keys.at("noise")).tree


def rows_of(tree):
    parts = [tree[name].reshape(len(tree), -1) for name in sorted(tree.leaves)]
    return np.concatenate(parts, axis=1).astype(np.float64)


OPEN_SLATE = {"shown": ((4, 5, 6, 7),)}


def test_an_open_slate_and_the_open_history_are_told_as_they_are():
    sent = reports(50, read=[4, 6], clicked=[6], **OPEN_SLATE)
    assert (sent[OPEN][:, 0] == 1).all()
    assert (sent["candidates"][:, 0, 0] == 7).all()  # items count from 1


def test_what_was_read_of_sensitive_kinds_changes_no_bit_of_a_report():
    """Histories of equal open items: all bytes are equal, whatever else is read."""
    one, two = (
        rows_of(reports(200, read=[*health, 4, 6], clicked=[0, 6]))
        for health in ([0, 1, 2], [3])
    )
    assert np.array_equal(one, two)
    other = rows_of(reports(200, read=[6, 6], clicked=[0, 6]))
    assert one.shape == other.shape


def test_clicks_in_sensitive_slates_tell_no_more_than_the_epsilon():
    """Both of a client's slates may be sensitive; they divide 1.0. False alarm 3e-5."""
    sensitive = ((0, 1, 4, 5), (2, 3, 6, 7))

    def say(clicked, keys):
        n = len(keys)
        seed = int(keys.bits(1)[0, 0] % 2**31)
        sent = reports(n, read=[4], clicked=clicked, shown=sensitive, seed=seed)
        first = sent["candidates"][:, :, 0]  # the labels that are told
        return np.sort(first, axis=1).astype(np.float64)

    inputs = {"health": [0, 2], "sport": [4, 6]}
    key = Key.from_seed(3)
    found = check_epsilon(say, inputs, epsilon=1.0, key=key, draws=DRAWS)
    assert found.ok, found
    assert found.measured > 0.5


def test_a_slate_that_is_wrongly_called_open_is_caught():
    """The mutant: the client believes that all items are open."""

    class Careless(SensitiveClicks):
        def open_items(self, catalog):
            return np.ones(len(catalog), bool)

    careless = replace(METHOD, privacy=Careless(**vars(PRIVACY)))

    def say(clicked, keys):
        sent = reports(len(keys), method=careless, read=[4], clicked=clicked)
        return np.sort(sent["candidates"][:, :, 0], axis=1).astype(np.float64)

    found = check_epsilon(
        say,
        {"health": [0, 6], "sport": [5, 6]},
        epsilon=1.0,
        key=Key.from_seed(3),
        draws=2000,
    )
    assert not found.ok


def test_the_whole_history_never_has_that_epsilon():
    found = account(PLAN, METHOD.releases(PLAN))
    for line in (*found.releases, *found.totals):
        assert (line.standing, line.epsilon) == (Standing.NONE, None)
    [release] = METHOD.releases(PLAN)
    reason = next(iter(release.cells.values())).reason
    assert "epsilon 3 at most" in reason  # three rounds of 1.0
    assert "health of 'kind'" in reason
    assert "have no promise" in reason


def test_an_item_of_unknown_kind_is_sensitive():
    column = CATALOG.features["kind"]
    unknown = replace(column, codes=np.where(np.arange(8) == 7, -1, column.codes))
    catalog = replace(CATALOG, features={"kind": unknown})
    assert PRIVACY.open_items(catalog).tolist() == [False] * 4 + [True] * 3 + [False]


def test_the_server_believes_what_is_told_and_doubts_what_was_randomised():
    server = METHOD.start(PLAN, CATALOG, Key.from_seed(0))
    sent = reports(10, read=[4], clicked=[0, 6])
    assert METHOD.legal(sent, PLAN, CATALOG, phase=0).all()
    memory = {name: sent[name] for name in sent.leaves}
    chances = METHOD._reported(memory, server.weights).lies
    said = sent[OPEN][sent["sizes"] > 0]
    assert (chances[said == 1] == 0).all()
    assert (chances[said == 0] > 0).all()
    forged = Tree.dense(**{**memory, OPEN: np.ones_like(memory[OPEN])})
    assert not METHOD.legal(forged, PLAN, CATALOG, phase=0).any()


@pytest.mark.parametrize(
    "call",
    [
        lambda: SensitiveClicks(1.0),
        lambda: PRIVACY.calibrated(replace(PLAN, target_epsilon=1.0), ()),
        lambda: SensitiveClicks(1.0, ("weather",), "kind").open_items(CATALOG),
        lambda: SensitiveClicks(1.0, ("health",), "color").open_items(CATALOG),
        lambda: SensitiveClicks(-1.0, ("health",), "kind"),
    ],
    ids=["no label", "a target", "an unknown label", "an unknown feature", "negative"],
)
def test_what_cannot_be_is_refused(call):
    with pytest.raises(BadValue):
        call()
    assert math.isfinite(PRIVACY.epsilon)
