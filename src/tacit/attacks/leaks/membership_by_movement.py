"""The attack on PrivRec that `tacit audit privrec --leaks` runs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tacit import check
from tacit.attacks.leaks import Attempt, Histories
from tacit.attacks.leaks.model_movement import Federations, Subject, attack_movement
from tacit.data.features import Category, Features
from tacit.data.strings import Strings
from tacit.keys import Key
from tacit.method import CentralGaussian
from tacit.methods.privrec import PrivRec
from tacit.plans import Plan
from tacit.privacy import PublishedClippedSum
from tacit.sampling import FixedSize, Poisson

# A history is about one mini-batch. Sigmoid units saturate where ReLU would overflow.
_BARE = PrivRec(
    embedding=16,
    widths=(8,),
    activation="sigmoid",
    local_epochs=3,
    batch=256,
    rate=2.0,
)
_MOVING = CentralGaussian(clip=2.0, clip_quantile=0.5)  # most norms are above
_SOUND = replace(_BARE, privacy=_MOVING)
_PRINTED = PublishedClippedSum(clip=2.0, quantile=0.9)  # z = 1 and h = .7
_PAPER = replace(_BARE, mode="paper", privacy=_PRINTED)
_FEATURES, _LABELS = 3, 64  # invented; they tell nearly all items apart


@dataclass(frozen=True)
class MembershipByMovement:
    """Guess who took part in PrivRec's training from the models of all its rounds.

    Federations are small, since few users hide each other least.
    """

    epsilons: tuple[float, ...] = (8.0, 1.0)
    delta: float = 1e-6
    federations: int = 16  # or as many as there are users for
    n_users: int = 20  # in each federation; half of them are asked in a round
    rounds: int = 8
    name: str = "membership_by_movement"
    method: str | None = "privrec"

    def __post_init__(self) -> None:
        check.at_least(2, federations=self.federations)
        check.at_least(10, n_users=self.n_users, remedy="some must be in, some out")
        check.count(rounds=self.rounds)
        for epsilon in self.epsilons:
            check.positive(epsilon=epsilon)

    @property
    def question(self) -> str:
        """The attacker's question, with the number and size of the federations."""
        return (
            "A participant sees PrivRec's model in every round and holds somebody's "
            "history. Did that user take part? At most "
            f"{self.federations} federations of {self.n_users} users."
        )

    def attack(self, histories: Histories, key: Key) -> tuple[Attempt, ...]:
        """Bare updates, the published noise, then sound noise at each epsilon."""
        federations = self.dealt(histories)
        return tuple(
            attack_movement(subject, federations, key.at("play"))
            for subject in self.subjects(histories.shape[1], key.at("catalog"))
        )

    def dealt(self, histories: Histories) -> Federations:
        """Histories dealt out to federations: (federations, users, items)."""
        check.at_least(
            2 * self.n_users, n_users=len(histories), remedy="two federations"
        )
        n = min(self.federations, len(histories) // self.n_users)
        return histories[: n * self.n_users].reshape(n, self.n_users, -1)

    def subjects(self, items: int, key: Key) -> tuple[Subject, ...]:
        """Every variant that is attacked, over `items` items with invented features."""
        features, paper = _invented(items, key), self._published_plan()
        return (
            Subject("none: updates as they are", _BARE, self._plan(), features),
            Subject(
                "DP-PrivRec as published", _PAPER.calibrated(paper), paper, features
            ),
            *(self._sound(epsilon, features) for epsilon in self.epsilons),
        )

    def _sound(self, epsilon: float, features: Features) -> Subject:
        plan = replace(
            self._plan(),
            channel="secure_sum",
            delta=self.delta,
            target_epsilon=epsilon,
        )
        label = f"clip and noise over secure_sum, epsilon {epsilon:g}"
        return Subject(label, _SOUND.calibrated(plan), plan, features)

    def _plan(self) -> Plan:
        return Plan(self.n_users, rounds=self.rounds, sampler=Poisson(0.5))

    def _published_plan(self) -> Plan:
        cohort = FixedSize(self.n_users // 2)
        return replace(self._plan(), sampler=cohort, delta=self.delta)


def _invented(items: int, key: Key) -> dict[str, Category]:
    """Random categories for every item, which PrivRec takes as public features."""
    labels = Strings.of([str(label) for label in range(_LABELS)])
    drawn = key.generator().integers(0, _LABELS, (_FEATURES, items), np.int32)
    return {
        f"feature {number}": Category(codes, labels)
        for number, codes in enumerate(drawn)
    }
