"""Matrix factorisation for clicks: users in closed form, items by gradient.

    V       items × factors, one row v per item
    r       how often an item is in a user's history
    p       1 where r > 0, else 0
    c       1 + alpha r: how much a preference is trusted
    x       (Vᵀ C V + ridge I)⁻¹ Vᵀ C p             Eq. 4: the user's factors
    g       -2 c (p - x·v) x, one row per item      Eqs. 5 and 6: the items' gradient

Equations of Minto et al. 2021, after Hu, Koren and Volinsky 2008 and Ammad-ud-din et
al. 2019. V is the same for everyone: Vᵀ C V is Vᵀ V plus a few rows of the history. One
coordinate of g needs one row of V, so a few coordinates never need the whole gradient.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float64, Int32

from tacit.data.shards import Shards
from tacit.errors import Refused
from tacit.kernels import dispatch
from tacit.models.onnx_graph import HISTORIES, Formula

Items = Float64[np.ndarray, "items factors"]
Users = Float64[np.ndarray, "clients factors"]
Coordinates = Int32[np.ndarray, "clients count"]  # item · factors + factor
Values = Float64[np.ndarray, "clients count"]


@dataclass(frozen=True, eq=False)
class ImplicitFactors:
    """Item factors, and what clients compute with them."""

    items: Items
    alpha: float
    ridge: float

    def users(self, shards: Shards) -> Users:
        """The factors of every user; zero without a history."""
        is_small = not dispatch.pays(
            "implicit_factors.solver", len(shards) * len(self.items)
        )
        return self._solved(shards, _nothing(shards), is_small)[0]

    def gradients_at(self, shards: Shards, coordinates: Coordinates) -> Values:
        """The given coordinates of each client's gradient."""
        return self._solved(shards, coordinates, self._trains_plain)[1]

    def gradients(self, shards: Shards) -> Float64[np.ndarray, "clients items factors"]:
        """The whole gradient of each client, of shape (clients, items, factors)."""
        x, _ = self._solved(shards, _nothing(shards), self._trains_plain)
        if self._trains_plain:
            return self._spread_plain(shards, x)
        from tacit.kernels.implicit_factors import spread  # loads numba

        out = np.empty((len(x), *self.items.shape))
        spread(shards.offsets, shards.items, self.items, float(self.alpha), x, out)
        return out

    def reasons(self, shards: Shards, item: int) -> Float64[np.ndarray, "events"]:
        """How much each event of one user adds to x·v of an item; the sum is x·v.

        x is linear in the rows of the history once Vᵀ C V is known.
        """
        counts = _counts(shards)
        toward = np.linalg.solve(self._systems(counts)[0], self.items[item])
        repeats = counts.toarray()[0, shards.items]
        confidence = 1.0 + self.alpha * repeats
        return confidence / repeats * (self.items[shards.items] @ toward)

    def formula(self) -> Formula:
        """The scores x·v of all items as a graph, where alpha = 0.

        Everyone then has the same system of equations, solved here once.
        """
        if self.alpha:
            raise Refused(
                f"alpha={self.alpha} gives everyone a system of equations of their "
                "own, which cannot be written as a formula; train with alpha = 0"
            )
        solved = np.linalg.solve(self._common(), self.items.T).T
        return HISTORIES.held() @ solved @ self.items.T

    def _solved(
        self, shards: Shards, coordinates: Coordinates, is_small: bool
    ) -> tuple[Users, Values]:
        if is_small:
            return self._solved_plain(shards, coordinates)
        from tacit.kernels.implicit_factors import solver  # loads numba

        factors = self.items.shape[1]
        users = np.empty((len(shards), factors))
        values = np.empty(coordinates.shape)
        solver(factors)(
            *(shards.offsets, shards.items, self._table(), self._common()),
            *(float(self.alpha), coordinates, users, values),
        )
        return users, values

    @property
    def _trains_plain(self) -> bool:
        """Whether numpy computes updates: decided by the catalog, which is public."""
        return not dispatch.pays("implicit_factors.spread", len(self.items))

    def _solved_plain(
        self, shards: Shards, coordinates: Coordinates
    ) -> tuple[Users, Values]:
        """Factors and gradient coordinates in numpy, as the kernel computes them."""
        counts = _counts(shards)
        confident = counts.copy()
        confident.data = 1.0 + self.alpha * counts.data
        right = confident @ self.items
        x = np.linalg.solve(self._systems(counts), right[:, :, None])[:, :, 0]
        item, factor = np.divmod(coordinates.astype(np.int64), self.items.shape[1])
        rows = np.arange(len(shards))[:, None]
        scores = np.einsum("cf,ckf->ck", x, self.items[item])
        found = self._residuals(scores, counts.toarray()[rows, item])
        return x, -2.0 * found * x[rows, factor]

    def _spread_plain(
        self, shards: Shards, x: Users
    ) -> Float64[np.ndarray, "clients items factors"]:
        """The whole gradients in numpy, as the kernel computes them."""
        found = self._residuals(x @ self.items.T, _counts(shards).toarray())
        return -2.0 * found[:, :, None] * x[:, None, :]

    def _residuals(
        self, scores: Float64[np.ndarray, "*any"], counts: Float64[np.ndarray, "*any"]
    ) -> Float64[np.ndarray, "*any"]:
        """The term of g that is the same for every factor: c (p - x·v)."""
        return (1.0 + self.alpha * counts) * ((counts > 0) - scores)

    def _systems(
        self, counts: sp.csr_array
    ) -> Float64[np.ndarray, "clients factors factors"]:
        """The matrix Vᵀ C V + ridge I of each user."""
        # Vᵀ V + ridge I is common; alpha r v vᵀ comes on top for each touched item.
        f = self.items.shape[1]
        outer = (self.items[:, :, None] * self.items[:, None, :]).reshape(-1, f * f)
        return self._common() + self.alpha * (counts @ outer).reshape(-1, f, f)

    def _common(self) -> Float64[np.ndarray, "factors factors"]:
        """The matrix Vᵀ V + ridge I, which all users share."""
        return self.items.T @ self.items + self.ridge * np.eye(self.items.shape[1])

    def _table(self) -> Float64[np.ndarray, "items columns"]:
        """Each item's row v, then the lower triangle of v vᵀ unless alpha is zero."""
        if self.alpha == 0:
            return self.items
        i, j = np.tril_indices(self.items.shape[1])
        return np.hstack([self.items, self.items[:, i] * self.items[:, j]])


def _nothing(shards: Shards) -> Coordinates:
    return np.zeros((len(shards), 0), np.int32)


def _counts(shards: Shards) -> sp.csr_array:
    """How often each item is in each history, of shape (users, items)."""
    shape = (len(shards), shards.n_items)
    ones = np.ones(len(shards.items))
    made = sp.csr_array((ones, shards.items, shards.offsets), shape, copy=True)
    made.sum_duplicates()
    return made


def descend(
    items: Items,
    gradient: Items,
    *,
    rate: float,
    ridge: float,
    steps: int,
) -> Items:
    """V after `steps` steps with the same gradient: V - rate (gradient + 2 ridge V)."""
    for _ in range(steps):
        items = items - rate * (gradient + 2.0 * ridge * items)
    return items
