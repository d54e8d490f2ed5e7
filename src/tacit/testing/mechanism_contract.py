"""What every mechanism of sums must keep. Inherit `MechanismContract` in its test.

    class TestMySum(MechanismContract):
        def mechanism(self) -> SumMechanism:
            return MySum(clip=2.0, noise_multiplier=1.5)

Contributions are measured in units of the noise: a leaf's norm over the scale of the
noise on it, all leaves jointly. The largest one possible is the reciprocal of the noise
multiplier, and that is what the event claims. So contributions, noise and event are
compared with each other; none is trusted.

Each statistical test raises a false alarm with probability below 1e-9 if its seed were
drawn anew, and misses a scale that is 5 % off with probability below 1e-9.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy
from jaxtyping import Float64
from scipy.stats import chi2, norm

from tacit.audits.noise_draws import largest_at_a_lag
from tacit.keys import Key, Keys
from tacit.mechanisms.clipping import SLACK
from tacit.mechanisms.sum_mechanism import SumMechanism
from tacit.testing.statistics import (
    assert_distribution,
    assert_independent,
    samples_to_see,
)
from tacit.tree import Array, Arrays, Dense, Factored, Leaf, Tree

FALSE_ALARM = 1e-9
# A normal whose scale is 5 % off is 0.0118 away, a Laplace distribution 0.0090.
SAMPLES = samples_to_see(0.009, false_alarm=FALSE_ALARM)

Bits = Literal[16, 32, 64]  # of a float


class MechanismContract(ABC):
    """The tests that every mechanism of sums inherits."""

    shapes: ClassVar[Mapping[str, tuple[int, int]]] = {"V": (3, 4), "W": (2, 5)}
    order: ClassVar[int] = 2  # of the norm that the mechanism bounds
    law: ClassVar[Any] = norm  # of the noise, at scale one
    dtype: ClassVar[type[np.generic]] = np.float64  # of a noisy total
    is_tight: ClassVar[bool] = True  # a huge update reaches the whole sensitivity

    @abstractmethod
    def mechanism(self) -> SumMechanism:
        """The mechanism under test, for updates of `shapes`."""

    def contributions(self, tree: Tree, keys: Keys) -> Tree:
        """The contributions that clients make of their updates."""
        return self.mechanism().bound(tree)

    def noise_multiplier(self) -> float:
        """The noise multiplier that the account reads from the event."""
        return float(self.mechanism().event.noise_multiplier)

    def names(self) -> tuple[str, ...]:
        """The leaves of a contribution."""
        return (*self.shapes,)

    # contributions

    def test_contributions_are_bounded(self) -> None:
        """Whatever an update holds, finite or not, large or small, in any float."""

        @settings(max_examples=100, deadline=None)
        @given(_updates(self.shapes))
        def holds(tree: Tree) -> None:
            self._check_bounded(self._sent(tree))

        holds()

    def test_one_huge_leaf_cannot_hide_another(self) -> None:
        """Leaves share one bound; the largest update reaches it and no more."""
        for scale in (1e3, 1e6, 1e12):
            tree = _ones(self.shapes).scale(scale)
            sent = self._sent(tree)
            self._check_bounded(sent)
            if self.is_tight:
                reach = self._in_noise(sent) * self.noise_multiplier()
                np.testing.assert_allclose(reach, 1.0, rtol=1e-5)

    def test_what_is_not_finite_counts_as_nothing(self) -> None:
        """A NaN would tell everyone that its sender took part."""
        for bad in (math.nan, math.inf, -math.inf):
            whole = _ones(self.shapes)
            for name, leaf in whole.leaves.items():
                values = leaf.dense().values.copy()
                values[0, 0, 0] = bad
                sent = self._sent(Tree({**whole.leaves, name: Dense(values)}))
                assert not any(leaf.dense().values.any() for leaf in _leaves(sent))

    def test_zero_stays_zero_where_the_update_was(self) -> None:
        """An update of zeros stays one: clipping never scales anybody up."""
        sent = self._sent(_ones(self.shapes).scale(0.0))
        assert not any(sent.leaves[name].dense().values.any() for name in self.shapes)

    def test_factored_equals_dense(self) -> None:
        """What is bounded does not depend on how it is stored."""
        tree = _factored(self.shapes)
        mine = self._sent(tree).to_dense()
        twin = self._sent(tree.to_dense())
        for name in self.names():
            np.testing.assert_allclose(mine[name], twin[name], rtol=1e-9, atol=1e-12)

    def test_a_client_never_notices_the_others(self) -> None:
        """A cohort equals its clients, one at a time."""
        tree, keys = _mixed(self.shapes, 7), Key.from_seed(2).each(np.arange(7))
        together = self.contributions(tree, keys).to_dense()
        for row in range(7):
            alone = self.contributions(tree.select([row]), keys[[row]]).to_dense()
            for name in self.names():
                np.testing.assert_array_equal(alone[name], together[name][[row]])

    # noise

    def test_noise_has_the_stated_law_and_scale(self) -> None:
        """The noise on every leaf has the scale that the account rests on."""
        noise = self._noise(Key.from_seed(3), (SAMPLES,))
        for name in self.names():
            self.check_law(noise[name], self.mechanism().scale(name))

    def check_law(self, noise: Float64[np.ndarray, "n"], scale: float) -> None:
        """Assert that the noise has the mechanism's law at this scale."""
        assert_distribution(noise / scale, self.law.cdf, false_alarm=FALSE_ALARM)
        if self.law is norm:
            assert_variance(noise, scale**2, false_alarm=FALSE_ALARM)

    def test_noise_is_independent_between_coordinates(self) -> None:
        """Neighbouring and distant coordinates are uncorrelated in value and size."""
        noise = self._noise(Key.from_seed(4), (2, 10**5))
        for name in self.names():
            first, second = noise[name]
            _check_unrelated(first, second)
            _check_unrelated(first[::2], first[1::2])

    def test_noise_is_independent_between_leaves(self) -> None:
        """No leaf's noise can be subtracted with another's."""
        noise = self._noise(Key.from_seed(5), (10**5,))
        names = self.names()
        for i, name in enumerate(names):
            for other in names[:i]:
                _check_unrelated(noise[name], noise[other])

    def test_noise_is_independent_between_rounds(self) -> None:
        """Each round has a key of its own, and noise of its own."""
        key = Key.from_seed(6)
        rounds = [self._noise(key.at("round", t), (10**5,)) for t in range(3)]
        for name in self.names():
            _check_unrelated(rounds[0][name], rounds[1][name])
            _check_unrelated(rounds[1][name], rounds[2][name])
            _check_unrelated(rounds[0][name], rounds[2][name])

    def test_no_draw_is_used_twice_at_any_lag(self) -> None:
        """Four blocks of 32,768 draws of every leaf, in a row."""
        noise = self._noise(Key.from_seed(13), (2**17,))
        rows = [np.asarray(noise[n], np.float64) for n in self.names()]
        row = np.concatenate([one / one.std() for one in rows])
        for values in (row, np.abs(row)):
            ratio, lag = largest_at_a_lag(values, alarm=FALSE_ALARM)
            assert ratio <= 1, (
                f"correlation at lag {lag}: {ratio:.3g} of what chance is"
            )

    def test_the_same_key_gives_the_same_noise(self) -> None:
        """The noise of a key does not depend on the order of the leaves."""
        first = self._noise(Key.from_seed(7), (3, 4))
        zeros = dict(reversed(self._zeros((3, 4)).items()))
        again = self.mechanism().add(zeros, Key.from_seed(7))
        for name in self.names():
            np.testing.assert_array_equal(first[name], again[name])

    def test_noise_does_not_depend_on_the_total(self) -> None:
        """The noisy total is the total plus the noise of an empty one, bit for bit."""
        draws = Key.from_seed(8).generator()
        noise = self._noise(Key.from_seed(9), (20, 5))
        for size in (1.0, 1e6):
            total = {
                name: (size * draws.normal(size=zero.shape)).astype(self.dtype)
                for name, zero in self._zeros((20, 5)).items()
            }
            before = {n: value.copy() for n, value in total.items()}
            noisy = self.mechanism().add(total, Key.from_seed(9))
            for name, value in before.items():
                np.testing.assert_array_equal(total[name], value)  # left alone
                np.testing.assert_array_equal(noisy[name], value + noise[name])

    def test_totals_keep_names_shapes_and_type(self) -> None:
        """Leaves of any shape, scalars and empty ones too, keep theirs."""
        for shape in ((), (3,), (0,), (2, 0, 3)):
            noisy = self._noise(Key.from_seed(10), shape)
            assert [*noisy] == [*self.names()]
            assert {value.shape for value in noisy.values()} == {shape}
            assert {value.dtype for value in noisy.values()} == {np.dtype(self.dtype)}

    # what the tests above share

    def _sent(self, tree: Tree) -> Tree:
        return self.contributions(tree, Key.from_seed(1).each(np.arange(len(tree))))

    def _check_bounded(self, sent: Tree) -> None:
        assert sent.leaves.keys() == {*self.names()}
        mechanism = self.mechanism()
        allowed = 1 + SLACK * 1.01  # what the account allows for rounding, and a hair
        plain = self._measured(sent, dict.fromkeys(self.names(), 1.0))
        assert (plain <= mechanism.sensitivity * allowed).all(), (
            f"a contribution of {plain.max()} is above the sensitivity "
            f"{mechanism.sensitivity}"
        )
        reach = self._in_noise(sent) * self.noise_multiplier()
        assert (reach <= allowed).all(), (
            f"a contribution reaches {reach.max()} of what the event allows"
        )

    def _in_noise(self, sent: Tree) -> Float64[np.ndarray, "clients"]:
        """The size of contributions in units of the noise."""
        return self._measured(sent, {n: self.mechanism().scale(n) for n in sent.leaves})

    def _measured(
        self, sent: Tree, units: Mapping[str, float]
    ) -> Float64[np.ndarray, "clients"]:
        with np.errstate(all="ignore"):  # what overflows is above any bound
            dense = {n: leaf.dense().values for n, leaf in sent.leaves.items()}
            flat = [
                values.astype(np.float64).reshape(len(sent), -1) / units[name]
                for name, values in dense.items()
            ]
            return np.linalg.norm(np.concatenate(flat, axis=1), self.order, axis=1)

    def _noise(self, key: Key, shape: tuple[int, ...]) -> Arrays:
        return self.mechanism().add(self._zeros(shape), key)

    def _zeros(self, shape: tuple[int, ...]) -> dict[str, Array]:
        return {name: np.zeros(shape, self.dtype) for name in self.names()}


