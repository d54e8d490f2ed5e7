"""Whether the adaptive bound of sound DP-PrivRec follows the quantile it is told.

Beside the bound S of each round stands the quantile of the norms that the bound cannot
see: of the raw updates of people drawn for the purpose, from the same Broadcast.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64

from tacit.method import CentralGaussian, Server, enrol
from tacit.methods.privrec import PrivRec
from tacit.plan import Plan
from tacit.privacy.central_gaussian import CLIP
from tacit.reproduction import Scale
from tacit.reproduction.kept import kept
from tacit.reproduction.privrec.benches import Bench
from tacit.reproduction.privrec.settings import AsWeWould
from tacit.reproduction.tables import (
    Chart,
    Claim,
    Line,
    ReproducedTable,
    Reproduction,
    Row,
)
from tacit.results import Json
from tacit.runtime.simulate import Simulation

STARTS = (0.05, 3.0)  # far below and far above where norms are
QUANTILES = (0.5, 0.9)
_ROUNDS, _EVERY = 60, 5
_ASKED = 100  # people whose norms are looked at
_NEAR = 0.15  # of the quantile: a standard error of 100 people is .05

_LOG = logging.getLogger("tacit.reproduction")


@dataclass(frozen=True)
class Followed:
    """After some rounds: the bound, the quantile of the norms, and who is within."""

    rounds: tuple[int, ...]
    bounds: tuple[float, ...]
    quantiles: tuple[float, ...]
    within: tuple[float, ...]  # the share of updates that are not clipped

    def line(self, values: tuple[float, ...]) -> Line:
        """One of them as a line of a chart."""
        return Line(tuple(map(float, self.rounds)), values, (0.0,) * len(values))

    def to_json(self) -> Json:
        """Four lists."""
        return {name: list(values) for name, values in vars(self).items()}

    @classmethod
    def from_json(cls, document: Json) -> Followed:
        """What `to_json` wrote."""
        return cls(**{name: tuple(values) for name, values in document.items()})


def bound(scale: Scale) -> Reproduction:
    """A tenth of MovieLens 1M at either scale; quick has the median alone."""
    bench = Bench("movielens-1m", "quick")
    quantiles = QUANTILES if scale == "full" else QUANTILES[:1]
    return Reproduction.joined([_of(quantile, bench) for quantile in quantiles])


def _of(quantile: float, bench: Bench) -> Reproduction:
    found = {start: followed(start, quantile, bench) for start in STARTS}
    name = f"The bound and quantile {quantile:g} of the norms"
    lines = {}
    for start, one in found.items():
        lines[f"S, from {start:g}"] = one.line(one.bounds)
        lines[f"the quantile, S from {start:g}"] = one.line(one.quantiles)
    rows = tuple(
        Row(
            f"S from {start:g}, last",
            None,
            None,
            one.bounds[-1],
            ok=True,
            beside={"quantile": one.quantiles[-1], "share within": one.within[-1]},
        )
        for start, one in found.items()
    )
    return Reproduction(
        (ReproducedTable(name, rows),),
        tuple(_follows(start, quantile, one) for start, one in found.items()),
        (Chart(name, "round", "norm", lines),),
    )


def _follows(start: float, quantile: float, found: Followed) -> Claim:
    share, last = found.within[-1], found.rounds[-1]
    return Claim(
        f"S from {start:g} is near quantile {quantile:g} after {last} rounds",
        abs(share - quantile) <= _NEAR,
        f"{share:.0%} of {_ASKED} people are within S = {found.bounds[-1]:.3f}; the "
        f"quantile is {found.quantiles[-1]:.3f}",
    )


@kept(Followed.to_json, Followed.from_json)
def followed(start: float, quantile: float, bench: Bench) -> Followed:
    """One run, looked at every few rounds."""
    _LOG.info("the bound from %g, quantile %g", start, quantile)
    split, ours = bench.split(), AsWeWould(bench)
    plan = replace(ours.dp_plan(len(split.users)), rounds=_ROUNDS)
    privacy = CentralGaussian(clip=start, clip_quantile=quantile)
    method = replace(ours.dp_privrec, privacy=privacy).calibrated(plan)
    made = [*_looks(method, plan, bench)]
    rounds, bounds, norms = zip(*made, strict=True)
    return Followed(
        rounds,
        bounds,
        tuple(float(np.quantile(n, quantile)) for n in norms),
        tuple(float((n <= s).mean()) for s, n in zip(bounds, norms, strict=True)),
    )


def _looks(
    method: PrivRec, plan: Plan, bench: Bench
) -> Iterator[tuple[int, float, Float64[np.ndarray, "people"]]]:
    split = bench.split()
    profiles = split.profiles.take(split.users)
    run = Simulation(
        method, plan, split.catalog, profiles, split.train, bench.key.at("bound")
    )
    *_, training = method.phases(plan)
    for state, _ in run.run(run.start()):
        server = state.server
        if server.round % _EVERY == 0:
            clip = float(method.privacy.told(training, server.memory)[CLIP])
            yield server.round, clip, _norms(method, server, bench)


def _norms(
    method: PrivRec, server: Server, bench: Bench
) -> Float64[np.ndarray, "people"]:
    """Of the raw updates of the first people, who are in no order.

    After the last round too, so the phase is named here and not read from the
    broadcast.
    """
    split, (*_, training) = bench.split(), method.phases(server.plan)
    users = split.users[:_ASKED]
    keys = bench.key.at("norms", server.round).each(users)
    people = enrol(method, server.plan, split.profiles.take(users), keys)
    shards = split.train.take(np.arange(len(users)))
    broadcast = method.broadcast(server)
    return method.update(training, broadcast, people, shards, keys).norms()
