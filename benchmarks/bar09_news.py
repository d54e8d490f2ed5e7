"""Bar 9: clipped gradients of news models, against the loop and the unclipped batch.

A round of PLM-NR for 100 clients on fixed text vectors of 384 numbers: each client's
gradient of the loss of its slates by every weight, clipped to a norm, and the sum. The
loop does it in torch, one client after the other, inputs made ready beforehand: the
head on the client's own news, a backward pass, the norm, the clip and the sum. The
unclipped batch is one backward pass of torch over all clients, in which each news meets
the head once; what it computes cannot be clipped. All are in single precision on one
thread. In double precision the sums agree within 1e-9, which is checked before anything
is timed.

Two bars: 1.5 times the users per second of the loop, and 0.6 times those of the batch;
the ratio shown is over the bar. Word models are beside it, without a bar: clipped
gradients by `torch.func` against a backward pass for one client after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.bar import Bar, Case
from benchmarks.timing import fastest
from tacit.data.catalog import Catalog
from tacit.data.features import Category, Feature, Text
from tacit.data.strings import Strings
from tacit.keys import Key
from tacit.mechanisms.clipping import clip_by_norm
from tacit.models.news_encoders import Batch, Naml, Nrms, PlmNr
from tacit.models.news_encoders.plm_nr import VECTORS
from tacit.tree import Arrays

CLIENTS, NEWS, AXES, READ, SHOWN, CLIP = 100, 10_000, 384, 50, 5, 0.05
LOOP_BAR, BATCH_BAR = 1.5, 0.6
WORD_CLIENTS = 16  # of the models without a bar; a client of NAML takes some 20 ms


def measure(quick: bool) -> list[Case]:
    clients = CLIENTS // 5 if quick else CLIENTS
    with threadpool_limits(1), one_thread():
        Round(8, "float64").check_equal()
        round_ = Round(clients, "float32")
        runs = {"loop": round_.loop, "batch": round_.batch, "ours": round_.ours}
        best = fastest(runs, repeats=7)
        some = 4 if quick else WORD_CLIENTS
        words = "; ".join(word_ratio(model, some) for model in (Nrms(), Naml()))
    per_second = f"{clients / best['ours']:,.0f} users/s"
    name = f"{clients} clients × {READ} read × {AXES} axes"
    return [
        _case(f"{name}, over the loop", best, "loop", LOOP_BAR, per_second),
        _case(f"{name}, over the unclipped batch", best, "batch", BATCH_BAR, words),
    ]


def _case(name: str, best: dict[str, float], other: str, bar: float, note: str) -> Case:
    times = best[other] / best["ours"]
    return Case(
        f"{name} × {bar}", times / bar, best, f"{times:.2f}x, bar {bar}; {note}"
    )


class Round:
    """One round of PLM-NR, in three ways."""

    def __init__(self, clients: int, dtype: str) -> None:
        import torch

        draws = np.random.default_rng(0)
        vectors = draws.standard_normal((NEWS, AXES)).astype(np.float32)
        self.inputs = {VECTORS: vectors / math.sqrt(AXES)}
        self.model = PlmNr(scale=5.0)
        self.batch_of_clients = _batch(draws, clients, NEWS)
        start = self.model.start(Key.from_seed(0), self.inputs, dtype=dtype)
        moved = {n: 0.1 * draws.standard_normal(v.shape) for n, v in start.items()}
        self.weights = {n: (v + moved[n]).astype(dtype) for n, v in start.items()}
        self.theta = {n: torch.tensor(v) for n, v in self.weights.items()}
        texts = np.append(
            self.inputs[VECTORS].astype(dtype), np.zeros((1, AXES), dtype), 0
        )
        self.texts = torch.tensor(texts)
        self.own = [*self._ready()]

    def ours(self) -> Arrays:
        tree = self.model.gradients(self.weights, self.inputs, self.batch_of_clients)
        return clip_by_norm(tree, CLIP).sum()

    def loop(self) -> Arrays:
        """One client after the other."""
        import torch

        total = {name: torch.zeros_like(value) for name, value in self.theta.items()}
        for read, shown in self.own:
            slopes = self._slopes(partial(_loss, read=read[None], shown=shown[None]))
            square = sum((slope**2).sum() for slope in slopes.values())
            factor = torch.clamp(CLIP / torch.sqrt(square), max=1.0)
            for name, slope in slopes.items():
                total[name] += factor * slope
        return {name: value.numpy() for name, value in total.items()}

    def batch(self) -> Arrays:
        """The gradient of the sum, by one backward pass; nothing is clipped."""
        import torch

        batch = self.batch_of_clients
        both = np.concatenate([batch.histories, batch.candidates[:, 0]], axis=1)
        numbers, rows = np.unique(both, return_inverse=True)
        texts, places = self.texts[torch.tensor(numbers)], torch.tensor(rows)

        def loss(theta: dict[str, Any]) -> Any:
            news = texts @ theta["news.head"] + theta["news.bias"]
            own = news[places.reshape(both.shape)]
            return _cross_entropy(theta, own[:, :READ], own[:, READ:])

        return {name: slope.numpy() for name, slope in self._slopes(loss).items()}

    def _slopes(self, loss: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        import torch

        theta = {n: v.detach().requires_grad_() for n, v in self.theta.items()}
        slopes = torch.autograd.grad(
            loss(theta), [*theta.values()], materialize_grads=True
        )
        return dict(zip(theta, slopes, strict=True))

    def _ready(self) -> Iterator[tuple[Any, Any]]:
        """The text vectors of what each client has read and was shown."""
        import torch

        batch = self.batch_of_clients
        for read, shown in zip(batch.histories, batch.candidates[:, 0], strict=True):
            yield self.texts[torch.tensor(read)], self.texts[torch.tensor(shown)]

    def check_equal(self) -> None:
        """Refuse to time what does not give the same sums."""
        whole = self.model.total(self.weights, self.inputs, self.batch_of_clients)
        for mine, theirs in ((self.ours(), self.loop()), (whole, self.batch())):
            for name, value in mine.items():
                away = np.abs(value - theirs[name]).max()
                assert away <= 1e-9, f"{name} differs by {away}"


def _loss(theta: dict[str, Any], read: Any, shown: Any) -> Any:
    both = (texts @ theta["news.head"] + theta["news.bias"] for texts in (read, shown))
    return _cross_entropy(theta, *both)


def _cross_entropy(theta: dict[str, Any], read: Any, shown: Any) -> Any:
    """The summed loss; the click stands first."""
    import torch

    hidden = torch.tanh(read @ theta["user.attention"] + theta["user.offset"])
    shares = torch.softmax(hidden @ theta["user.query"], -1)
    users = (shares[:, None] @ read)[:, 0]
    scores = (shown @ users[:, :, None])[..., 0]
    return -torch.log_softmax(scores, -1)[:, 0].sum()


def word_ratio(model: Nrms | Naml, clients: int) -> str:
    """How many times the loop's users per second a model of words has."""
    catalog = _catalog(2_000)
    inputs = model.inputs(catalog)
    weights = model.start(Key.from_seed(0), inputs, dtype="float32")
    batch = _batch(np.random.default_rng(1), clients, len(catalog))

    def ours() -> Arrays:
        tree = model.gradients(weights, inputs, batch)
        return clip_by_norm(tree, CLIP).sum()

    def loop() -> Arrays:
        total = {name: np.zeros(value.shape) for name, value in weights.items()}
        for own in batch.blocks(1):
            slopes = model.total(weights, inputs, own)
            square = sum(float((slope**2).sum()) for slope in slopes.values())
            factor = min(1.0, CLIP / max(math.sqrt(square), 1e-12))
            for name, slope in slopes.items():
                total[name] += factor * slope
        return total

    best = fastest({"ours": ours, "loop": loop}, repeats=7)
    ratio, speed = best["loop"] / best["ours"], clients / best["ours"]
    return f"{type(model).__name__} {ratio:.1f}x the loop, {speed:.0f} users/s"