def assert_variance(
    samples: Float64[np.ndarray, "n"], variance: float, *, false_alarm: float
) -> None:
    """Independent normal samples of mean zero have this variance: exact, two-sided."""
    n = samples.size
    statistic = float((samples**2).sum()) / variance
    least, most = chi2.ppf(false_alarm / 2, n), chi2.isf(false_alarm / 2, n)
    assert least <= statistic <= most, (
        f"variance is {statistic / n:.6g} of what is stated; allowed is from "
        f"{least / n:.6g} to {most / n:.6g}; n={n}, false_alarm={false_alarm:g}"
    )


def _check_unrelated(x: Array, y: Array) -> None:
    assert_independent(x, y, false_alarm=FALSE_ALARM / 2)
    assert_independent(np.abs(x), np.abs(y), false_alarm=FALSE_ALARM / 2)


def _leaves(tree: Tree) -> list[Leaf]:
    return [*tree.leaves.values()]


def _ones(shapes: Mapping[str, tuple[int, int]]) -> Tree:
    return Tree({name: Dense(np.ones((1, *shape))) for name, shape in shapes.items()})


def _mixed(shapes: Mapping[str, tuple[int, int]], clients: int) -> Tree:
    """Clients of sizes from far within any clip to far outside."""
    draws = Key.from_seed(11).generator()
    sizes = 10.0 ** np.arange(-2, clients - 2)
    return Tree(
        {name: Dense(draws.normal(size=(clients, *s))) for name, s in shapes.items()}
    ).scale(sizes)


