"""Settings of each role: read whole, refused whole, and secrets that are secret."""

from pathlib import Path

import pytest

from tacit.errors import BadExperiment, BadValue
from tacit.service.federation.settings import (
    AggregatorSettings,
    CoordinatorSettings,
    address,
    public_signing_key,
    read_secret,
    read_settings,
    read_signing_key,
)
from tacit.system_errors import DiskError

KEY, OTHER = "ab" * 32, "cd" * 32
LEADER = f"""
role = "leader"
folder = "data"
signing_key = "keys/signing.key"
leader_key = "{KEY}"
helper_key = "{OTHER}"
coordinator_secret = "coordinator.secret"
pair_secret = "/etc/pair.secret"
url = "https://leader.test"
helper_url = "https://helper.test"

[limits]
least_multiplier = 0.5
least_reports = 1000
needs_tickets = true

[intake]
seconds = 5.0
"""
COORDINATOR = f"""
experiment = "gram.toml"
folder = "run"
leader_url = "https://a"
helper_url = "https://b"
reports_url = "https://c"
leader_key = "{KEY}"
helper_key = "{OTHER}"
leader_secret = "a"
helper_secret = "b"
secret = "c"

[schedule]
window = 60
enough = 10
"""


@pytest.fixture
def read(tmp_path):
    def read_(text: str, cls=AggregatorSettings):
        path = tmp_path / "settings.toml"
        path.write_text(text, encoding="utf-8")
        return read_settings(path, cls)

    return read_


def test_a_leaders_settings_are_read_with_paths_beside_the_file(read, tmp_path):
    found = read(LEADER)
    assert found.folder == tmp_path / "data"
    assert found.pair_secret == Path("/etc/pair.secret")
    assert (found.limits.least_multiplier, found.limits.least_reports) == (0.5, 1000)
    assert found.limits.needs_tickets
    assert found.intake.seconds == 5.0


def test_a_coordinators_settings_are_read(read, tmp_path):
    found = read(COORDINATOR, CoordinatorSettings)
    assert found.experiment == tmp_path / "gram.toml"
    assert (found.schedule.window, found.schedule.enough) == (60, 10)
    assert found.rotation is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('role = "leader"', 'role = "both"', "role"),
        ('url = "https://leader.test"', "", "a leader needs url"),
        (KEY, KEY[2:], "64 hexadecimal digits"),
        (KEY, "zz" * 32, "64 hexadecimal digits"),
        ("least_multiplier = 0.5", "least_multiplier = 0.0", "least_multiplier"),
        ("least_multiplier = 0.5", "", "least_multiplier"),
        ("seconds = 5.0", "second = 5.0", "second"),
        ('folder = "data"', 'folder = "data"\nfoo = 1', "foo"),
        ('folder = "data"', 'folder = "data"\nprivate = "8101"', "must be host:port"),
        ('role = "leader"', "role = ", "is no TOML"),
    ],
)
def test_what_is_wrong_is_named(read, old, new, said):
    assert old in LEADER
    with pytest.raises(BadExperiment, match=said):
        read(LEADER.replace(old, new))


def test_all_problems_are_told_at_once(read):
    text = LEADER.replace("0.5", "-1.0").replace("seconds = 5.0", "few = 'x'")
    with pytest.raises(BadExperiment) as found:
        read(text)
    assert len(found.value.problems) == 2


def test_a_file_that_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(DiskError, match="no such file"):
        read_settings(tmp_path / "none.toml", AggregatorSettings)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_secret_that_others_may_read_is_refused(tmp_path, mode):
    path = tmp_path / "pair.secret"
    path.write_text("s" * 64)
    path.chmod(mode)
    with pytest.raises(BadValue, match=r"chmod 600 pair\.secret"):
        read_secret(path)


@pytest.mark.parametrize("text", ["", "s" * 31, "s" * 40 + "!", "two words " * 9])
def test_a_secret_is_long_and_fits_into_a_header(tmp_path, text):
    path = tmp_path / "pair.secret"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(BadValue, match="at least 32 letters and digits") as found:
        read_secret(path)
    assert not text or text not in str(found.value)


@pytest.mark.parametrize("text", ["ab" * 31, "ab" * 33, "g" * 64])
def test_what_is_no_signing_key_is_refused_and_not_shown(tmp_path, text):
    path = tmp_path / "signing.key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(BadValue, match="is no signing key") as found:
        read_signing_key(path)
    assert text not in str(found.value)


def test_a_public_key_has_32_bytes():
    assert public_signing_key(KEY, "leader_key") == bytes.fromhex(KEY)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("127.0.0.1:80", "127.0.0.1", 80), ("[::1]:0", "::1", 0), ("a.b:9", "a.b", 9)],
)
def test_an_address_is_host_and_port(text, host, port):
    found = address(text, "private")
    assert (found.host, found.port) == (host, port)


@pytest.mark.parametrize("text", ["", "8000", ":80", "host:", "host:-1", "host:99999"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(BadValue):
        address(text, "private")


# --- URLs -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("https://helper.test", "http://helper.test", "helper_url.*plain_http_hosts"),
        ("https://helper.test", "https://u:p@helper.test", "must be like"),
        ("https://leader.test", "http://leader.test", "url=.*Clients refuse"),
    ],
)
def test_a_leader_sends_no_secret_unencrypted(read, old, new, said):
    with pytest.raises(BadExperiment, match=said):
        read(LEADER.replace(old, new))


@pytest.mark.parametrize("name", ["leader_url", "helper_url", "reports_url"])
def test_a_coordinator_neither(read, name):
    text = COORDINATOR.replace(f'{name} = "https://', f'{name} = "http://')
    assert text != COORDINATOR
    with pytest.raises(BadExperiment, match=f"{name}=.*is not encrypted"):
        read(text, CoordinatorSettings)


def test_hosts_of_a_private_network_are_named(read):
    plain = COORDINATOR.replace("https://a", "http://a:8101")
    found = read('plain_http_hosts = ["a"]\n' + plain, CoordinatorSettings)
    assert found.leader_url == "http://a:8101"
    for hosts in ('["b"]', '["*"]', '["http://a"]'):
        with pytest.raises(BadExperiment, match="plain_http_hosts"):
            read(f"plain_http_hosts = {hosts}\n" + plain, CoordinatorSettings)
    # Clients reach no private network, so what is for them is encrypted all the same.
    with pytest.raises(BadExperiment, match="Clients refuse"):
        read(
            'plain_http_hosts = ["c"]\n' + COORDINATOR.replace("https://c", "http://c"),
            CoordinatorSettings,
        )
