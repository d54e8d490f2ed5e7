"""Invitations: what is read is what was written, or it is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest

from tacit.data.catalog import Catalog
from tacit.data.features import Categories, Numeric, Vectors
from tacit.data.strings import Strings
from tacit.errors import BadMessage, BadValue, Refused
from tacit.evaluation.released_metric import Measured, ReleasedMetric
from tacit.method import CentralGaussian, LocalPrivUnit
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.gram import Gram
from tacit.plans import Plan
from tacit.release import Unit, View
from tacit.sampling import Everyone, Poisson
from tacit.service.federation.invitation import Invitation
from tacit.transport.channels import shared_sum

ITEMS, LEADER, HELPER = 12, bytes([1]) * 32, bytes([2]) * 32
PLAN = Plan(
    40,
    rounds=3,
    channel="two_servers",
    delta=1e-6,
    target_epsilon=4.0,
    min_contributors=10,
)
CATALOG = Catalog(
    Strings.of([f"item {n}" for n in range(ITEMS)]),
    Strings.of([f"Ein Titel № {n}" for n in range(ITEMS)]),
    {
        "genre": Categories.of([["a", "b"][: n % 3] for n in range(ITEMS)]),
        "year": Numeric(np.arange(ITEMS, dtype=np.float32)),
        "text": Vectors(np.eye(ITEMS, dtype=np.float32)),
    },
)
CENTRAL = CentralGaussian()
MEASURED = Measured.of(
    Gram(head=5, privacy=CENTRAL), ReleasedMetric(0.1, 3), Everyone()
)
METHODS = {
    "gram": Gram(head=5, content=("genre", "year"), privacy=CENTRAL),
    "federated_popularity": FederatedPopularity(privacy=CENTRAL),
    "measured": MEASURED,
}


def invitation(name: str = "gram", plan: Plan = PLAN, **changes) -> Invitation:
    method = METHODS[name].calibrated(plan)
    own = "gram" if name == "measured" else name
    found = Invitation(own, method, plan, CATALOG, LEADER, HELPER, "Films", "a@b.c")
    return replace(found, **changes)


@pytest.mark.parametrize("name", METHODS)
def test_what_is_read_is_what_was_written(name):
    made = invitation(name)
    found = Invitation.decode(made.encode())
    assert found.run == made.run == made.method.agreement(PLAN, CATALOG).digest
    assert (found.method, found.plan) == (made.method, made.plan)
    assert (found.name, found.title, found.contact) == (made.name, "Films", "a@b.c")
    assert [*found.catalog.titles] == [*CATALOG.titles]
    assert (found.leader, found.helper) == (LEADER, HELPER)
    assert found.digest == made.digest
    assert found.encode() == made.encode()


@pytest.mark.parametrize(
    "plan",
    [
        replace(PLAN, target_view="release"),
        replace(PLAN, target_epsilon=8, delta=1e-7),
        replace(PLAN, groups={"young": 30, "old": 10}),
        replace(
            PLAN,
            groups={"z": np.int64(30), "a": np.int64(10)},
            target_epsilon={"z": 2.0, "a": 4.0},
        ),
    ],
    ids=["release view", "whole numbers", "groups", "targets by group"],
)
def test_a_plan_is_read_back_exactly(plan):
    made = invitation("federated_popularity", plan)
    found = Invitation.decode(made.encode())
    assert (found.plan.digest, found.run) == (plan.digest, made.run)
    assert [*found.plan.groups] == [*plan.groups]


def test_a_round_has_the_numbers_of_the_simulations_channel():
    made = invitation("measured")
    server = made.method.start(PLAN, CATALOG, None)
    broadcast = made.method.broadcast(server)
    context = made.method.context(server, broadcast, None)
    assert made.form(broadcast.phase).shared == shared_sum(context)
    assert made.form(broadcast.phase).fields.numbers == ITEMS
    assert made.least_reports == 10


def test_every_changed_byte_is_refused():
    content = invitation("federated_popularity").encode()
    for place in range(0, len(content), 29):
        changed = bytearray(content)
        changed[place] ^= 1
        try:
            found = Invitation.decode(bytes(changed))
        except BadMessage:
            continue
        assert found.digest != invitation("federated_popularity").digest


@pytest.mark.parametrize("n", [0, 3, 4, 100, -1])
def test_a_cut_invitation_is_refused(n):
    with pytest.raises(BadMessage):
        Invitation.decode(invitation().encode()[:n])


def edited(change) -> bytes:
    content = invitation("federated_popularity").encode()
    length = int.from_bytes(content[:4], "little")
    header = json.loads(content[4 : 4 + length])
    change(header)
    text = json.dumps(header, separators=(",", ":")).encode()
    return len(text).to_bytes(4, "little") + text + content[4 + length :]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda h: h.update(v=1), "version 1, and this program reads 2"),
        (lambda h: h.update(extra=1), "its entries must be"),
        (lambda h: h["method"].update(name="os.system"), "'os.system'"),
        (lambda h: h["method"].update(unheard="of"), "unheard"),
        (lambda h: h["plan"].update(population=True), "population of the plan"),
        (lambda h: h["plan"].update(sampler="once"), "everyone is asked"),
        (lambda h: h["plan"].update(sampler="fixed"), "sampler 'fixed'"),
        (lambda h: h["plan"].update(before=1), "a plan has"),
        (lambda h: h["plan"].update(channel="direct"), "has no two operators"),
        (lambda h: h["catalog"].update(part="Dataset"), "cannot be read"),
        (lambda h: h.update(leader=h["helper"]), "they are one operator"),
        (lambda h: h.update(leader="AAAA"), "needed are 32"),
        (lambda h: h.update(title="two\nlines"), "one line"),
        (lambda h: h.update(title=3), "must be a text"),
        (lambda h: h.update(one_machine=0), "must be true or false"),
        (lambda h: h["plan"].update(delta=float("nan")), "NaN is no number"),
    ],
)
def test_what_is_not_an_invitation_is_refused(change, reason):
    with pytest.raises(BadMessage, match=reason):
        Invitation.decode(edited(change))


def test_another_order_or_a_space_is_refused():
    def turned(header):
        header["title"] = header.pop("title")

    with pytest.raises(BadMessage, match="not in the one form"):
        Invitation.decode(edited(turned))
    content = invitation().encode()
    n = int.from_bytes(content[:4], "little")
    spaced = (n + 1).to_bytes(4, "little") + content[4 : 4 + n] + b" "
    with pytest.raises(BadMessage, match="not in the one form"):
        Invitation.decode(spaced + content[4 + n :])


def test_what_two_servers_cannot_carry_is_not_offered():
    local = FederatedPopularity(privacy=LocalPrivUnit(1.0))
    with pytest.raises(Refused, match="everyone is asked"):
        invitation("federated_popularity", plan=replace(PLAN, sampler=Poisson(0.5)))
    with pytest.raises(Refused, match="neither noise nor bound"):
        invitation("federated_popularity", method=local)
    with pytest.raises(BadValue, match="one operator"):
        invitation(helper=LEADER)


def test_another_edition_of_one_experiment_is_another_run():
    """What is agreed stays; the name under which rounds and ledgers count does not."""
    first, second = invitation(), invitation(edition="2026-12")
    assert first.run == first.agreement.digest == second.agreement.digest
    assert second.run != first.run
    assert Invitation.decode(second.encode()).run == second.run
    assert invitation(edition="2027-01").run not in (first.run, second.run)


def test_a_trial_of_one_machine_is_another_run_that_promises_less():
    two, one = invitation(), invitation(one_machine=True)
    assert one.digest != two.digest
    assert one.run not in (two.run, invitation(edition="one machine").run)
    assert one.agreement.digest == two.agreement.digest
    assert Invitation.decode(one.encode()).one_operator == one.one_operator != ""
    assert two.one_operator == ""
    server = (Unit.USER, View.SERVER)
    assert all(release.cells[server].has_epsilon for release in two.releases)
    assert not any(release.cells[server].has_epsilon for release in one.releases)
    readers = (Unit.USER, View.RELEASE)
    assert all(release.cells[readers].has_epsilon for release in one.releases)
