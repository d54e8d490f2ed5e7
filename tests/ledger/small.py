"""Terms that several tests share."""

from dataclasses import replace

from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent

from tacit.accounting.events import pure_local
from tacit.ledger.terms import PLACES, Charge, Promise, Terms


def alike(what: str, promise: Promise) -> Charge:
    """The same promise everywhere."""
    return Charge(what, "server", dict.fromkeys(PLACES, promise))


def local(event, *, most=1000, what="reports", adjacency="replace_one") -> Terms:
    """Reports that each device protects itself, one a round."""
    promise = Promise(event, adjacency, reason="local")
    return Terms((alike(what, promise),), rounds=most, most=most)


def gaussian(multiplier=5.0, *, most=1000) -> Terms:
    return local(GaussianDpEvent(multiplier), most=most, adjacency="zero_out")


def response(epsilon=0.1, *, choices=5, most=1000) -> Terms:
    return local(pure_local(epsilon, choices=choices), most=most)


def training(rate=0.01, z=1.0, rounds=1000) -> Terms:
    """A noisy sum over cohorts drawn in secret, behind a trusted aggregator."""
    run = SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(z)), rounds)
    trusts = "trusted aggregator"
    views = {
        "release": Promise(run, covers="run", assumes=trusts, reason="sampled"),
        "server": Promise(GaussianDpEvent(z), assumes=trusts, reason="counted"),
        "collusion": Promise.nothing("an aggregator that colludes shows all"),
    }
    promises = {place: views[place[1]] for place in PLACES}
    return Terms((Charge("noisy sum", "server", promises),), rounds, rounds)


def in_turn(first=2, rounds=9, *, count=2.0, train=3.0) -> Terms:
    """The first rounds count, with this noise on what is seen; the others train."""
    charges = (
        alike("counts", Promise(GaussianDpEvent(count))),
        alike("updates", Promise(GaussianDpEvent(train))),
    )
    made = range(first), range(first, rounds)
    charges = tuple(replace(c, rounds=r) for c, r in zip(charges, made, strict=True))
    return Terms(charges, rounds, rounds)


def bare(most=10) -> Terms:
    return Terms((alike("votes", Promise.nothing("sent as they are")),), most, most)
