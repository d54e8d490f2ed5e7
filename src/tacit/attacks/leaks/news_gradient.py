"""What was read, from the gradient that a client of PrivateRec sends.

    x_n   public text vector of a news             L    how many news were read
    h     mean of x over what was read             v    gradient by the user vector
    t     what was read, 0 or 1 per news           q    the popularity of each news

The gradient by PLM-NR's head has h vᵀ among its outer products, and a report has the
factors: h stands there, whatever noise was added to the attention. Noise and a clip
change v alone. L h = Σ t_n x_n is a linear equation for t, and the server solves it:

    t̂ = q + C X (Xᵀ C X + σ² I)⁻¹ (L h - Xᵀ q),   C = diag(q (1 - q))

the best linear guess, which is the popularity where noise of variance σ² is loud. It
guesses the L news with the largest t̂, so precision and recall are one number. Where
noise is on the gradient or on a sum, the attacker knows all other outer products, v,
the clip's scale and everyone else's report. Random padding takes news out of h, but
draws anew each round: over several rounds the server adds up what it finds.

Attacks get histories, not catalogs: the vectors of the news, which are public, are
drawn from the seed, and so is the slate in which one item of each history was clicked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64

from tacit import check
from tacit.attacks.leaks import Attempt, Histories
from tacit.attacks.leaks.finding import Score, stated
from tacit.data.catalog import Catalog
from tacit.data.features import Vectors
from tacit.data.federated_data import FederatedData
from tacit.data.impressions import Impressions
from tacit.data.ragged import Ragged
from tacit.keys import Key
from tacit.method import CentralGaussian
from tacit.methods.privaterec import PrivateRec
from tacit.models.news_encoders.plm_nr import HEAD
from tacit.plans import Plan
from tacit.privacy import PublishedAttentionNoise, PublishedGradientNoise
from tacit.release import View
from tacit.results import standard_error
from tacit.runtime.simulate import Simulation
from tacit.transport.channels import Each, RoundContext, Sum, channel
from tacit.transport.messages import Reports
from tacit.tree import Factored, Tree

# All that was read, one slate, a random head: what is attacked is one outer product.
_SOUND = PrivateRec(
    model="plm-nr",
    dimensions=None,
    starts_at="random",
    most_impressions=1,
    most_read=1000,
)
_PAPER = replace(_SOUND, mode="paper")

FOUND = "share of the history found"  # a score's name, as reports print it
_SHOWN = 9  # news beside the click in a slate
_H = 1  # the place of h among the factors

Matrix = Float64[np.ndarray, "users items"]
Column = Float64[np.ndarray, "users one"]


@dataclass(frozen=True)
class NewsGradient:
    """Guess what was read from what a client of PrivateRec sends in one round."""

    claimed: tuple[float, ...] = (10.0, 1.0)  # by the paper
    epsilons: tuple[float, ...] = (8.0, 1.0)  # proven
    delta: float = 1e-6
    rounds: int = 5  # in which the padding is drawn anew
    width: int = 384  # of a text vector
    name: str = "news_gradient"
    method: str | None = "privaterec"
    question: str = (
        "The server gets what PrivateRec's clients send. Which news did a user read?"
    )

    def __post_init__(self) -> None:
        check.count(rounds=self.rounds, width=self.width)
        for epsilon in (*self.claimed, *self.epsilons):
            check.positive(epsilon=epsilon)

    def attack(self, histories: Histories, key: Key) -> tuple[Attempt, ...]:
        """The paper's reports and bare ones, then those with a guarantee."""
        world = News.of(histories, key.at("world"), width=self.width)
        return tuple(
            attack_reports(subject, world, key.at(number))
            for number, subject in enumerate(self._subjects(len(histories)))
        )

    def _subjects(self, n_users: int) -> tuple[Subject, ...]:
        plan = Plan(n_users, delta=self.delta)
        noisy = [
            Subject(
                f"as published, claimed epsilon {claimed:g}",
                replace(_PAPER, privacy=PublishedAttentionNoise(epsilon=claimed)),
                plan,
            )
            for claimed in self.claimed
        ]
        often = replace(
            noisy[-1],
            label=f"{noisy[-1].label}, {self.rounds} rounds",
            times=self.rounds,
        )
        printed = PublishedGradientNoise(epsilon=self.claimed[-1])
        return (
            Subject("none, over direct", _PAPER, plan),
            *noisy,
            often,
            self._central(n_users, self.epsilons[0], "direct"),
            *(self._central(n_users, e, "secure_sum") for e in self.epsilons),
            Subject(
                f"DP-FedRec as published, claimed epsilon {self.claimed[-1]:g}",
                replace(_PAPER, privacy=printed),
                plan,
            ),
        )

    def _central(self, n_users: int, epsilon: float, channel: str) -> Subject:
        plan = Plan(n_users, channel=channel, delta=self.delta, target_epsilon=epsilon)
        method = replace(_SOUND, privacy=CentralGaussian())
        label = f"sound, epsilon {epsilon:g}, over {channel}"
        return Subject(label, method.calibrated(plan), plan)


