"""Membership by movement: did this user take part? From the models of all rounds.

    m_t    how far the common model moved in round t, from one broadcast to the next u_t
    what the user's client would have sent in round t, computed from its broadcast
           by the method's own code; what a client draws, the attacker draws anew
    v_l    the mean square of m_t over the weights of leaf l

A member's report is a part of m_t in some of the rounds, an outsider's in none. All
else in m_t is noise to the attacker: other users' reports, and real noise if there is
any. It differs by leaf, and m_t itself says how loud it is: v_l. The score is the
matched filter for such noise,

    sum over t of  sum_l <u_t, m_t>_l / v_l  over  sqrt(sum_l |u_t|²_l / v_l)

It takes what a participant sees, the user's history, and nothing of anybody else. A
server's step multiplies m_t and cancels.

Everyone is enrolled, and a fair coin of their own says whose client takes part: the
others refuse in every round and count as nothing. That is what `zero_out` compares, so
a guarantee bounds what any attack finds (`trade_off`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float, Float64, Int64, UInt8

from tacit import check
from tacit.attacks.leaks import Histories
from tacit.attacks.leaks.finding import Attempt, Score
from tacit.attacks.leaks.membership import AUC, CAUGHT, FALSE_ALARMS, auc, caught
from tacit.attacks.leaks.trade_off import TradeOff
from tacit.data.features import Features
from tacit.data.federated_data import FederatedData
from tacit.keys import Key
from tacit.method import Method
from tacit.plans import Plan
from tacit.release import Cell, Unit, View
from tacit.runtime.simulate import Simulation
from tacit.statement import account
from tacit.transport.messages import Broadcast
from tacit.tree import Tree

CAUGHT_MORE = "found at 5 % false alarms"
MORE_ALARMS = 0.05

Federations = UInt8[np.ndarray, "federations each items"]  # histories of each
Scores = Float64[np.ndarray, "*users"]  # of one federation after another
Members = Bool[np.ndarray, "*users"]

_EYES = Unit.USER, View.RELEASE  # whom the claim is about, and who looks
_RESAMPLES = 200  # of the bootstrap; a standard error to 5 %


@dataclass(frozen=True)
class Subject:
    """A method as one federation runs it, and what is public of the items."""

    label: str
    method: Method
    plan: Plan
    features: Features


def attack_movement(subject: Subject, federations: Federations, key: Key) -> Attempt:
    """Train each federation and ask of everyone in it whether they took part.

    Figures are of all users together; errors are over federations, by bootstrap.
    """
    check.at_least(2, federations=len(federations), remedy="errors are over them")
    played = [_played(subject, some, key.at(n)) for n, some in enumerate(federations)]
    scores, is_member = (np.stack(each) for each in zip(*played, strict=True))
    [release] = subject.method.releases(subject.plan)
    most = _most(release.cells[_EYES])
    found = {
        name: replace(
            measure.score(scores, is_member, key.at(name)), most=most.get(name)
        )
        for name, measure in _MEASURES.items()
    }
    lines = account(subject.plan, (release,)).releases
    [said] = [line for line in lines if (line.unit, line.view) == _EYES]
    return Attempt(subject.label, said, found)


def likeness(
    reports: Tree, before: Broadcast, after: Broadcast
) -> Float64[np.ndarray, "users"]:
    """The matched filter of one round: how much each report is part of the movement."""
    product, square = np.zeros(len(reports)), np.zeros(len(reports))
    dense = reports.to_dense()
    for name in (leaf for leaf in dense.leaves if leaf in before.weights):
        moved = after.weights[name].astype(np.float64) - before.weights[name]
        loud = np.square(moved).mean()
        if loud == 0:  # nobody took part, so the leaf did not move
            continue
        sent = dense[name].reshape(len(reports), -1).astype(np.float64)
        product += sent @ moved.ravel() / loud
        square += np.square(sent).sum(axis=1) / loud
    # A report of zeros is like nothing: 0 over the least float is 0.
    return product / np.sqrt(np.maximum(square, np.finfo(float).tiny))


def _played(
    subject: Subject, histories: Histories, key: Key
) -> tuple[Float64[np.ndarray, "users"], Bool[np.ndarray, "users"]]:
    """Everyone's score in one federation, and who took part."""
    is_member = key.at("coins").generator().random(len(histories)) < 0.5
    method, data = subject.method, FederatedData.of_matrix(histories, subject.features)
    run = Simulation(
        method,
        subject.plan,
        data.catalog,
        data.profiles,
        data.shards,
        key.at("run"),
        ledger=_Only(is_member),
    )
    clients, shards = run.start().clients, data.shards
    own = key.at("attacker").each(np.arange(len(histories)))
    score = np.zeros(len(histories))
    for before, after in pairwise(_broadcasts(run)):
        keys = own.at("round", before.round)
        _, updates = method.local_update(before, clients, shards, keys.at("update"))
        sent = method.privatize(before, clients, updates, keys.at("privatize"))
        score += likeness(sent.tree, before, after)
    return score, is_member


def _broadcasts(run: Simulation) -> Iterator[Broadcast]:
    """What a participant sees: the model before each round, and the last."""
    state = run.start()
    yield run.method.broadcast(state.server)
    for after, _ in run.run(state):
        yield run.method.broadcast(after.server)


@dataclass(frozen=True, eq=False)
class _Only:
    """The ledger of a federation in which only some take part."""

    is_member: Bool[np.ndarray, "users"]

    def permits(
        self,
        clients: Int64[np.ndarray, "clients"],
        *,
        round: int,
        multipliers: Float[np.ndarray, "clients"] | None = None,
    ) -> Bool[np.ndarray, "clients"]:
        """Lets members take part, in every round, and nobody else."""
        return self.is_member[clients]


@dataclass(frozen=True)
class _Measure:
    """A figure computed from scores, and its value for an attacker who guesses."""

    of: Callable[[Scores, Members], float]
    chance: float

    def score(self, scores: Scores, is_member: Members, key: Key) -> Score:
        """The figure over all users, with a bootstrap error over federations."""
        n = len(scores)
        # Whole federations are drawn: users of one model are not independent.
        again = key.generator().integers(0, n, (_RESAMPLES, n))
        found = [self._of_all(scores[rows], is_member[rows]) for rows in again]
        se = float(np.std(found, ddof=1))
        return Score(self._of_all(scores, is_member), se, self.chance)

    def _of_all(self, scores: Scores, is_member: Members) -> float:
        return self.of(scores.ravel(), is_member.ravel())


_MEASURES = {
    AUC: _Measure(auc, 0.5),
    CAUGHT: _Measure(caught, FALSE_ALARMS),
    CAUGHT_MORE: _Measure(partial(caught, false_alarms=MORE_ALARMS), MORE_ALARMS),
}


def _most(cell: Cell) -> dict[str, float]:
    """The ceilings that hold for every attack; empty if nothing is promised."""
    if not cell.has_epsilon:
        return {}
    bound = TradeOff.of(cell)
    return {
        AUC: bound.auc,
        CAUGHT: bound.found(FALSE_ALARMS),
        CAUGHT_MORE: bound.found(MORE_ALARMS),
    }
