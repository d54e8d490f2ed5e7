"""Interests: groups of like-minded users, from public numbers or from a release.

    z     the direction of a user: u - m along the axes in which scores differ, length 1
    c_b   directions of interests (k-means); a user's is the one nearest to z
    p_b   the share of users with interest b        u_b   their mean vector
    m     the mean vector of all

Along the axes, users are as far apart as their scores are, up to a constant for each of
them, which no ranking sees: |(u - u') axes|² is the variance of their scores' gap.
Only the direction counts: somebody who takes a bit of everything leans somewhere too,
and would else share an interest with all who lean nowhere much.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Float64, Int64

from tacit import check
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.method import ItemSpace

Users = Float[np.ndarray, "users factors"]
Points = Float64[np.ndarray, "users axes"]

_STEPS = 30  # of k-means; it rarely moves after that
_STARTS = 4  # from which the tightest groups are kept
_AXES = 64  # on which k-means works
_LEAST_VARIANCE = 1e-9  # of the largest; axes with less are rounding


@dataclass(frozen=True, eq=False)
class Interests:
    """Groups of users that client and server both know; nothing of it is private."""

    axes: Float64[np.ndarray, "factors axes"]
    mean: Float64[np.ndarray, "factors"]  # what is known of who says nothing
    directions: Float64[np.ndarray, "interests axes"]
    means: Float64[np.ndarray, "interests factors"]
    shares: Float64[np.ndarray, "interests"]

    def __post_init__(self) -> None:
        check.at_least(2, interests=len(self), remedy="one interest says nothing")
        if not (np.all(self.shares >= 0) and np.isclose(self.shares.sum(), 1.0)):
            raise BadValue("shares of interests must be >= 0 and sum to 1")

    def __len__(self) -> int:
        return len(self.directions)

    def closeness(self, users: Users) -> Float64[np.ndarray, "users interests"]:
        """The cosine of each user's direction with each interest, from -1 to 1."""
        return _unit((users - self.mean) @ self.axes) @ self.directions.T

    def temperature(self, users: Users) -> float:
        """What closeness is divided by in attention, for users like these.

        The strongest interest of half of them has e² times the attention of the next
        one, or more: flatter attention drowns in the noise.
        """
        close = np.sort(self.closeness(users), axis=1)
        apart = float(np.median(close[:, -1] - close[:, -2]))
        return max(apart / 2.0, 1e-12)

    def nearest(self, users: Users) -> Int64[np.ndarray, "users"]:
        """The strongest interest of each user."""
        return self.closeness(users).argmax(axis=1)

    def of_users(
        self,
        means: Float64[np.ndarray, "interests factors"],
        shares: Float64[np.ndarray, "interests"],
    ) -> Interests:
        """As many interests with these means and shares, which also give directions."""
        mean = shares @ means
        directions = _unit((means - mean) @ self.axes)
        return Interests(self.axes, mean, directions, means, shares)


def find_interests(
    space: ItemSpace, users: Users, *, count: int, key: Key
) -> Interests:
    """Interests of a population of user vectors, which must be public or released."""
    check.at_least(2, count=count, remedy="one interest says nothing")
    if len(users) < count:
        raise BadValue(f"{count} interests of {len(users)} users; use fewer interests")
    axes, mean = score_axes(space), users.mean(axis=0)
    points = _unit((users - mean) @ axes)
    few = _few_axes(points)
    groups = _nearest(points @ few, k_means(points @ few, count, key))
    directions = _unit(_group_means(points, groups, count))
    chosen = (points @ directions.T).argmax(axis=1)
    sizes = np.bincount(chosen, minlength=count)
    # A direction that nobody has stands for everybody, and is never weighed.
    own = _group_means(users, chosen, count)
    means = np.where(sizes[:, None] > 0, own, mean)
    return Interests(axes, mean, directions, means, sizes / sizes.sum())


def score_axes(space: ItemSpace) -> Float64[np.ndarray, "factors axes"]:
    """A map of user vectors under which distances are those of their scores."""
    centred = space.vectors.astype(np.float64)
    centred = centred - centred.mean(axis=0)
    variances, directions = np.linalg.eigh(centred.T @ centred / len(centred))
    keeps = variances > _LEAST_VARIANCE * variances[-1]
    if not keeps.any():
        raise BadValue("all items have one vector, so no user differs from another")
    return directions[:, keeps] * np.sqrt(variances[keeps])


def k_means(
    points: Points, count: int, key: Key
) -> Float64[np.ndarray, "interests axes"]:
    """Centres of so many groups: the tightest that a few starts find.

    A start is k-means++ (Arthur and Vassilvitskii 2007), then Lloyd's steps.
    """
    found = [_from_a_start(points, count, key.at(i)) for i in range(_STARTS)]
    return min(found, key=lambda centres: _spread(points, centres))


def _from_a_start(
    points: Points, count: int, key: Key
) -> Float64[np.ndarray, "interests axes"]:
    """Centres from one start; a group that loses all its points keeps its centre."""
    centres = _first_centres(points, count, key)
    chosen = np.full(len(points), -1)
    for _ in range(_STEPS):
        now = _nearest(points, centres)
        if (now == chosen).all():
            break
        chosen = now
        is_filled = np.bincount(chosen, minlength=count) > 0
        centres[is_filled] = _group_means(points, chosen, count)[is_filled]
    return centres


def _first_centres(
    points: Points, count: int, key: Key
) -> Float64[np.ndarray, "interests axes"]:
    """Points that are far from each other: each is drawn by its squared distance."""
    draw = key.generator()
    centres = points[[int(draw.integers(len(points)))]]
    far = ((points - centres[0]) ** 2).sum(axis=1)
    for _ in range(count - 1):
        total = far.sum()
        weights = far / total if total > 0 else None
        found = points[int(draw.choice(len(points), p=weights))]
        centres = np.vstack([centres, found])
        far = np.minimum(far, ((points - found) ** 2).sum(axis=1))
    return centres


def _few_axes(points: Points) -> Float64[np.ndarray, "axes few"]:
    """The principal axes on which points differ most: k-means needs no others."""
    _, axes = np.linalg.eigh(points.T @ points)  # eigenvalues in ascending order
    return axes[:, ::-1][:, :_AXES]


def _group_means(
    rows: Float[np.ndarray, "users columns"],
    groups: Int64[np.ndarray, "users"],
    count: int,
) -> Float64[np.ndarray, "groups columns"]:
    """The mean row of each group; zeros for a group that nobody is in."""
    members = sp.csr_array(
        (np.ones(len(rows)), (groups, np.arange(len(rows)))), shape=(count, len(rows))
    )
    sizes = np.maximum(np.bincount(groups, minlength=count), 1)
    return np.asarray(members @ rows) / sizes[:, None]


def _unit(rows: Points) -> Points:
    """Rows of length one; a row of zeros has no direction and stays."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length > 0, length, 1.0)


def _spread(points: Points, centres: Float64[np.ndarray, "interests axes"]) -> float:
    """The sum of squared distances to the nearest centres."""
    return float(((points - centres[_nearest(points, centres)]) ** 2).sum())


def _nearest(
    points: Points, centres: Float64[np.ndarray, "interests axes"]
) -> Int64[np.ndarray, "users"]:
    return (points @ centres.T - 0.5 * (centres**2).sum(axis=1)).argmax(axis=1)
