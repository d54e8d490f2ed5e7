"""Envelopes: two operators who open them publish what the simulation does."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.mechanisms.gaussian import GaussianSum
from tacit.service.federation.envelope import agreed_on, envelope
from tacit.service.federation.manifest import Manifest, check_manifest
from tacit.service.federation.sealing import Role, SealedReport, public_key
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
AGREED = agreed_on(SHARED, run=RUN)
MANIFEST = Manifest(
    run=RUN,
    round=0,
    leaf=AGREED.leaf,
    numbers=AGREED.numbers,
    steps=AGREED.steps,
    limit=AGREED.limit,
    sigma=SHARED.sigma,
    least_reports=1,
    most_reports=CLIENTS,
    opens=0,
    closes=10,
    broadcast=bytes(32),
    leader_url="https://leader.example",
    leader_key=public_key(LEADER),
    helper_key=public_key(HELPER),
)


def reports() -> Reports:
    rng = np.random.default_rng(0)
    roots = rng.standard_normal((CLIENTS, 1, SIDE))
    roots /= np.linalg.norm(roots, axis=2, keepdims=True)
    return Reports(Tree({"relations": Symmetric(roots)}))


def test_operators_who_open_envelopes_publish_what_the_simulation_does():
    """Real keys, seeds and seals; every number is equal, not nearly so."""
    bodies = [envelope(reports().select([i]), SHARED, MANIFEST) for i in range(CLIENTS)]
    leader, helper = np.zeros((2, SHARED.size), np.uint32)
    for body in bodies[::-1]:
        found = SealedReport.read(body, numbers=SHARED.size)
        assert found.round_id == MANIFEST.round_id
        leader += from_bytes(found.opened(Role.LEADER, LEADER), SHARED.size)
        helper += stream(found.opened(Role.HELPER, HELPER), SHARED.size)
    both = [
        published(halves, sigma=MANIFEST.sigma, seed=CONTEXT.key.at(role).secret_of())
        for halves, role in ((leader, "leader"), (helper, "helper"))
    ]
    simulated = channel("two_servers").carry([reports()], CONTEXT).total["relations"]
    assert (SHARED.decoded(both)["relations"] == simulated).all()


def test_a_manifest_of_the_sum_is_as_agreed():
    check_manifest(MANIFEST, AGREED, now=5, known={})
    quiet = replace(MANIFEST, sigma=SHARED.sigma - 1)
    with pytest.raises(Refused, match="the noise of one operator"):
        check_manifest(quiet, AGREED, now=5, known={})


def test_two_envelopes_of_one_report_have_nothing_in_common():
    one, other = (envelope(reports().select([0]), SHARED, MANIFEST) for _ in range(2))
    assert len(one) == len(other)
    assert one[:32] == other[:32]  # the round
    seeds = {
        SealedReport.read(body, numbers=SHARED.size).opened(Role.HELPER, HELPER)
        for body in (one, other)
    }
    assert len(seeds) == 2


def test_an_envelope_has_the_report_of_one_client():
    with pytest.raises(BadValue, match="25 reports"):
        envelope(reports(), SHARED, MANIFEST)


def test_steps_of_a_manifest_are_whole():
    with pytest.raises(Refused, match=r"0\.5 steps per unit"):
        agreed_on(replace(SHARED, steps=0.5), run=RUN)
