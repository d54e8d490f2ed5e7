"""A BERT of a few numbers, and the same model written as loops over single numbers."""

from __future__ import annotations

from math import erf, exp, sqrt

import numpy as np

WORDS, WIDTH, HEADS, WIDE, LAYERS, LONGEST = 11, 6, 3, 10, 2, 7
TINY = 1e-12


def parameters(seed: int = 0) -> dict[str, np.ndarray]:
    """A small model under published names; no parameter is 0 or 1."""
    rng = np.random.default_rng(seed)
    shapes = {
        "embeddings.word_embeddings.weight": (WORDS, WIDTH),
        "embeddings.position_embeddings.weight": (LONGEST, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "embeddings.LayerNorm.weight": (WIDTH,),
        "embeddings.LayerNorm.bias": (WIDTH,),
        "pooler.dense.weight": (WIDTH, WIDTH),  # published, and not used
    }
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            shapes[f"{at}.attention.{part}.weight"] = (WIDTH, WIDTH)
            shapes[f"{at}.attention.{part}.bias"] = (WIDTH,)
        for norm in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[f"{at}.{norm}.weight"] = (WIDTH,)
            shapes[f"{at}.{norm}.bias"] = (WIDTH,)
        shapes[f"{at}.intermediate.dense.weight"] = (WIDE, WIDTH)
        shapes[f"{at}.intermediate.dense.bias"] = (WIDE,)
        shapes[f"{at}.output.dense.weight"] = (WIDTH, WIDE)
        shapes[f"{at}.output.dense.bias"] = (WIDTH,)
    return {n: rng.normal(size=s).astype(np.float32) for n, s in shapes.items()}


def literal(found: dict[str, np.ndarray], tokens: list[int]) -> list[list[float]]:
    """The vectors of one text, with a loop for every sum and in double precision."""

    def linear(name: str, x: list[float]) -> list[float]:
        weight, bias = found[f"{name}.weight"], found[f"{name}.bias"]
        return [
            sum(float(w) * value for w, value in zip(row, x, strict=True)) + float(b)
            for row, b in zip(weight, bias, strict=True)
        ]

    def norm(name: str, x: list[float]) -> list[float]:
        mean = sum(x) / len(x)
        variance = sum((value - mean) ** 2 for value in x) / len(x)
        scale, shift = found[f"{name}.weight"], found[f"{name}.bias"]
        return [
            (value - mean) / sqrt(variance + TINY) * float(scale[i]) + float(shift[i])
            for i, value in enumerate(x)
        ]

    def attended(at: str, x: list[list[float]]) -> list[list[float]]:
        query, key, value = (
            [linear(f"{at}.attention.self.{part}", row) for row in x]
            for part in ("query", "key", "value")
        )
        size, out = WIDTH // HEADS, [[0.0] * WIDTH for _ in x]
        for head in range(HEADS):
            own = range(head * size, (head + 1) * size)
            for i in range(len(x)):
                weights = [
                    exp(sum(query[i][d] * key[j][d] for d in own) / sqrt(size))
                    for j in range(len(x))
                ]
                for d in own:
                    mixed = sum(w * value[j][d] for j, w in enumerate(weights))
                    out[i][d] = mixed / sum(weights)
        return [linear(f"{at}.attention.output.dense", row) for row in out]

    def added(x: list[float], y: list[float]) -> list[float]:
        return [a + b for a, b in zip(x, y, strict=True)]

    word, place, kind = (
        found[f"embeddings.{name}_embeddings.weight"].astype(float)
        for name in ("word", "position", "token_type")
    )
    x = [
        norm("embeddings.LayerNorm", list(word[token] + place[i] + kind[0]))
        for i, token in enumerate(tokens)
    ]
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        x = [
            norm(f"{at}.attention.output.LayerNorm", added(row, more))
            for row, more in zip(x, attended(at, x), strict=True)
        ]
        wide = [linear(f"{at}.intermediate.dense", row) for row in x]
        wide = [[v * (1 + erf(v / sqrt(2))) / 2 for v in row] for row in wide]
        more = [linear(f"{at}.output.dense", row) for row in wide]
        x = [
            norm(f"{at}.output.LayerNorm", added(row, own))
            for row, own in zip(x, more, strict=True)
        ]
    return x
