"""PrivateRec's figures 4 and 5: serving by epsilon and by padding, paper and sound.

    TACIT_DATA=… python -m benchmarks.privaterec_figures --out figures
    python -m benchmarks.privaterec_figures --set smoke --draws 1

Figure 4 is the AUC by the epsilon of one query, of noisy attention (B = 5, p = .5) and
of the noisy user vector. Figure 5 is that of noisy attention by the padding p, at B = 3
and 5 and one epsilon for one interaction.

    paper   the noise that the paper prints for a claimed epsilon, and beside it the
            epsilon that is proven for it: for a user, and for one interaction
    sound   the noise that is needed for the same epsilon for one interaction

Both read by SoftPlus, as the paper does; `regression` is the sound noise read by the
best linear estimate. The paper trains its basis and pads with a learnt vector; here
interests are those of invented users and padding is a random item. So levels differ and
trends are compared, each printed as a claim that holds or does not, two standard errors
over impressions allowed.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.plots import lines
from benchmarks.served_sets import SETS, Part, ServedSet, Values, Vectors, served_set
from tacit.keys import Key
from tacit.mechanisms.padding import Padding
from tacit.mechanisms.private_vector import PrivateVector, cut
from tacit.mechanisms.published import PublishedAttention
from tacit.serving.interests import Interests, find_interests
from tacit.serving.noisy_attention import NoisyAttention, attention_of
from tacit.serving.queryable import vectors_of
from tacit.serving.serve import padded

EPSILONS = (1.0, 5.0, 10.0, 20.0)
PADDINGS = (0.0, 0.2, 0.5, 0.8)
SIZES = (3, 5)
AT = 10.0  # epsilon of figure 5, for one interaction
THETA = 0.1

Serve = Callable[[Vectors, Key], Vectors]


@dataclass(frozen=True)
class Point:
    """One value of a figure, with what is proven for it."""

    figure: int
    how: str
    interests: int
    padding: float
    stated: float  # claimed in paper mode, else proven for one interaction
    user: float  # proven, for a user
    item: float  # proven, for one interaction
    mean: float
    error: float


class Figures:
    """Both figures on one set."""

    def __init__(self, served: ServedSet, draws: int) -> None:
        self.set, self.draws = served, draws
        self._interests: dict[int, Interests] = {}

    def fourth(self) -> Iterator[Point]:
        """By epsilon."""
        for stated in EPSILONS:
            for how in ("paper", "sound", "regression"):
                yield self.attention(4, how, stated, interests=5, padding=0.5)
            for how in ("paper", "sound"):
                yield self.vector(how, stated)

    def fifth(self) -> Iterator[Point]:
        """By padding."""
        for size in SIZES:
            for padding in PADDINGS:
                for how in ("paper", "sound", "regression"):
                    yield self.attention(5, how, AT, interests=size, padding=padding)

    def attention(
        self, figure: int, how: str, stated: float, *, interests: int, padding: float
    ) -> Point:
        """Noisy attention; the name says whose noise, and how it is read."""
        found = self.interests(interests)
        pads = Padding(padding) if padding else None
        inner = stated if pads is None else pads.inner_epsilon(stated)
        sound = NoisyAttention.fitted(inner, found, self.set.invented)
        user = inner
        if how == "paper":
            published = PublishedAttention(
                stated, interests, theta=THETA, delta=0.0, padding=padding
            )
            user = published.event.epsilon

        def serve(users: Vectors, key: Key) -> Vectors:
            keys = key.each(np.arange(len(users)))
            if how != "paper":
                said = sound.release(users, keys)
                means = sound if how == "regression" else _softplus(sound)
                return means.decode(said)
            heat = sound.temperature
            own = attention_of(found, users, temperature=heat)
            return published.privatize(own, keys) @ found.means

        item = user if pads is None else pads.item_epsilon(user)
        mean, error = self._served(serve, pads)
        name = f"dpa, {how}"
        return Point(figure, name, interests, padding, stated, user, item, mean, error)

    def vector(self, how: str, stated: float) -> Point:
        """The noisy user vector; the paper's noise ignores how many numbers it has."""
        d = self.set.invented.shape[1]
        theta = float(np.median(np.linalg.norm(self.set.invented, axis=1)))
        sound = PrivateVector(stated, d, theta=theta)
        user = stated * math.sqrt(d) if how == "paper" else stated

        def serve(users: Vectors, key: Key) -> Vectors:
            keys = key.each(np.arange(len(users)))
            if how == "sound":
                return sound.noisy(users, keys)
            noise = PrivateVector(user, d, theta=theta)  # Lap(2 theta / stated)
            return noise.noisy(cut(users, theta=theta), keys)

        mean, error = self._served(serve, None)
        return Point(4, f"vdp, {how}", 0, 0.0, stated, user, user, mean, error)

    def interests(self, count: int) -> Interests:
        """So many interests of the invented users."""
        if count not in self._interests:
            key, users = Key.from_seed(24).at("interests"), self.set.invented
            found = find_interests(self.set.space, users, count=count, key=key)
            self._interests[count] = found
        return self._interests[count]

    def _served(self, serve: Serve, pads: Padding | None) -> tuple[float, float]:
        part, found = self.set.parts["test"], list[Values]()
        for draw in range(self.draws):
            key = Key.from_seed(2000 + draw)
            users = self._users(part, pads, key.at("pads"))
            found.append(part.values(serve(users, key.at("noise"))))
        values = np.mean(found, axis=0)
        return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))

    def _users(self, part: Part, pads: Padding | None, key: Key) -> Vectors:
        if pads is None:
            return part.users
        liked = self.set.recommender.method.liked
        histories = padded(part.histories, pads, key, value=liked)
        return vectors_of(self.set.recommender, histories)


