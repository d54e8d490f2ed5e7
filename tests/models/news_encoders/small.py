"""A small world of news, and the loss of one client as the paper has it, in torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.data.catalog import Catalog
from tacit.data.features import Category, Text, Vectors
from tacit.data.ragged import Ragged
from tacit.data.strings import Strings
from tacit.models.news_encoders import NO_NEWS, NO_SLATE, Batch, as_rows, with_padding

N_NEWS, INTERESTS = 9, 3
TITLES = [
    "storm over the coast",
    "goalkeeper saves the final",
    "a new phone",
    "the storm again",
    "",
    "election: the final count",
    "phone makers meet",
    "coast road closed after storm",
    "final whistle",
]


def catalog() -> Catalog:
    """Nine news with texts, labels and vectors; one has an empty text."""
    titles = Strings.of(TITLES)
    axes = np.random.default_rng(0).standard_normal((N_NEWS, 6)).astype(np.float32)
    axes[4] = 0.0
    kinds = [
        "weather",
        "sports",
        "tech",
        "weather",
        "",
        "politics",
        "tech",
        "",
        "sports",
    ]
    return Catalog(
        Strings.of([f"N{i}" for i in range(N_NEWS)]),
        titles,
        {
            "title_vector": Vectors(axes),
            "abstract": Text(Strings.of([f"{t} and more of it" for t in TITLES])),
            "category": Category.of(kinds),
            "subcategory": Category.of([f"{kind} news" for kind in kinds]),
        },
    )


def batch(*, theta: float = 0.7, has_noise: bool = True) -> Batch:
    """Five clients: usual, with padding news, without history, slates, and choice."""
    draws = np.random.default_rng(1)
    read = Ragged.of_lengths([4, 3, 0, 2, 1], np.array([0, 3, 3, 7, 1, 8, 5, 2, 6, 0]))
    is_padded = np.isin(np.arange(10), [4, 5, 8])
    histories = as_rows(with_padding(read, is_padded, n_news=N_NEWS), 5)
    candidates = draws.integers(0, N_NEWS, (5, 2, 3))
    labels = draws.integers(0, 3, (5, 2))
    candidates[1, 0] = [6, NO_NEWS, 4]
    labels[1, 0] = 2
    labels[0, 1] = NO_SLATE
    labels[3] = NO_SLATE
    candidates[4, 0], labels[4, 0] = [NO_NEWS, 2, NO_NEWS], 1  # a single candidate
    noise = 0.3 * draws.standard_normal((5, INTERESTS))
    noise[4] = -2.0  # nothing of the attention is left
    return Batch(histories, candidates, labels, noise if has_noise else None, theta)


def literal(
    weights: dict[str, Any],
    own: Batch,
    *,
    news: Callable[[dict[str, Any], int], Any],
    user: Callable[[dict[str, Any], list[Any]], Any],
) -> list[dict[str, np.ndarray]]:
    """The gradient of one client after the other, by torch, news by news."""
    import torch

    found = []
    for client in range(len(own)):
        theta = {n: torch.tensor(v, requires_grad=True) for n, v in weights.items()}
        loss = torch.zeros((), dtype=torch.float64)
        read = [news(theta, int(n)) for n in own.histories[client] if n != NO_NEWS]
        vector = user(theta, read)
        if own.noise is not None:
            noise = torch.tensor(own.noise[client])
            vector = mixed(vector, theta["basis"], noise=noise, limit=own.theta)
        for shown, label in zip(
            own.candidates[client], own.labels[client].tolist(), strict=True
        ):
            if label == NO_SLATE:
                continue
            places = [place for place, n in enumerate(shown) if n != NO_NEWS]
            scores = torch.stack([vector @ news(theta, int(shown[p])) for p in places])
            loss = loss - torch.log_softmax(scores, 0)[places.index(label)]
        slopes = {n: np.zeros(v.shape) for n, v in weights.items()}
        if loss.requires_grad:
            grads = torch.autograd.grad(loss, [*theta.values()], allow_unused=True)
            for name, grad in zip(theta, grads, strict=True):
                slopes[name] = slopes[name] if grad is None else grad.numpy()
        found.append(slopes)
    return found


def mixed(user: Any, basis: Any, *, noise: Any, limit: float) -> Any:
    """Lines 7 to 10 of Algorithm 2 with ReLU, and line 15 of Algorithm 3."""
    import torch

    alpha = torch.softmax(basis @ user / basis.shape[1] ** 0.5, 0)
    clipped = alpha / torch.clamp(torch.linalg.norm(alpha) / limit, min=1.0)
    kept = torch.relu(clipped + noise)
    if not bool((kept > 0).any()):
        return basis.mean(0)
    return (kept / kept.sum()) @ basis


def attended(rows: Any, attention: Any, offset: Any, query: Any) -> Any:
    """Additive attention over some rows."""
    import torch

    shares = torch.softmax(torch.tanh(rows @ attention + offset) @ query, 0)
    return shares @ rows
