"""Two halves: operators who open and add them publish what the simulation does."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tacit.errors import Refused
from tacit.keys import Key
from tacit.mechanisms.gaussian import GaussianSum
from tacit.service.federation.sealing import Role, SealedReport, public_key
from tacit.service.federation.two_halves import TwoHalves
from tacit.service.manifest import Manifest
from tacit.transport.channels import RoundContext, channel, shared_sum
from tacit.transport.messages import Layout, Reports, Slot
from tacit.transport.shared_sum import from_bytes, published, stream
from tacit.tree import Symmetric, Tree

LEADER, HELPER = bytes([1]) * 32, bytes([2]) * 32  # private keys of the round
SIDE, CLIENTS, RUN = 7, 25, bytes(16)
CONTEXT = RoundContext(
    Layout({"relations": Slot.symmetric("float64", SIDE)}),
    Key.from_seed(5),
    GaussianSum(math.sqrt(0.5), 2.0),
    most_reports=CLIENTS,
)
SHARED = shared_sum(CONTEXT)
FORM = TwoHalves(SHARED, CONTEXT.layout)
MANIFEST = Manifest(
    run=RUN,
    round=0,
    fields=FORM.fields,
    least_reports=1,
    most_reports=CLIENTS,
    opens=0,
    closes=10,
    broadcast=bytes(32),
    url="https://leader.example",
    keys={"leader": public_key(LEADER), "helper": public_key(HELPER)},
)


def reports() -> Reports:
    rng = np.random.default_rng(0)
    roots = rng.standard_normal((CLIENTS, 1, SIDE))
    roots /= np.linalg.norm(roots, axis=2, keepdims=True)
    return Reports(Tree({"relations": Symmetric(roots)}))


def test_operators_who_open_envelopes_publish_what_the_simulation_does():
    """Real keys, seeds and seals; every number is equal, not nearly so."""
    bodies = [FORM.seal(row, MANIFEST) for row in FORM.rows(reports().tree)]
    assert {*map(len, bodies)} == {FORM.fields.body_bytes}
    leader, helper = np.zeros((2, SHARED.size), np.uint32)
    for body in bodies[::-1]:
        found = SealedReport.read(body, numbers=SHARED.size)
        assert found.round_id == MANIFEST.round_id
        leader += from_bytes(found.opened(Role.LEADER, LEADER), SHARED.size)
        helper += stream(found.opened(Role.HELPER, HELPER), SHARED.size)
    both = [
        published(halves, sigma=SHARED.sigma, seed=CONTEXT.key.at(role).secret_of())
        for halves, role in ((leader, "leader"), (helper, "helper"))
    ]
    simulated = channel("two_servers").carry([reports()], CONTEXT).total["relations"]
    assert (SHARED.decoded(both)["relations"] == simulated).all()


def test_two_envelopes_of_one_report_have_nothing_in_common():
    row = FORM.rows(reports().tree)[0]
    one, other = (FORM.seal(row, MANIFEST) for _ in range(2))
    assert len(one) == len(other)
    assert one[:32] == other[:32]  # the round
    seeds = {
        SealedReport.read(body, numbers=SHARED.size).opened(Role.HELPER, HELPER)
        for body in (one, other)
    }
    assert len(seeds) == 2


def test_steps_of_a_manifest_are_whole():
    with pytest.raises(Refused, match=r"0\.5 steps per unit"):
        TwoHalves(replace(SHARED, steps=0.5), CONTEXT.layout)