@dataclass(frozen=True)
class Subject:
    """A method as it runs; its reports are looked at in so many rounds."""

    label: str
    method: PrivateRec
    plan: Plan
    times: int = 1


@dataclass(frozen=True, eq=False)
class News:
    """Users who have read some news and were shown a slate."""

    data: FederatedData
    read: Histories

    @classmethod
    def of(cls, histories: Histories, key: Key, *, width: int) -> News:
        """Everyone clicked one news of their history, and had read the others."""
        draw = key.generator()
        n_users, n_items = histories.shape
        vectors = draw.standard_normal((n_items, width)).astype(np.float32)
        clicked = np.array([draw.choice(np.flatnonzero(row)) for row in histories])
        read = histories.copy()
        read[np.arange(n_users), clicked] = 0
        # Random numbers of what was not taken, sorted: a sample without replacement.
        rank = np.where(histories == 1, 2.0, draw.random(histories.shape))
        others = np.argsort(rank, axis=1)[:, :_SHOWN]
        shown = np.concatenate([clicked[:, None], others], axis=1)
        impressions = Impressions.of_columns(
            np.arange(n_users),
            Ragged.of_lengths([1 + _SHOWN] * n_users, shown.ravel().astype(np.int32)),
            clicked=np.tile(np.arange(1 + _SHOWN) == 0, n_users),
            histories=FederatedData.of_matrix(read).shards.histories,
            history_of=np.arange(n_users),
            n_users=n_users,
            n_items=n_items,
        )
        data = FederatedData.of_matrix(histories)
        catalog = Catalog(
            data.catalog.ids, data.catalog.titles, {"title_vector": Vectors(vectors)}
        )
        shards = replace(data.shards, impressions=impressions)
        return cls(replace(data, catalog=catalog, shards=shards), read)


def attack_reports(subject: Subject, world: News, key: Key) -> Attempt:
    """Guess what everyone read from what the server sees."""
    rounds = [_Round.of(subject, world, key.at(i)) for i in range(subject.times)]
    read = world.read
    lengths = read.sum(axis=1, keepdims=True).astype(np.float64)
    known = np.mean([lengths * one.means for one in rounds], axis=0)
    variance = np.mean([lengths**2 * one.variances for one in rounds], axis=0)
    guess = _solved(known, variance / len(rounds), rounds[0].vectors, read)
    each, chance = (
        _found(guess, read),
        _found(_shares(read) * np.ones(read.shape), read),
    )
    score = Score(float(each.mean()), standard_error(each), float(chance.mean()))
    [release] = subject.method.releases(subject.plan)
    said = stated(
        subject.plan,
        release.cells,
        what=release.what,
        seen_by=release.seen_by,
        view=View.SERVER,
    )
    return Attempt(subject.label, said, {FOUND: score})


@dataclass(frozen=True, eq=False)
class _Round:
    """What the server knows of h after one round, and how well."""

    means: Float64[np.ndarray, "users axes"]
    variances: Column
    vectors: Float64[np.ndarray, "items axes"]

    @classmethod
    def of(cls, subject: Subject, world: News, key: Key) -> _Round:
        method, data = subject.method, world.data
        run = Simulation(
            method, subject.plan, data.catalog, data.profiles, data.shards, key
        )
        state = run.start()
        broadcast, clients = method.broadcast(state.server), state.clients
        own = run.population.keys.at("round", 0)
        _, updates = method.local_update(
            broadcast, clients, data.shards, own.at("local_update")
        )
        reports = method.privatize(broadcast, clients, updates, own.at("privatize"))
        context = method.context(state.server, broadcast, key.at("channel"))
        vectors = broadcast.weights["input.vectors"].astype(np.float64)
        raw, sent = updates.tree.leaves[HEAD], reports.tree.leaves[HEAD]
        is_alone = channel(subject.plan.channel).delivers is Each
        if is_alone and isinstance(sent, Factored) and isinstance(raw, Factored):
            means = sent.left[:, _H] * _rescaled(sent, raw)
            return cls(means, np.zeros((len(means), 1)), vectors)
        means, variances = _subtracted(subject, updates.tree, reports, context)
        return cls(means, variances, vectors)


