"""Whether the adaptive bound of sound DP-PrivRec follows the quantile it is told.

Beside the bound S of each round stands the quantile of the norms that the bound cannot
see: of the raw updates of some training users, from the same broadcast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from tacit.experiment.assemble import Assembled, assemble, root_key
from tacit.method import Server, enrol
from tacit.privacy.central_gaussian import CLIP
from tacit.reproduction.cells import Cell, Results
from tacit.reproduction.study import Scale, Table
from tacit.reproduction.tables import (
    Chart,
    Claim,
    Line,
    ReproducedTable,
    Reproduction,
    Row,
)

from .beside import privrec
from .contenders import Bench

STARTS = (0.05, 3.0)  # far below and far above where norms are
ASKED = 100  # users whose norms are looked at
_NEAR = 0.15  # of the quantile: a standard error of 100 users is .05
_LENGTHS: Mapping[Scale, tuple[int, int]] = {  # rounds, and rounds between two looks
    "smoke": (4, 2),
    "quick": (60, 5),
    "full": (60, 5),
}


@dataclass(frozen=True)
class Followed:
    """After some rounds: the bound, the quantile of the norms, and who is within."""

    rounds: list[int]
    bounds: list[float]
    quantiles: list[float]
    within: list[float]  # the share of updates that are not clipped

    def line(self, values: list[float]) -> Line:
        """One of them as a line of a chart."""
        return Line(tuple(map(float, self.rounds)), tuple(values), (0.0,) * len(values))


def bound(scale: Scale) -> Table:
    """A tenth of MovieLens 1M, also at full scale; quick has the median alone."""
    bench = Bench("ml1m", "smoke" if scale == "smoke" else "quick")
    quantiles = (0.5, 0.9) if scale == "full" else (0.5,)
    rounds, every = _LENGTHS[scale]

    def make(results: Results) -> Reproduction:
        return Reproduction.joined([_of(q, results) for q in quantiles])

    def _of(quantile: float, results: Results) -> Reproduction:
        found = {s: _kept(results, cell(s, quantile), quantile) for s in STARTS}
        name = f"The bound and quantile {quantile:g} of the norms"
        lines = {f"S, from {s:g}": one.line(one.bounds) for s, one in found.items()}
        for start, one in found.items():
            lines[f"the quantile, S from {start:g}"] = one.line(one.quantiles)
        rows = tuple(_row(start, one) for start, one in found.items())
        claims = tuple(follows(start, quantile, one) for start, one in found.items())
        chart = Chart(name, "round", "norm", lines)
        return Reproduction((ReproducedTable(name, rows),), claims, (chart,))

    def cell(start: float, quantile: float) -> Cell:
        privacy = (f"privacy.clip={start}", f"privacy.clip_quantile={quantile}")
        return bench.cell("DP-PrivRec", *privacy, f"run.rounds={rounds}")

    def _kept(results: Results, cell: Cell, quantile: float) -> Followed:
        [experiment] = cell.experiments()
        document = results.measured(
            f"bound {cell.folder}",
            {"experiment": experiment.digest, "every": every, "asked": ASKED},
            lambda: vars(followed(assemble(experiment), quantile, every=every)),
        )
        return Followed(**document)

    return Table(make)


def _row(start: float, one: Followed) -> Row:
    beside = {"quantile": one.quantiles[-1], "share within": one.within[-1]}
    label = f"S from {start:g}, last"
    return Row(label, None, None, one.bounds[-1], ok=True, beside=beside)


def follows(start: float, quantile: float, found: Followed) -> Claim:
    """Whether about as many users are within the bound as it was told."""
    share, last = found.within[-1], found.rounds[-1]
    return Claim(
        f"S from {start:g} is near quantile {quantile:g} after {last} rounds",
        abs(share - quantile) <= _NEAR,
        f"{share:.0%} of at most {ASKED} users are within S = {found.bounds[-1]:.3f}; "
        f"the quantile is {found.quantiles[-1]:.3f}",
    )


def followed(assembled: Assembled, quantile: float, *, every: int) -> Followed:
    """One run, looked at every few rounds."""
    rounds, bounds, norms = zip(*_looks(assembled, every), strict=True)
    return Followed(
        [*rounds],
        [*bounds],
        [float(np.quantile(n, quantile)) for n in norms],
        [float((n <= s).mean()) for s, n in zip(bounds, norms, strict=True)],
    )


def _looks(
    assembled: Assembled, every: int
) -> Iterator[tuple[int, float, Float64[np.ndarray, "users"]]]:
    method, run = privrec(assembled), assembled.simulation
    *_, training = method.phases(assembled.plan)
    for state, _ in run.run(run.start()):
        server = state.server
        if server.round % every == 0:
            clip = float(method.privacy.told(training, server.memory)[CLIP])
            yield server.round, clip, _norms(assembled, server)


def _norms(assembled: Assembled, server: Server) -> Float64[np.ndarray, "users"]:
    """Of the raw updates of the first users, who are in no order.

    After the last round too, so the phase is named here and not read from the
    broadcast.
    """
    method, split = privrec(assembled), assembled.split
    *_, training = method.phases(server.plan)
    users = split.users[:ASKED]
    keys = root_key(assembled.experiment).at("norms", server.round).each(users)
    clients = enrol(method, server.plan, split.profiles.take(users), keys)
    shards = split.train.take(np.arange(len(users)))
    broadcast = method.broadcast(server)
    return method.update(training, broadcast, clients, shards, keys).norms()
