"""What a client compares before it touches its history."""

from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest
from service.relay.places import Place, a_manifest, shards

from tacit.errors import BadMessage, Refused
from tacit.keys import Key
from tacit.service import hpke
from tacit.service.federation.accepted_round import accept
from tacit.service.federation.simulated_clients import SimulatedClients
from tacit.service.relay.uploads import Upload, seal_info

PRIVATE = bytes([9]) * 32


@pytest.fixture
def run(tmp_path):
    return Place(tmp_path).run()


def manifest_of(run, /, **changes):
    form = run.form(run.start)
    made = {
        "run": run.invitation.run,
        "report_bytes": form.message_bytes,
        "reports_per_user": form.count,
        "broadcast": sha256(run.broadcast(run.start)).digest(),
        "collector_key": hpke.public_key(PRIVATE),
    }
    return a_manifest(**{**made, **changes})


def look(run, /, least=None, **changes):
    manifest = manifest_of(run, **changes)
    message = run.broadcast(run.start)
    now = manifest.opens + 1
    return accept(run.invitation, manifest, message, now=now, known={}, least=least)


def test_an_upload_of_every_client_has_the_messages_of_its_report(run):
    epoch = look(run)
    many = SimulatedClients(
        "https://a.invalid", run.invitation, shards(4), Key.from_seed(0)
    )
    rows = many._computed(epoch, np.arange(4))
    info = seal_info(epoch.manifest.round_id)
    for row in rows:
        body = epoch.form.seal(row, epoch.manifest)
        assert len(body) == epoch.manifest.fields.body_bytes
        sealed = Upload.read(body, epoch.manifest).sealed
        opened = sorted(hpke.opened(one, PRIVATE, info) for one in sealed)
        assert opened == sorted(one.tobytes() for one in row)


def test_a_minimum_below_the_agreed_one_is_refused(run):
    with pytest.raises(Refused, match="agreed are 5 at least"):
        look(run, least_reports=4)
    look(run, least_reports=6)


def test_a_minimum_below_the_clients_own_floor_is_refused(run):
    """The larger of both counts: a floor below the plan's changes nothing."""
    with pytest.raises(Refused, match="joined with --least-uploads 7"):
        look(run, least=7, least_reports=6)
    look(run, least=7, least_reports=7)
    with pytest.raises(Refused, match="agreed are 5 at least"):
        look(run, least=3, least_reports=4)


@pytest.mark.parametrize(
    "changes", [{"report_bytes": 16}, {"reports_per_user": 7}, {"run": bytes(16)}]
)
def test_other_messages_are_refused(run, changes):
    with pytest.raises(Refused, match="agreed is"):
        look(run, **changes)


def test_another_broadcast_is_refused(run):
    with pytest.raises(BadMessage, match="digest that both operators signed"):
        look(run, broadcast=bytes(32))


def test_another_round_is_refused(run):
    with pytest.raises(Refused, match="round 2 with the broadcast of round 1"):
        look(run, round=1, previous=bytes(32))


def test_two_manifests_for_one_broadcast_ask_two_things(run):
    one = look(run)
    two = replace(one, manifest=manifest_of(run, least_reports=6))
    assert one.question != two.question
