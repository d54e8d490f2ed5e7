"""Invented people who come back: a taste that moves, sessions that stay with a topic.

Each visit begins days after the one before. A user's taste for topics is a vector of
logits; from one visit to the next it becomes memory × taste + √(1 - memory²) × a fresh
one, so that memory 1 is a taste that never moves. Within a visit the next item is of
the topic of the last one with probability `stay`, and else of one drawn by taste; of a
topic items are drawn by popularity, and none is taken twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

_DAY = 86_400  # seconds


@dataclass(frozen=True)
class VisitWorld:
    """How many people, and what is true of them."""

    memory: float  # of a taste, from visit to visit
    stay: float  # with the topic of the last item
    users: int = 800
    items: int = 200
    topics: int = 10
    visits: float = 4.0  # the mean; at least two
    per_visit: float = 8.0  # items, the mean
    days: float = 30.0  # between visits, the mean; at least two
    seed: int = 0

    @property
    def item_topics(self) -> np.ndarray:
        """The topic of each item: as many of each."""
        order = np.random.default_rng([self.seed, 1])
        return order.permutation(np.arange(self.items) % self.topics)

    def write(self, path: Path) -> None:
        """All events as a table with the columns user, item and time."""
        rng, topic = np.random.default_rng(self.seed), self.item_topics
        shares = 1 / (1 + rng.permutation(self.items)) ** 0.7
        lines = ["user,item,time"]
        for user in range(self.users):
            for item, time in self._history(rng, topic, shares):
                lines.append(f"u{user},i{item},{time}")
        path.write_text("\n".join(lines) + "\n")

    def _history(
        self, rng: np.random.Generator, topic: np.ndarray, shares: np.ndarray
    ) -> list[tuple[int, int]]:
        left, taste = shares.copy(), 1.5 * rng.normal(size=self.topics)
        now, events = 1_000_000_000, []
        for _ in range(2 + rng.poisson(self.visits - 2)):
            now += int(_DAY * (2 + rng.exponential(self.days - 2)))
            last = -1
            for place in range(2 + rng.poisson(self.per_visit - 2)):
                stays = last >= 0 and rng.random() < self.stay
                chances = np.exp(taste) / np.exp(taste).sum()
                chosen = last if stays else int(rng.choice(self.topics, p=chances))
                weights = left * (topic == chosen)
                if not weights.any():
                    continue
                item = int(rng.choice(self.items, p=weights / weights.sum()))
                left[item], last = 0.0, chosen
                events.append((item, now + 60 * place))
            fresh = 1.5 * rng.normal(size=self.topics)
            taste = self.memory * taste + np.sqrt(1 - self.memory**2) * fresh
        return events


WORLDS = {
    **{f"memory-{one:g}": VisitWorld(one, 0.0) for one in (0.0, 0.3, 0.6, 0.8, 1.0)},
    "topics": VisitWorld(memory=1.0, stay=0.7),
}