def _softplus(mechanism: NoisyAttention) -> NoisyAttention:
    return NoisyAttention(
        mechanism.attention,
        mechanism.interests,
        mechanism.temperature,
        mechanism.decoder,
        "softplus",
    )


def claims(points: list[Point]) -> Iterator[tuple[str, bool]]:
    """What the paper says of its figures, and whether it holds here."""
    for mode in ("paper", "sound"):
        by = {
            kind: [p for p in points if p.figure == 4 and p.how == f"{kind}, {mode}"]
            for kind in ("dpa", "vdp")
        }
        pairs = zip(by["dpa"], by["vdp"], strict=True)
        above = all(a.mean > b.mean - 2 * (a.error + b.error) for a, b in pairs)
        yield (
            f"figure 4, {mode}: attention is not below the vector at any epsilon",
            above,
        )
        for kind, found in by.items():
            first, last = found[0], found[-1]
            rises = last.mean > first.mean - 2 * (last.error + first.error)
            yield f"figure 4, {mode}: {kind} does not fall with epsilon", rises
        for size in SIZES:
            found = [
                p
                for p in points
                if (p.figure, p.how, p.interests) == (5, f"dpa, {mode}", size)
            ]
            best = max(found, key=lambda p: p.mean)
            inside = best.padding not in (found[0].padding, found[-1].padding)
            clear = best.mean - found[0].mean > 2 * (best.error + found[0].error)
            yield (
                f"figure 5, {mode}, B = {size}: some padding is better than none "
                f"(best p = {best.padding:g})",
                inside and clear,
            )


def main() -> None:
    """Print every point and claim; write them and the plots to a folder."""
    asked = _options()
    figures = Figures(served_set(asked.set), asked.draws)
    points = [*figures.fourth(), *figures.fifth()]
    print("| figure | how | B | p | stated | user | interaction | value |")
    print("|" + "---|" * 8)
    for p in points:
        print(
            f"| {p.figure} | {p.how} | {p.interests or ''} | {p.padding:g} | "
            f"{p.stated:g} | {p.user:.4g} | {p.item:.4g} | {p.mean:.4f} ± "
            f"{p.error:.4f} |"
        )
    found = [*claims(points)]
    for name, holds in found:
        print(f"{'holds' if holds else 'does not hold'}: {name}")
    if asked.out is not None:
        _write(asked.out, figures.set.metric, points, found)


def _write(
    folder: Path, metric: str, points: list[Point], found: list[tuple[str, bool]]
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    told = {"points": [asdict(p) for p in points], "claims": dict(found)}
    (folder / "privaterec-figures.json").write_text(json.dumps(told, indent=1))
    fourth: dict[str, list[tuple[float, float, float]]] = {}
    fifth: dict[str, list[tuple[float, float, float]]] = {}
    for p in points:
        if p.figure == 4:
            fourth.setdefault(p.how, []).append((p.stated, p.mean, p.error))
        else:
            name = f"{p.how}, B = {p.interests}"
            fifth.setdefault(name, []).append((p.padding, p.mean, p.error))
    by_epsilon = lines("figure 4", fourth, x="epsilon, as stated", y=metric)
    by_padding = lines("figure 5", fifth, x="padding", y=metric)
    (folder / "figure-4.svg").write_text(by_epsilon)
    (folder / "figure-5.svg").write_text(by_padding)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.privaterec_figures")
    parser.add_argument("--set", choices=[*SETS], default="mind")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
