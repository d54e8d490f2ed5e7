"""History from the output layer of what a client of a softmax model really sends.

    t    a history of n items, 0 or 1 per item    p    the model's guess; it adds to 1
    b    the gradient at the scores of a multinomial loss: b = n p - t
    h    the output layer's input, a last 1 for the bias; p = softmax(h W)

The layer's gradient is the outer product h b, and a report has the two factors. By
sign: b is negative only where t = 1, and at all of these while n p < 1. In a trained
model n p passes 1 at popular items of long histories, and signs miss those. Knowing the
model: h gives p, the largest b / p is n, and n p - b is t. A clip scales b; neither
minds.

Over `secure_sum` the server has a noisy sum. The attacker then knows everyone else's
report and of this user n, p, h and how much was clipped; it ranks items by

    log(q / (1 - q)) + log(Pr[column | t_i = 1] / Pr[column | t_i = 0])

with q the item's popularity, and guesses n of them: precision and recall are one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Float64, Int64

from tacit.attacks.leaks import Histories
from tacit.attacks.leaks.finding import Attempt, Score, stated
from tacit.data.federated_data import FederatedData
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.method import Method
from tacit.plans import Plan
from tacit.release import View
from tacit.results import standard_error
from tacit.runtime.simulate import Simulation
from tacit.statement import Statement
from tacit.transport.channels import Each, RoundContext, Sum, channel
from tacit.transport.messages import Broadcast, Reports
from tacit.tree import Factored, Tree

PRECISION, RECALL = "precision", "recall"  # by sign; of a sum, by odds
KNOWING = "recall, knowing the model"

Guess = Bool[np.ndarray, "users items"]
Matrix = Float64[np.ndarray, "users items"]


@dataclass(frozen=True)
class Subject:
    """A method as it runs, and the round that is attacked."""

    label: str
    method: Method
    plan: Plan
    leaf: str  # the gradient of the output layer, its bias in the last row
    round: int = 0  # those before it are played


def attack_output(subject: Subject, histories: Histories, key: Key) -> Attempt:
    """Guess everyone's history from what the server sees of one round."""
    target = _Target.of(subject, histories, key.at("devices"))
    if channel(subject.plan.channel).delivers is Each:
        by_sign, knowing = target.rows < 0, target.solved()
    else:
        by_sign = knowing = target.likeliest(target.evidence(key.at("channel")))
    chance = target.recall(target.likeliest(np.zeros(histories.shape)))
    found = {
        PRECISION: target.precision(by_sign),
        RECALL: target.recall(by_sign),
        KNOWING: target.recall(knowing),
    }
    scores = {name: _score(each, chance) for name, each in found.items()}
    return Attempt(subject.label, _said(subject), scores)


