from __future__ import annotations

import numpy as np
import pytest

from tacit.reproduction.fedvae.curves import (
    epochs_to,
    largest_drop,
    last,
    line,
)
from tacit.reproduction.fedvae.trials import Curve
from tacit.results import Evaluation, Groups


def a_curve(points: dict[int, list[float]]) -> Curve:
    def found(values: list[float]) -> Evaluation:
        users, everyone = np.arange(len(values)), Groups.everyone(len(values))
        return Evaluation("p", users, {"ndcg@100": np.array(values)}, everyone)

    return {epoch: found(values) for epoch, values in points.items()}


CURVE = a_curve({2: [0.1, 0.3], 4: [0.4, 0.6], 6: [0.2, 0.4], 8: [0.5, 0.5]})


def test_the_first_epoch_at_a_level():
    assert epochs_to(CURVE, "ndcg@100", 0.2) == 2
    assert epochs_to(CURVE, "ndcg@100", 0.45) == 4
    assert epochs_to(CURVE, "ndcg@100", 0.51) is None


def test_the_largest_drop_is_from_the_best_so_far():
    assert largest_drop(CURVE, "ndcg@100") == pytest.approx(0.2)  # .5 to .3
    rising = a_curve({1: [0.1], 2: [0.2], 3: [0.2]})
    assert largest_drop(rising, "ndcg@100") == 0
    falling = a_curve({1: [0.5], 2: [0.4], 3: [0.1]})
    assert largest_drop(falling, "ndcg@100") == pytest.approx(0.4)


def test_a_line_has_means_and_their_errors():
    drawn = line(CURVE, "ndcg@100")
    assert drawn.x == (2, 4, 6, 8)
    assert drawn.y == pytest.approx((0.2, 0.5, 0.3, 0.5))
    assert drawn.se == pytest.approx((0.1, 0.1, 0.1, 0.0))


def test_the_last_epoch_is_the_end():
    assert last(CURVE) is CURVE[max(CURVE)]
