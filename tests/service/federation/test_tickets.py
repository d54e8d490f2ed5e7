"""Tickets are handed out beside a running leader, which keeps digests alone."""

import pytest

from tacit.errors import BadRun, BadValue
from tacit.service.federation.store import FILE_NAME, AggregatorStore
from tacit.service.federation.tickets import hand_out, ticket_digest


def test_a_running_leader_knows_new_tickets_and_stays_the_only_one(tmp_path):
    store = AggregatorStore(tmp_path, "leader")
    made = hand_out(tmp_path, 3)
    assert len({*made}) == 3
    assert all(len(bytes.fromhex(one)) == 16 for one in made)
    kept = {row for (row,) in store.file.execute("SELECT ticket FROM tickets")}
    assert kept == {ticket_digest(one.encode()) for one in made}
    with store.changing():
        pass  # it is still the one that the anchor knows
    store.close()
    content = b"".join(one.read_bytes() for one in tmp_path.glob(f"{FILE_NAME}*"))
    assert not any(one.encode() in content for one in made)
    assert not any(bytes.fromhex(one) in content for one in made)


def test_a_ticket_is_the_same_in_capital_letters():
    assert ticket_digest(b"AB" * 16) == ticket_digest(b"ab" * 16)


def test_what_cannot_be_handed_out(tmp_path):
    with pytest.raises(BadRun, match="start the service there once"):
        hand_out(tmp_path, 1)
    with pytest.raises(BadValue, match="count=0"):
        hand_out(tmp_path, 0)
