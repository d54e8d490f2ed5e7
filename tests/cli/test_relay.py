"""`tacit serve relay | collector | relay-tickets | relay-destroy`."""

import httpx
import pytest
from service.relay.places import Place, both, patiently

from tacit.service.relay.relay_store import RelayStore

pytest.importorskip("starlette")


@pytest.mark.parametrize(
    "command", ["relay", "collector", "relay-tickets", "relay-destroy"]
)
def test_every_command_says_what_it_does(tacit, command):
    found = tacit("serve", command, "--help")
    assert found.code == 0
    assert "--config" in (found.out + found.err)
    assert "docs/relay.md has examples" in " ".join((found.out + found.err).split())


@pytest.mark.parametrize("command", ["relay", "collector"])
def test_a_broken_file_is_told_with_its_problems(tacit, tmp_path, command):
    path = tmp_path / "role.toml"
    path.write_text("colour = 1\n")
    found = tacit("serve", command, "--config", str(path))
    assert found.code != 0
    assert "colour" in (found.out + found.err)


def written(place, **addresses):
    """The settings of the place's relay, in a file."""
    path = place.folder / "relay.toml"
    path.write_text(
        f'folder = "relay"\nsigning_key = "relay/keys/signing.key"\n'
        f'relay_key = "{place.keys["relay"]}"\n'
        f'collector_key = "{place.keys["collector"]}"\n'
        f'pair_secret = "pair.secret"\nurl = "https://a"\ncollector_url = "https://b"\n'
        + "".join(f'{name} = "{at}"\n' for name, at in addresses.items())
    )
    return path


def test_an_operator_destroys_a_round_of_its_running_relay(tacit, tmp_path):
    place = Place(tmp_path)
    run = place.run()
    with both(place, run) as urls:
        patiently(lambda: httpx.get(f"{urls.public}/v1/manifest").status_code == 200)
        path = written(place, private=urls.relay.removeprefix("http://"))
        name = run.invitation.run.hex()[:8]
        ask = ("serve", "relay-destroy", "--config", str(path), "--run")
        for wrong in ((name, "--round", "2"), ("ffff", "--round", "1")):
            found = tacit(*ask, *wrong)
            assert found.code != 0
            assert "there are:" in " ".join((found.out + found.err).split())
        found = tacit(*ask, name, "--round", "1", "--json")
        assert found.code == 0, found.out + found.err
        assert '"destroyed"' in found.out
    found = tacit(*ask, name, "--round", "1")
    assert found.code != 0
    assert "only a running relay" in " ".join((found.out + found.err).split())


def test_tickets_are_handed_out_beside_the_relay(tacit, tmp_path):
    place = Place(tmp_path)
    store = RelayStore(tmp_path / "relay")
    path = written(place)
    found = tacit("serve", "relay-tickets", "--config", str(path), "--count", "3")
    assert found.code == 0, found.out + found.err
    assert len(found.out.split()) == 3
    assert len([*store.file.execute("SELECT * FROM tickets")]) == 3
    store.close()
