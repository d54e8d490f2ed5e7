"""`tacit serve relay | collector | relay-tickets`."""

import pytest
from service.relay.places import Place

from tacit.service.relay.relay_store import RelayStore

pytest.importorskip("starlette")


@pytest.mark.parametrize("command", ["relay", "collector", "relay-tickets"])
def test_every_command_says_what_it_does(tacit, command):
    found = tacit("serve", command, "--help")
    assert found.code == 0
    assert "--config" in (found.out + found.err)


@pytest.mark.parametrize("command", ["relay", "collector"])
def test_a_broken_file_is_told_with_its_problems(tacit, tmp_path, command):
    path = tmp_path / "role.toml"
    path.write_text("colour = 1\n")
    found = tacit("serve", command, "--config", str(path))
    assert found.code != 0
    assert "colour" in (found.out + found.err)


def test_tickets_are_handed_out_beside_the_relay(tacit, tmp_path):
    place = Place(tmp_path)
    store = RelayStore(tmp_path / "relay")
    path = tmp_path / "relay.toml"
    path.write_text(
        f'folder = "relay"\nsigning_key = "relay/keys/signing.key"\n'
        f'relay_key = "{place.keys["relay"]}"\n'
        f'collector_key = "{place.keys["collector"]}"\n'
        f'pair_secret = "pair.secret"\nurl = "https://a"\ncollector_url = "https://b"\n'
    )
    found = tacit("serve", "relay-tickets", "--config", str(path), "--count", "3")
    assert found.code == 0, found.out + found.err
    assert len(found.out.split()) == 3
    assert len([*store.file.execute("SELECT * FROM tickets")]) == 3
    store.close()
