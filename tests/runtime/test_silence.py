"""Whether a client answers says nothing of its history, whatever is broadcast."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from quick import some_of

from tacit.data.catalog import Catalog
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.errors import BadMessage
from tacit.keys import Key
from tacit.ledger.records import Refusal
from tacit.methods.dpvae import DpVae
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.fedvae import FedVae
from tacit.methods.fmf_ldp import FmfLdp
from tacit.methods.gram import Gram
from tacit.methods.privrec import PrivRec
from tacit.methods.rivals.dpals import Dpals
from tacit.methods.rivals.dplcf import Dplcf
from tacit.methods.rivals.dpmf import Dpmf
from tacit.methods.rivals.fofl import Fofl
from tacit.plans import Plan
from tacit.privacy import (
    CentralGaussian,
    LocalBits,
    LocalFlips,
    LocalPrivUnit,
)
from tacit.release import Unit, View
from tacit.runtime.client import Client
from tacit.runtime.ledger import statements
from tacit.testing.hostile_broadcasts import not_agreed, within
from tacit.transport.codec import encode_broadcast, wire_size

N_ITEMS = 24
SMALL = {"embedding": 2, "widths": (3,), "local_epochs": 1}
TWO_PHASES = CentralGaussian({"counts": 2.0, "relations": 2.0})
METHODS = {  # the contract tries every method; these answer with their ledger
    "popularity, local": FederatedPopularity(privacy=LocalPrivUnit(1.0)),
    "gram, central": Gram(head=6, privacy=TWO_PHASES),
    "fmf, local": FmfLdp(alpha=4.0, privacy=LocalPrivUnit(1.0)),
    "fmf, bits": FmfLdp(alpha=4.0, privacy=LocalBits(1.0, votes=5)),
    "dpals, central": Dpals(factors=2, head=6, privacy=CentralGaussian(2.0)),
    "dpmf, central": Dpmf(factors=2, head=6, privacy=CentralGaussian(2.0)),
    "dplcf, local": Dplcf(privacy=LocalFlips(1.0)),
    "dpvae, central": DpVae(head=6, latent=2, privacy=CentralGaussian(2.0)),
    "fedvae, moving clip": FedVae(
        hidden=(4,),
        latent=3,
        privacy=CentralGaussian(2.0, clip_quantile=0.5, bit_noise=50.0),
    ),
    "privrec, counts": PrivRec(
        **SMALL,
        count_rounds=1,
        privacy=CentralGaussian({"counts": 2.0, "updates": 2.0}),
    ),
    "fofl": Fofl(**SMALL),
}
CATALOG = Catalog.of_ids([f"item {i}" for i in range(N_ITEMS)])
HISTORIES = ([], list(range(0, N_ITEMS, 2)))


def plan_for(method) -> Plan:
    is_central = isinstance(method.privacy, CentralGaussian)
    return Plan(100, 3, channel="secure_sum" if is_central else "direct", delta=1e-6)


def shards(items) -> Shards:
    owners = np.zeros(len(items), np.int64)
    log = Interactions.of_columns(owners, items, n_users=1, n_items=N_ITEMS)
    return Shards.of(log)


def broadcasts(method):
    """The honest broadcast of each phase."""
    plan = plan_for(method)
    server = method.start(plan, CATALOG, Key.from_seed(0))
    broadcasts = [method.broadcast(replace(server, round=r)) for r in range(2)]
    return {broadcast.phase: broadcast for broadcast in broadcasts}.values()


@pytest.fixture
def answered(tmp_path):
    """How long the answer of a client with this history is, and what it wrote down."""
    made = []

    def answer(method, message: bytes, items) -> tuple[int | None, list]:
        run = str(len(made))  # every question is of a run of its own
        known = {"catalog": CATALOG, "history": shards(items), "run": run}
        made.append(Client(tmp_path / "d.db", method, plan_for(method), **known))
        try:
            said = made[-1].participate(message)
        except BadMessage:
            said = None
        size = None if said is None else len(said)
        ledger = made[-1].ledger
        reasons = [why for name, why, _, _ in ledger.refusals() if name == run]
        made[-1].close()
        return size, reasons

    return answer


@pytest.mark.parametrize("name", some_of([*METHODS], 4))
def test_every_history_answers_whatever_an_agreed_broadcast_holds(answered, name):
    """Singular, huge and empty models included; every report has the one size."""
    method = METHODS[name]
    agreed = method.agreement(plan_for(method), CATALOG)
    for broadcast in broadcasts(method):
        size = wire_size(agreed.reports[broadcast.phase])
        for hostile in within(broadcast, agreed.broadcasts[broadcast.phase]):
            message = encode_broadcast(hostile)
            found = [answered(method, message, items) for items in HISTORIES]
            assert [n for n, _ in found] == [size] * len(HISTORIES)
            assert [why for _, why in found] == [[]] * len(HISTORIES)


@pytest.mark.parametrize(
    "name", some_of(["fmf, bits", "gram, central", "privrec, counts"], 2)
)
def test_every_history_refuses_what_was_not_agreed(tmp_path, name):
    method, written = METHODS[name], []
    hostile = [
        other for broadcast in broadcasts(method) for other in not_agreed(broadcast)
    ]
    is_said = [all(map(_is_finite, one.weights.values())) for one in hostile]
    messages = [
        encode_broadcast(one) for one, can in zip(hostile, is_said, strict=True) if can
    ]
    for place, items in enumerate(HISTORIES):
        known = {"catalog": CATALOG, "history": shards(items)}
        path = tmp_path / f"{place}.db"
        client = Client(path, method, plan_for(method), **known)
        assert not any(answers(client, message) for message in messages)
        assert not client.ledger.taken()
        written.append([row[1:3] for row in client.ledger.refusals()])
        client.close()
    assert written[0] == written[1] != []


def answers(client, message) -> bool:
    try:
        return client.participate(message) is not None
    except BadMessage:
        return False


def _is_finite(value) -> bool:
    """Whether a message can say it at all."""
    return bool(np.isfinite(value).all())


def test_singular_factors_tell_no_item(answered):
    """`solve` fails unless an item is held: the client answers all the same."""
    method = METHODS["fmf, local"]
    [broadcast] = broadcasts(method)
    own, right = set(HISTORIES[1]), 0
    for item in range(1, N_ITEMS):
        factors = np.zeros_like(broadcast.weights["items"])
        factors[0, :2] = 2.0**33
        factors[item, 1] = 2.0**6.25
        message = encode_broadcast(replace(broadcast, weights={"items": factors}))
        size, _ = answered(method, message, HISTORIES[1])
        right += (size is not None) == (item in own)
    assert right == len(own) - 1  # it always answers: right for what is held, no more


@pytest.mark.parametrize("noise", [0.05, 4.999])
def test_a_server_with_another_noise_is_not_answered(tmp_path, noise):
    """The digest covers the mechanism, and the ledger says nothing was spent."""
    plan = Plan(1000, rounds=3, channel="secure_sum", delta=1e-6)
    agreed = FederatedPopularity(privacy=CentralGaussian(5.0))
    used = FederatedPopularity(privacy=CentralGaussian(noise))
    server = used.start(plan, CATALOG, Key.from_os())
    client = Client(
        tmp_path / "d.db", agreed, plan, catalog=CATALOG, history=shards([0, 2])
    )
    assert client.participate(encode_broadcast(used.broadcast(server))) is None
    assert [why for _, why, _, _ in client.ledger.refusals()] == [Refusal.OTHER_PLAN]
    [line] = [
        one
        for one in statements(client.ledger)
        if (one.unit, one.view) == (Unit.USER, View.SERVER)
    ]
    assert line.epsilon in (None, 0.0)
    client.close()


def test_one_number_does_not_ask_for_memory(tmp_path):
    """A broadcast of a hundred thousand million items is refused by its layout."""
    method = METHODS["gram, central"]
    client = Client(
        tmp_path / "d.db",
        method,
        plan_for(method),
        catalog=CATALOG,
        history=shards([1]),
    )
    broadcast, *_ = broadcasts(method)
    many = {**broadcast.weights, "n_items": np.array([10**11])}
    assert (
        client.participate(encode_broadcast(replace(broadcast, weights=many))) is None
    )
    assert [why for _, why, _, _ in client.ledger.refusals()] == [Refusal.OTHER_LAYOUT]
    with pytest.raises(BadMessage, match="no broadcast that was agreed has more"):
        client.participate(bytes(10**6))
    client.close()
