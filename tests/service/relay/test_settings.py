"""Settings files of relay and collector."""

import pytest

from tacit.errors import BadExperiment
from tacit.service.relay.settings import read_collector, read_relay

RELAY = """
folder = "relay"
signing_key = "signing.key"
relay_key = "{key}"
collector_key = "{key}"
pair_secret = "pair.secret"
url = "https://relay.example"
collector_url = "https://collector.example:8100"

[limits]
least_uploads = 1000
needs_tickets = true
"""
COLLECTOR = """
experiment = "experiment.toml"
folder = "collector"
signing_key = "signing.key"
relay_key = "{key}"
collector_key = "{key}"
pair_secret = "pair.secret"
secret = "own.secret"
relay_url = "https://relay.example:8101"
reports_url = "https://relay.example"

[schedule]
window = 86400
"""


def written(tmp_path, text):
    path = tmp_path / "role.toml"
    path.write_text(text.format(key="ab" * 32))
    return path


def test_both_are_read_and_paths_stand_beside_the_file(tmp_path):
    relay = read_relay(written(tmp_path, RELAY))
    assert (relay.limits.least_uploads, relay.limits.needs_tickets) == (1000, True)
    assert relay.folder == tmp_path / "relay"
    collector = read_collector(written(tmp_path, COLLECTOR))
    assert collector.schedule.window == 86400
    assert collector.experiment == tmp_path / "experiment.toml"


def test_all_problems_are_in_one_message(tmp_path):
    text = RELAY.replace("least_uploads = 1000", "least_uploads = 0\nsorts = 1")
    with pytest.raises(BadExperiment) as caught:
        read_relay(written(tmp_path, text))
    assert "sorts" in str(caught.value)
    text = COLLECTOR.replace('public = ""', "").replace("{key}", "xy")
    with pytest.raises(BadExperiment, match="hexadecimal"):
        read_collector(written(tmp_path, text))


def test_the_secret_of_the_pair_goes_encrypted_or_over_a_named_host(tmp_path):
    for read, text, name, host in (
        (read_relay, RELAY, "collector_url", "collector.example"),
        (read_collector, COLLECTOR, "relay_url", "relay.example"),
    ):
        plain = text.replace(f'{name} = "https', f'{name} = "http')
        assert plain != text
        with pytest.raises(BadExperiment, match=f"{name}=.*is not encrypted"):
            read(written(tmp_path, plain))
        named = f'plain_http_hosts = ["{host}"]' + plain
        assert read(written(tmp_path, named)).plain_http_hosts == (host,)
        url = text.replace('"https://relay.example"', '"http://relay.example"')
        with pytest.raises(BadExperiment, match="Clients refuse"):
            read(written(tmp_path, url))
