"""Keys of a federation: what each file is, and the front that asks for them."""

import os
import stat

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    load_pem_private_key,
    load_ssh_private_key,
    load_ssh_public_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID

from tacit.cli.flower_keys import write_keys
from tacit.errors import BadValue


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("keys") / "new"
    write_keys(made, nodes=2, hosts=["films.example.org", "10.0.0.7"])
    return made


def certificate(folder, name):
    return x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes())


def test_secrets_are_readable_by_their_owner_alone(folder):
    keys = sorted(folder.glob("*.key"))
    names = [path.stem for path in keys]
    assert names == ["ca", "node-0", "node-1", "operator", "server"]
    for path in keys:
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_the_authority_signs_the_server_and_the_operator(folder):
    ca = certificate(folder, "ca")
    ca.verify_directly_issued_by(ca)
    for name, usage in (
        ("server", ExtendedKeyUsageOID.SERVER_AUTH),
        ("operator", ExtendedKeyUsageOID.CLIENT_AUTH),
    ):
        made = certificate(folder, name)
        made.verify_directly_issued_by(ca)
        found = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage)
        assert [*found.value] == [usage]
        key = load_pem_private_key((folder / f"{name}.key").read_bytes(), None)
        assert key.public_key() == made.public_key()


def test_the_server_has_its_names_and_this_machines(folder):
    found = certificate(folder, "server").extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert found.value.get_values_for_type(x509.DNSName) == [
        "localhost",
        "films.example.org",
    ]
    addresses = map(str, found.value.get_values_for_type(x509.IPAddress))
    assert [*addresses] == ["127.0.0.1", "10.0.0.7"]


def test_nodes_have_keys_as_flower_reads_them(folder):
    for number in range(2):
        key = load_ssh_private_key((folder / f"node-{number}.key").read_bytes(), None)
        shown = load_ssh_public_key((folder / f"node-{number}.pub").read_bytes())
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        assert key.public_key() == shown


def test_the_front_passes_nodes_and_asks_everybody_else(folder):
    text = (folder / "nginx.conf").read_text()
    fleet, control = text.index("/v1/fleet/"), text.index("/v1/control/")
    assert fleet < control
    assert "return 403" not in text[fleet:control]
    assert "$ssl_client_verify != SUCCESS" in text[control:]
    assert "location / { return 403; }" in text


def test_the_front_keeps_no_message(folder):
    """A body in a file would be a node's sum; and workers may not write to 0700."""
    text = (folder / "nginx.conf").read_text()
    assert "proxy_request_buffering off;" in text
    assert "proxy_buffering off;" in text


def test_keys_are_not_overwritten(folder):
    with pytest.raises(BadValue, match="has keys already"):
        write_keys(folder, nodes=1, hosts=[])