def _factored(shapes: Mapping[str, tuple[int, int]]) -> Tree:
    draws = Key.from_seed(12).generator()
    leaves = {
        name: Factored(draws.normal(size=(4, 2, rows)), draws.normal(size=(4, 2, cols)))
        for name, (rows, cols) in shapes.items()
    }
    return Tree({**leaves}).scale(10.0 ** np.arange(-2, 2))


@st.composite
def _updates(draw: st.DrawFn, shapes: Mapping[str, tuple[int, int]]) -> Tree:
    """Updates that an adversary would try, each leaf dense or factored."""
    clients = draw(st.integers(1, 3))
    return Tree(
        {name: draw(_leaf(clients, rows, n)) for name, (rows, n) in shapes.items()}
    )


@st.composite
def _leaf(draw: st.DrawFn, clients: int, rows: int, columns: int) -> Leaf:
    bits: Bits = draw(st.sampled_from(get_args(Bits)))
    if draw(st.booleans()):
        return Dense(draw(_values(bits, (clients, rows, columns))))
    rank = draw(st.integers(1, 2))
    left = draw(_values(bits, (clients, rank, rows)))
    right = draw(_values(bits, (clients, rank, columns)))
    if rank == 2 and draw(st.booleans()):  # two products that nearly cancel
        off = draw(st.sampled_from([0.0, 1e-3, 1e-7, 1e-12]))
        with np.errstate(all="ignore"):
            left[:, 1], right[:, 1] = -left[:, 0], right[:, 0] * (1 + off)
    return Factored(left, right)


@st.composite
def _values(draw: st.DrawFn, bits: Bits, shape: tuple[int, ...]) -> Array:
    """Normal draws of any magnitude, or anything that the type can hold."""
    dtype = np.dtype(f"float{bits}")
    if draw(st.booleans()):
        return draw(numpy.arrays(dtype, shape, elements=st.floats(width=bits)))
    size = 10.0 ** draw(st.integers(-320, 308))
    normal = np.random.default_rng(draw(st.integers(0, 2**32))).normal(size=shape)
    with np.errstate(all="ignore"):
        return (size * normal).astype(dtype)
