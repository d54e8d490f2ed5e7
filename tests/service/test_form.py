"""Forms of every channel: one length, fresh seals, and the numbers of the twin.

A new channel with real operators joins by an invitation in `test_wire_names`, and by
`published`: what its operators make of the rows of all clients.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from test_wire_names import CATALOG, invitations

from tacit.data.catalog import Profiles
from tacit.data.shards import Shards
from tacit.data.strings import Strings
from tacit.errors import BadMessage, BadValue
from tacit.keys import Key
from tacit.method import Server, Unmetered, enrol, participate
from tacit.service import hpke
from tacit.service.federation.accepted_round import AcceptedRound
from tacit.service.federation.invitation import Invitation
from tacit.service.federation.two_halves import TwoHalves
from tacit.service.form import Form
from tacit.service.manifest import AnyManifest, Manifest, read_document
from tacit.transport.channels import Delivery, RoundContext, Sum, channel
from tacit.transport.messages import Broadcast, Reports
from tacit.transport.shared_sum import modulo, play, to_bytes

CLIENTS = 12
NAMES = ("two_servers, two operators", "shuffle, two operators")


@dataclass(frozen=True)
class Subject:
    """The first round of an invitation, and the reports of its clients."""

    invitation: Invitation

    @cached_property
    def server(self) -> Server:
        made = self.invitation
        return made.method.start(made.plan, made.catalog, Key.from_seed(1))

    @cached_property
    def broadcast(self) -> Broadcast:
        return self.invitation.method.broadcast(self.server)

    @cached_property
    def context(self) -> RoundContext:
        key, method = Key.from_seed(5), self.invitation.method
        return method.context(self.server, self.broadcast, key)

    @cached_property
    def form(self) -> Form:
        return self.invitation.form(self.broadcast.phase)

    @cached_property
    def reports(self) -> Reports:
        made, keys = self.invitation, Key.from_seed(0).each(np.arange(CLIENTS))
        who = Profiles(Strings.of(str(user) for user in range(CLIENTS)))
        clients = enrol(made.method, made.plan, who, keys, catalog=made.catalog)
        draw = np.random.default_rng(0)
        held = [draw.choice(len(CATALOG), 4, replace=False) for _ in range(CLIENTS)]
        shards = Shards.of_histories(held, n_items=len(CATALOG))
        ledger = Unmetered()
        return participate(
            made.method, self.broadcast, clients, shards, keys, ledger=ledger
        )[1]

    @cached_property
    def rows(self) -> np.ndarray[Any, Any]:
        return self.form.rows(self.reports.tree)

    @cached_property
    def manifest(self) -> AnyManifest:
        kinds = self.form.fields.spelling.signatories
        public = (hpke.public_key(hpke.new_private_key()) for _ in kinds)
        keys = {one.name: key for one, key in zip(kinds, public, strict=True)}
        return Manifest(
            run=self.invitation.run,
            round=0,
            fields=self.form.fields,
            least_reports=5,
            most_reports=40,
            opens=1,
            closes=2,
            broadcast=bytes(32),
            url="https://a.invalid",
            keys={one.name: keys[one.name] for one in kinds if one.has_key},
        )

    def published(self) -> list[Any]:
        """What honest operators make of the rows of all clients."""
        if isinstance(self.form, TwoHalves):
            both = play(
                modulo(self.rows.sum(axis=0)), self.form.shared, self.context.key
            )
            return [to_bytes(one.published) for one in both]
        return [self.rows.reshape(-1, self.rows.shape[-1])]


@pytest.fixture(params=NAMES)
def subject(request) -> Subject:
    return Subject(invitations()[request.param])


def numbers(delivery: Delivery) -> dict[str, list[Any]]:
    """What a delivery holds, in no order of its messages."""
    if isinstance(delivery, Sum):
        return {name: value.tolist() for name, value in delivery.total.items()}
    leaves = delivery.messages.to_dense().leaves
    return {name: sorted(leaf.values.tolist()) for name, leaf in leaves.items()}


def test_what_operators_deliver_is_what_the_simulation_does(subject):
    """Every number is equal, noise and all: the twin draws it by the same key."""
    carrier = channel(subject.invitation.plan.channel)
    twin = carrier.carry([subject.reports], subject.context)
    found = subject.form.delivery(subject.published(), reports=CLIENTS)
    assert type(found) is type(twin) is carrier.delivers
    assert numbers(found) == numbers(twin)
    assert found.contributors == twin.contributors == CLIENTS


def test_all_bodies_have_the_length_that_the_fields_say(subject):
    form, manifest = subject.form, subject.manifest
    empty = np.zeros_like(subject.rows[:1])
    bodies = [form.seal(row, manifest) for row in [*subject.rows[:3], *empty]]
    assert {*map(len, bodies)} == {form.fields.body_bytes}
    assert subject.rows[0].size == form.row_size


def test_a_row_that_is_sealed_again_is_another_body(subject):
    form, row = subject.form, subject.rows[0]
    one, other = (form.seal(row, subject.manifest) for _ in range(2))
    assert one != other


def test_a_client_seals_the_report_of_one(subject):
    accepted = AcceptedRound(subject.manifest, subject.broadcast, subject.form)
    body = accepted.seal(subject.broadcast, subject.reports.select([0]))
    assert len(body) == subject.form.fields.body_bytes
    with pytest.raises(BadValue, match="12 reports"):
        accepted.seal(subject.broadcast, subject.reports)
    other = replace(accepted, manifest=replace(subject.manifest, round=1))
    assert accepted.question != other.question


def test_a_manifest_repeats_the_fields(subject):
    kind = subject.invitation.form_class.kind
    found = read_document(subject.manifest.document(), kind)
    assert found.fields == subject.form.fields
    assert found == subject.manifest


def test_a_round_without_a_report_delivers_the_same_kind(subject):
    nothing, carrier = subject.form.nothing(), channel(subject.invitation.plan.channel)
    assert type(nothing) is carrier.delivers
    if isinstance(nothing, Sum):
        assert not any(value.any() for value in nothing.total.values())
    else:
        assert not len(nothing.messages)


def test_parts_of_another_length_are_refused(subject):
    [first, *others] = subject.published()
    short = first[:-4] if isinstance(first, bytes) else first[:, :-1]
    with pytest.raises(BadMessage):
        subject.form.delivery([short, *others], reports=CLIENTS)


def test_where_bodies_are_sent(subject):
    assert subject.form.path.format("ab" * 32).startswith("/v1/")
    assert "/" in subject.form.content_type
    assert subject.form.taken