def _batch(draws: np.random.Generator, clients: int, n_news: int) -> Batch:
    """Whole histories, and one slate each; some news are far more popular than others.

    Popularity falls as a power of the rank, as that of clicked news does.
    """
    popularity = np.arange(1, n_news + 1) ** -0.7
    popularity /= popularity.sum()
    histories = draws.choice(n_news, (clients, READ), p=popularity)
    candidates = draws.choice(n_news, (clients, 1, SHOWN), p=popularity)
    return Batch(histories, candidates, np.zeros((clients, 1), np.int64))


def _catalog(n_news: int) -> Catalog:
    """News of invented words, as long as those of MIND."""
    draws = np.random.default_rng(2)

    def texts(length: int) -> Strings:
        numbers = draws.zipf(1.3, (n_news, length)) % 8_000
        return Strings.of([" ".join(f"w{n}" for n in row) for row in numbers])

    kinds = [f"c{n}" for n in draws.integers(0, 17, n_news)]
    details = [f"s{n}" for n in draws.integers(0, 264, n_news)]
    features: dict[str, Feature] = {
        "abstract": Text(texts(40)),
        "category": Category.of(kinds),
        "subcategory": Category.of(details),
    }
    return Catalog(Strings.of([f"N{i}" for i in range(n_news)]), texts(12), features)


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread: the loop's products are so small that two are slower."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


BAR = Bar(9, "news model on fixed text vectors, clipped", 1.0, measure)
