"""What the paper's own numbers imply: noise of a batch, its clip, its bound, its cost.

Nothing is trained. For every data set with the numbers of Tables 2 and 3:

    l         parameters                      U   users in a batch
    σ         sqrt(2 ln(1.25 δ⁻¹)) / ε, for ε = 1, the largest that users choose, and
              δ one over the ratings that train
    noise     σ sqrt(l / U) S is the length of the noise on the mean of a batch
    gradient  S is the longest that the mean of clipped gradients can be

After T rounds noise is sqrt(T) times as long, and gradients T times if all of them
point the same way. docs/errata/dpvae.md has the same by hand.
"""

from __future__ import annotations

import math

from tacit.accounting.epsilon import epsilon as spent
from tacit.accounting.views import server_view
from tacit.data.contribution_bounds import ContributionBounds
from tacit.mechanisms.published import classic_sigma, noise_decides
from tacit.models.mult_vae import Network
from tacit.reproduction.cells import Results
from tacit.reproduction.study import Table
from tacit.reproduction.tables import Claim, ReproducedTable, Reproduction, Row, is_near

from .benches import MOST_EPSILON, PUBLISHED, TRAINED

NAMES = ("ML-100K", "ML-20M", "Netflix")
ACCOUNT_DELTA = 1e-6
# Hidden widths and items with which the network has the parameters of Table 3.
_WIDTHS = {"ML-100K": 80, "ML-20M": 100, "Netflix": 100}
_ITEMS = {"ML-100K": 1_682, "ML-20M": 26_744, "Netflix": 17_770}
_BOUND_REASON = (
    "the formula of Section 3.2 with d = 1,682 items; "
    "docs/errata/dpvae.md#the-construction"
)


def noise_table() -> Table:
    """Parameters, noise, its cost and the bound of the construction, computed."""

    def make(_: Results) -> Reproduction:
        each = [row for name in NAMES for row in _rows(name)]
        tables = (
            ReproducedTable("What the paper's settings imply", tuple(each)),
            ReproducedTable("The bound on a user's examples, ML-100K", _bounds()),
        )
        claims = (*map(_is_drowned, NAMES), _is_smallest(), _adapts())
        return Reproduction(tables, claims)

    return Table(make)


def sigma(name: str, *, epsilon: float = MOST_EPSILON) -> float:
    """The noise of one user over S."""
    ratings = TRAINED * PUBLISHED["table-2"].values[name]["ratings"]
    return classic_sigma(epsilon, delta=1 / ratings)


def noise_of_batch(name: str, *, epsilon: float = MOST_EPSILON) -> float:
    """The length of the noise on the mean of a batch over S, at the least.

    >>> round(noise_of_batch("ML-100K"))
    797
    """
    line = PUBLISHED["table-3"].values[name]
    return sigma(name, epsilon=epsilon) * math.sqrt(line["parameters"] / line["batch"])


def rounds(name: str) -> int:
    """Batches in all epochs."""
    line = PUBLISHED["table-3"].values[name]
    users = PUBLISHED["table-2"].values[name]["users"]
    return int(line["epochs"] * math.ceil(users / line["batch"]))


def noise_of_run(name: str) -> float:
    """Noise of a whole run over what gradients can add up to, at the least."""
    return noise_of_batch(name) / math.sqrt(rounds(name))


def parameters(name: str) -> int:
    """Numbers in the network, biases included."""
    latent = PUBLISHED["table-3"].values[name]["latent"]
    shapes = Network(_ITEMS[name], (_WIDTHS[name],), latent).shapes.values()
    return sum(math.prod(shape) for shape in shapes)


def _rows(name: str) -> tuple[Row, ...]:
    line = PUBLISHED["table-3"].values[name]
    printed, ours = float(line["parameters"]), float(parameters(name))
    each = server_view(sigma(name), line["epochs"])
    proved = spent(each, delta=ACCOUNT_DELTA).value
    assert proved is not None  # releases with noise have one
    return (
        Row(f"{name}, parameters", printed, ours, None, ours == printed),
        Row(f"{name}, noise of a batch over S", None, noise_of_batch(name), None, True),
        Row(
            f"{name}, noise of the run over its gradients",
            None,
            noise_of_run(name),
            None,
            True,
            note="if all gradients point the same way and have norm S",
        ),
        Row(
            f"{name}, epsilon of a user, constant S",
            MOST_EPSILON,
            proved,
            None,
            proved <= MOST_EPSILON,
            note=f"one release in each of {line['epochs']} epochs, δ = 1e-6",
            reason="the noise is that of one release; docs/errata/dpvae.md#why",
        ),
    )


def _bounds() -> tuple[Row, ...]:
    made = ContributionBounds()
    shares = {"least": made.least, "most": made.most}
    return tuple(
        _bound_row(end, made.bound(share, n_items=_ITEMS["ML-100K"]))
        for end, share in shares.items()
    )


def _bound_row(end: str, found: float) -> Row:
    printed = PUBLISHED["section-4-2-1"].value(end)
    is_same = is_near(found, printed, within=1)
    reason = "" if is_same else _BOUND_REASON
    return Row(f"{end} examples", printed, found, None, is_same, reason=reason)


def _is_drowned(name: str) -> Claim:
    """Whether the stated noise leaves room for the utility of Tables 5 to 10."""
    batch, run, count = noise_of_batch(name), noise_of_run(name), rounds(name)
    evidence = (
        f"the mean of a batch has noise of {batch:,.0f} S and gradients of at most S; "
        f"after {count:,} batches noise is {run:,.1f} times as long as gradients that "
        "all point the same way; docs/errata/dpvae.md#the-noise-of-a-batch"
    )
    text = f"{name}: gradients can outweigh the stated noise, as Tables 5 to 10 need"
    return Claim(text, run < 1, evidence)


def _is_smallest() -> Claim:
    """Whether Algorithm 2 trades noise against clipping (Theorem 3)."""
    decided = {
        name: noise_decides(
            PUBLISHED["table-3"].values[name]["parameters"],
            epsilon=MOST_EPSILON,
            delta=1 / (TRAINED * PUBLISHED["table-2"].values[name]["ratings"]),
        )
        for name in NAMES
    }
    always = [name for name, is_decided in decided.items() if is_decided]
    evidence = (
        f"on {', '.join(always)} H(S) grows with S whatever the gradients are, so the "
        "search ends at the smallest norm; "
        "docs/errata/dpvae.md#algorithm-2-finds-the-smallest-norm"
        if always
        else "H(S) depends on the gradients"
    )
    text = "RQ3: the optimal clip trades noise against what is cut"
    return Claim(text, not always, evidence)


def _adapts() -> Claim:
    """Whether the clip of Algorithm 2 can adapt to other models (Section 4.2.6).

    Noise decides where sqrt(l) is above a bound, so for all l from the first one on.
    """
    name = "ML-100K"  # the data of Table 11
    delta = 1 / (TRAINED * PUBLISHED["table-2"].values[name]["ratings"])
    first = next(
        (
            size
            for size in (10**power for power in range(7))
            if noise_decides(size, epsilon=MOST_EPSILON, delta=delta)
        ),
        None,
    )
    text = "RQ6: the optimal clip can adapt to SVD, MF and the autoencoder"
    evidence = (
        "H(S) depends on the gradients at every size up to a million"
        if first is None
        else f"in every model of {first:,} or more parameters H(S) grows with S "
        "whatever the gradients are, at epsilon 1 and less: the clip is the smallest "
        "norm"
    )
    return Claim(text, first is None, evidence)