@dataclass(frozen=True, eq=False)
class _Target:
    """The users, and the round in which all of them are about to speak."""

    subject: Subject
    histories: Histories
    broadcast: Broadcast
    context: RoundContext
    updates: Tree  # what clients computed
    reports: Tree  # what they send

    @classmethod
    def of(cls, subject: Subject, histories: Histories, key: Key) -> _Target:
        method, data = subject.method, FederatedData.of_matrix(histories)
        run = Simulation(
            method, subject.plan, data.catalog, data.profiles, data.shards, key
        )
        state = run.start()
        while state.server.round < subject.round:
            state, _ = run.step(state)
        broadcast, clients = method.broadcast(state.server), state.clients
        own = run.population.keys.at("round", broadcast.round)
        _, updates = method.local_update(
            broadcast, clients, data.shards, own.at("local_update")
        )
        reports = method.privatize(broadcast, clients, updates, own.at("privatize"))
        context = method.context(state.server, broadcast, key.at("channel"))
        return cls(subject, histories, broadcast, context, updates.tree, reports.tree)

    @property
    def rows(self) -> Matrix:
        """The bias row of each report, which is b up to the clip's scale."""
        return _bias_rows(self._output(self.reports))

    def solved(self) -> Guess:
        """The history t solved from a report and the model that everyone has."""
        h = self._output(self.reports).left[:, 0].astype(np.float64)
        scores = (h / h[:, -1:]) @ self.broadcast.weights[self.subject.leaf]
        # A softmax; taking off the largest keeps the exponentials finite.
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        held = (self.rows / p).max(axis=1, keepdims=True) * p - self.rows
        # n p - b is t times the clip's scale: 0 or one number per row.
        return held > held.max(axis=1, keepdims=True) / 2

    def evidence(self, key: Key) -> Matrix:
        """What the noisy sum less everyone else tells of each item, as a log-ratio."""
        noise = self.context.mechanism
        if noise is None:
            raise BadValue(f"{self.subject.label}: a bare sum hides nobody; add noise")
        norms = np.maximum(self.updates.norms(), np.finfo(float).tiny)
        kept = (self.reports.norms() / norms)[:, None]  # what clipping left, (users, 1)
        raw = self._output(self.updates)
        middle = kept * (_bias_rows(raw) + self.histories - 0.5)
        h = raw.left[:, 0].astype(np.float64)
        squares = (h * h).sum(axis=1, keepdims=True)
        seen = np.stack([h[i] @ self._seen(i, key.at(i)) for i in range(len(h))])
        # What the noise's scale is, everyone knows; any kind of noise can be asked.
        drawn = noise.add(self.context.layout.zeros(), key.at("scale"))
        return kept * (squares * middle - seen) / drawn[self.subject.leaf].var()

    def likeliest(self, evidence: Matrix) -> Guess:
        """As many of the likeliest items as each history has."""
        n_users = len(self.histories)
        shares = (self.histories.sum(axis=0) + 1.0) / (n_users + 2.0)
        prior = np.log(shares) - np.log1p(-shares)
        order = np.argsort(-(prior + evidence), axis=1, kind="stable")
        lengths = self.histories.sum(axis=1, keepdims=True)
        guess = np.zeros(self.histories.shape, bool)
        np.put_along_axis(guess, order, np.arange(order.shape[1]) < lengths, axis=1)
        return guess

    def precision(self, guess: Guess) -> Float64[np.ndarray, "users"]:
        """The share of each guess that is true; 0 of a guess of nothing."""
        return self._hits(guess) / np.maximum(guess.sum(axis=1), 1)

    def recall(self, guess: Guess) -> Float64[np.ndarray, "users"]:
        """The share of each history that is guessed."""
        return self._hits(guess) / self.histories.sum(axis=1)

    def _hits(self, guess: Guess) -> Int64[np.ndarray, "users"]:
        return (guess & (self.histories == 1)).sum(axis=1)

    def _seen(self, row: int, key: Key) -> Float[np.ndarray, "inputs items"]:
        """The layer in a sum from which all others have been subtracted."""
        alone = Reports(self.reports.select([row]))
        context = replace(self.context, key=key)
        delivery = channel(self.subject.plan.channel).carry([alone], context)
        assert isinstance(delivery, Sum)
        return delivery.total[self.subject.leaf]

    def _output(self, tree: Tree) -> Factored:
        leaf = tree.leaves.get(self.subject.leaf)
        if not isinstance(leaf, Factored) or leaf.left.shape[1] != 1:
            raise BadValue(
                f"{self.subject.label}: leaf '{self.subject.leaf}' must be one outer "
                "product per client; use one local pass and no groups"
            )
        return leaf


def _bias_rows(leaf: Factored) -> Matrix:
    return (leaf.right[:, 0] * leaf.left[:, 0, -1:]).astype(np.float64)


def _said(subject: Subject) -> Statement:
    [release] = subject.method.releases(subject.plan)
    what, seen_by = release.what, release.seen_by
    return stated(
        subject.plan, release.cells, what=what, seen_by=seen_by, view=View.SERVER
    )


def _score(
    each: Float64[np.ndarray, "users"], chance: Float64[np.ndarray, "users"]
) -> Score:
    return Score(float(each.mean()), standard_error(each), float(chance.mean()))
