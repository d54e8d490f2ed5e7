"""Terms that several tests share."""

from dataclasses import replace

from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent

from tacit.accounting.events import pure_local
from tacit.codes import Code
from tacit.ledger.terms import Terms
from tacit.release import CELLS, Adjacency, Cell, Release, Standing, View
from tacit.sampling import composed

BARE = Cell.none("bare_reports", "bare")


def each(event, *, times=1, reason="", adjacency=Adjacency.ZERO_OUT, **more) -> Cell:
    """What a participation costs, of which a run has so many at the most."""
    run = composed(event, times)
    return Cell(Standing.PROVEN, reason, run, Adjacency(adjacency), each=event, **more)


def whole(event, *, reason="", **more) -> Cell:
    """What a run costs from the first participation on."""
    return Cell(Standing.PROVEN, reason, event, **more)


def alike(what: str, cell: Cell) -> Release:
    """The same guarantee in every cell."""
    return Release(what, "server", "each round", dict.fromkeys(CELLS, cell))


def local(event, *, most=1000, what="reports", adjacency="replace_one") -> Terms:
    """Reports that each client protects itself, one a round."""
    cell = each(event, times=most, reason="local", adjacency=adjacency)
    return Terms((alike(what, cell),), rounds=most, most=most)


def gaussian(multiplier=5.0, *, most=1000) -> Terms:
    return local(GaussianDpEvent(multiplier), most=most, adjacency="zero_out")


def response(epsilon=0.1, *, choices=5, most=1000) -> Terms:
    return local(pure_local(epsilon, choices=choices), most=most)


def training(rate=0.01, z=1.0, rounds=1000) -> Terms:
    """A noisy sum over cohorts drawn in secret, behind a trusted aggregator."""
    run = SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(z)), rounds)
    trusts, seen = (Code("trusted_aggregator"),), GaussianDpEvent(z)
    views = {
        View.RELEASE: whole(run, reason="sampled", assumes=trusts),
        View.SERVER: each(seen, times=rounds, reason="counted", assumes=trusts),
        View.COLLUSION: Cell.none(
            "bare_reports", "an aggregator that colludes shows all"
        ),
    }
    cells = {name: views[name[1]] for name in CELLS}
    return Terms((Release("noisy sum", "server", "", cells),), rounds, rounds)


def in_turn(first=2, rounds=9, *, count=2.0, train=3.0) -> Terms:
    """The first rounds count, with this noise on what is seen; the others train."""
    later = rounds - first
    releases = (
        alike("counts", each(GaussianDpEvent(count), times=first)),
        alike("updates", each(GaussianDpEvent(train), times=later)),
    )
    made = range(first), range(first, rounds)
    releases = tuple(replace(r, rounds=n) for r, n in zip(releases, made, strict=True))
    return Terms(releases, rounds, rounds)


def in_every_round(terms: Terms) -> Terms:
    """As terms were before releases said in which rounds they are made."""
    releases = tuple(replace(one, rounds=None) for one in terms.releases)
    return replace(terms, releases=releases)


def bare(most=10) -> Terms:
    return Terms(
        (alike("votes", Cell.none("bare_reports", "sent as they are")),), most, most
    )
