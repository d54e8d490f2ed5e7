"""Who is compared in the study of PrivateRec, as cells of experiment files.

private       Algorithm 3 to the letter at a claimed epsilon, or without noise
rival         DP-FedRec as printed at a claimed epsilon; FedRec without noise
proven*       sound PrivateRec and DP-FedRec, at a target for the whole run
*_untrained   the same before its first round
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from tacit.reproduction.cells import Cell

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
PAPER = EXPERIMENTS / "privaterec" / "mind.toml"
INTERESTS, PADDING = 3, 0.2  # the best of its Figures 7 and 5
UNTRAINED = ("method.rate=0.0", "run.rounds=1", "evaluate.every=1")
ALONE = ("evaluate.baselines=[]", "evaluate.untrained=false")
CENTRAL = {"plm-nr": "plm_nr", "naml": "naml", "nrms": "nrms"}


@dataclass(frozen=True)
class Bench:
    """The data, and how much of the study is run on them."""

    name: str
    epsilons: tuple[float, ...]
    interests: tuple[int, ...]
    paddings: tuple[tuple[int, float], ...]  # B and p
    models: tuple[str, ...] = ("plm-nr",)
    seeds: int = 1
    has_vectors: bool = True  # of sentences, which centralized PLM-NR needs
    data: tuple[str, ...] = ()  # changes of the data in every file
    shorter: tuple[str, ...] = ()  # changes of Algorithm 3's runs

    def private(
        self,
        epsilon: float,
        *,
        model: str = "plm-nr",
        interests: int = INTERESTS,
        padding: float = PADDING,
    ) -> Cell:
        """Algorithm 3; at an infinite epsilon without noise and padding."""
        noise = (
            "privacy.mechanism=published",
            f"privacy.epsilon={epsilon}",
            f"privacy.padding={padding}",
        )
        own = () if math.isinf(epsilon) else noise
        return self._paper(model).but(f"method.interests={interests}", *own)

    def private_untrained(
        self, *, model: str = "plm-nr", interests: int = INTERESTS
    ) -> Cell:
        """PrivateRec before its first round: a random basis."""
        return self.private(math.inf, model=model, interests=interests).but(*UNTRAINED)

    def rival(self, epsilon: float, *, model: str = "plm-nr") -> Cell:
        """DP-FedRec; at an infinite epsilon FedRec, which has no basis either."""
        if math.isinf(epsilon):
            return self._paper(model).but("method.mode=sound")
        noise = "privacy.mechanism=published_gradient", f"privacy.epsilon={epsilon}"
        return self._paper(model).but(*noise)

    def rival_untrained(self, *, model: str = "plm-nr") -> Cell:
        """FedRec before its first round."""
        return self.rival(math.inf, model=model).but(*UNTRAINED)

    def central(self, model: str) -> Cell | None:
        """The same model on everybody's impressions; None without sentence vectors."""
        if not self.has_vectors:
            return None
        # From the same start as the others, at their rate.
        plm_nr = "starts_at = 'random', dimensions = 64, scale = 5.0, rate = 0.001"
        settings = f"evaluate.baseline_settings={{plm_nr = {{{plm_nr}}}}}"
        return self._paper("plm-nr").but(settings).beside(CENTRAL[model])

    def content(self) -> Cell:
        """Content similarity, which nobody's data is needed for: an identity head."""
        start = "method.mode=sound", "method.starts_at=content"
        return self._paper("plm-nr").but(*start, *UNTRAINED)

    def proven_rival(self, epsilon: float) -> Cell:
        """DP-FedRec with noise that proves its epsilon; every client reports once."""
        return self._paper("plm-nr").but(
            "method.mode=sound",
            "privacy.mechanism=local",
            f"privacy.target_epsilon={epsilon}",
            "run.rounds=15",
            "evaluate.every=15",
            "run.sampler={name = 'once'}",
        )

    def proven(self, epsilon: float) -> Cell:
        """Sound PrivateRec: clipped gradients and clicks under noise on a sum."""
        return self._sound("mind-privaterec.toml", epsilon)

    def proven_clicks(self, epsilon: float) -> Cell:
        """Content and private click counts."""
        changes = "method.learns=clicks", "run.rounds=1", "evaluate.every=1"
        return self.proven(epsilon).but(*changes)

    def proven_local(self, epsilon: float) -> Cell:
        """Local reports of interests and clicks."""
        return self._sound("mind-privaterec-local.toml", epsilon)

    def proven_untrained(self) -> Cell:
        """Where `proven` and `proven_clicks` begin: content by few axes."""
        return self.proven(self.epsilons[0]).but(*UNTRAINED)

    def proven_local_untrained(self) -> Cell:
        """Where `proven_local` begins."""
        return self.proven_local(self.epsilons[0]).but("method.passes=0")

    def _sound(self, file: str, epsilon: float) -> Cell:
        target = f"privacy.target_epsilon={epsilon}"
        return Cell(EXPERIMENTS / file, (*self.data, *ALONE, target), self.seeds)

    def _paper(self, model: str) -> Cell:
        own = () if model == "plm-nr" else ("method.dtype=float32",)
        changes = (*self.data, *ALONE, *self.shorter, f"method.model={model}", *own)
        return Cell(PAPER, changes, self.seeds)
