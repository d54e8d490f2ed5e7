"""The attack on FedVAE that `tacit audit fedvae --leaks` runs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tacit import check
from tacit.attacks.leaks import Attempt, Histories
from tacit.attacks.leaks.output_bias import Subject, attack_output
from tacit.keys import Key
from tacit.method import CentralGaussian
from tacit.methods.fedvae import FedVae
from tacit.plans import Plan

# Small, so that fifty rounds take seconds; the leak does not depend on the widths.
_BARE = FedVae(hidden=(32,), latent=16, rate=0.01)
_NOISY = replace(_BARE, privacy=CentralGaussian())
_OUTPUT = "decoder/1"  # its last layer


@dataclass(frozen=True)
class DecoderBias:
    """Guess a history from what a FedVAE client sends in one round."""

    epsilons: tuple[float, ...] = (8.0, 1.0)  # a weak guarantee and a strong one
    delta: float = 1e-6
    later: int = 50  # a round of a model that has learnt something
    name: str = "decoder_bias"
    method: str | None = "fedvae"
    question: str = (
        "The server gets what FedVAE's clients send. Which items are in a history?"
    )

    def __post_init__(self) -> None:
        check.count(later=self.later)
        for epsilon in self.epsilons:
            check.positive(epsilon=epsilon)

    def attack(self, histories: Histories, key: Key) -> tuple[Attempt, ...]:
        """Bare and clipped reports, then the noisy sum at each epsilon."""
        return tuple(
            attack_output(subject, histories, key.at(number))
            for number, subject in enumerate(self._subjects(len(histories)))
        )

    def _subjects(self, n_users: int) -> tuple[Subject, ...]:
        often = Plan(n_users, rounds=self.later + 1)
        later = f"none, over direct, after {self.later} rounds"
        return (
            Subject("none, over direct, first round", _BARE, often, _OUTPUT),
            Subject(later, _BARE, often, _OUTPUT, round=self.later),
            self._noisy(n_users, self.epsilons[0], channel="direct"),
            *(self._noisy(n_users, e, channel="secure_sum") for e in self.epsilons),
        )

    def _noisy(self, n_users: int, epsilon: float, *, channel: str) -> Subject:
        plan = Plan(n_users, channel=channel, delta=self.delta, target_epsilon=epsilon)
        label = f"clip and noise of epsilon {epsilon:g}, over {channel}"
        return Subject(label, _NOISY.calibrated(plan), plan, _OUTPUT)