def _rescaled(sent: Factored, raw: Factored) -> Column:
    """What a clip took from the factor of h, where it scales that side."""
    kept = np.linalg.norm(sent.left[:, _H], axis=1, keepdims=True)
    whole = np.linalg.norm(raw.left[:, _H], axis=1, keepdims=True)
    return whole / np.where(kept > 0, kept, 1.0)


def _subtracted(
    subject: Subject, updates: Tree, reports: Reports, context: RoundContext
) -> tuple[Float64[np.ndarray, "users axes"], Column]:
    """The mean h as the noise leaves it, with everything else subtracted."""
    raw = updates.leaves[HEAD]
    assert isinstance(raw, Factored)
    kept = _kept(subject, updates)
    v = raw.right[:, _H].astype(np.float64)
    power = np.maximum((v * v).sum(axis=1, keepdims=True), np.finfo(float).tiny)
    [phase] = subject.method.phases(subject.plan)
    noise = subject.method.privacy.variance(phase, users=1.0, size=1)
    means = []
    for i in range(len(reports.tree)):
        seen = _seen(subject, reports, i, context) / kept[i]
        other = np.delete(raw.left[i], _H, 0).T @ np.delete(raw.right[i], _H, 0)
        means.append((seen - other) @ v[i] / power[i])
    return np.stack(means), noise / kept**2 / power


def _kept(subject: Subject, updates: Tree) -> Column:
    """The scale that a clip leaves of each report."""
    privacy, [phase] = subject.method.privacy, subject.method.phases(subject.plan)
    bound = phase.bound  # of mode sound, where no other clip is set
    if isinstance(privacy, PublishedGradientNoise):
        bound = privacy.theta
    norms = np.maximum(updates.norms(), np.finfo(float).tiny)
    return np.minimum(1.0, bound / norms)[:, None]


def _seen(
    subject: Subject, reports: Reports, row: int, context: RoundContext
) -> Float64[np.ndarray, "axes width"]:
    """The gradient of one client, or a sum from which all others are subtracted."""
    alone = Reports(reports.tree.select([row]))
    own = replace(context, key=context.key.at(row))
    delivery = channel(subject.plan.channel).carry([alone], own)
    if isinstance(delivery, Sum):
        return delivery.total[HEAD]
    return alone.tree.leaves[HEAD].dense().values[0]


def _solved(
    known: Float64[np.ndarray, "users axes"],
    variance: Column,
    vectors: Float64[np.ndarray, "items axes"],
    read: Histories,
) -> Matrix:
    """The best linear guess t̂ of what each user read."""
    shares = _shares(read)
    spread = shares * (1 - shares)
    values, axes = np.linalg.eigh(vectors.T @ (spread[:, None] * vectors))
    rest = (known - shares @ vectors) @ axes
    # A floor keeps directions that no news has from being divided by nothing.
    floor = 1e-9 * values.max()
    solved = rest / (np.maximum(values, 0.0) + np.maximum(variance, floor))
    return shares + spread * (solved @ axes.T @ vectors.T)


def _shares(read: Histories) -> Float64[np.ndarray, "items"]:
    """The popularity of each news; never 0 or 1."""
    return (read.sum(axis=0) + 1.0) / (len(read) + 2.0)


def _found(guess: Matrix, read: Histories) -> Float64[np.ndarray, "users"]:
    """The share of each history among as many of the likeliest news."""
    order = np.argsort(-guess, axis=1, kind="stable")
    lengths = read.sum(axis=1)
    is_guessed = np.arange(order.shape[1]) < lengths[:, None]
    hits = np.take_along_axis(read, order, axis=1) * is_guessed
    return hits.sum(axis=1) / np.maximum(lengths, 1)
