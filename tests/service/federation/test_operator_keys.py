"""Keys and secrets are their owner's, and none is replaced."""

import stat

import pytest

from tacit.errors import Refused
from tacit.service.federation.operator_keys import make_secret, make_signing_key
from tacit.service.federation.settings import read_secret, read_signing_key
from tacit.service.signed_document import signing_public_key


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_signing_key_is_private_and_its_public_key_is_not(tmp_path):
    public = make_signing_key(tmp_path / "keys")
    private = tmp_path / "keys" / "signing.key"
    assert mode(private) == 0o600
    assert mode(tmp_path / "keys" / "signing.pub") == 0o644
    assert (tmp_path / "keys" / "signing.pub").read_text().strip() == public.hex()
    assert signing_public_key(read_signing_key(private)) == public
    assert len(public) == 32


def test_two_keys_and_two_secrets_differ(tmp_path):
    assert make_signing_key(tmp_path / "a") != make_signing_key(tmp_path / "b")
    for name in ("one", "two"):
        make_secret(tmp_path / name)
    secrets = {read_secret(tmp_path / name) for name in ("one", "two")}
    assert {len(one) for one in secrets} == {64}
    assert len(secrets) == 2
    assert mode(tmp_path / "one") == 0o600


@pytest.mark.parametrize("file", ["signing.key", "signing.pub"])
def test_what_somebody_relies_on_is_not_replaced(tmp_path, file):
    (tmp_path / file).write_text("known")
    with pytest.raises(Refused, match="is there already"):
        make_signing_key(tmp_path)
    assert (tmp_path / file).read_text() == "known"


def test_a_secret_is_not_replaced(tmp_path):
    make_secret(tmp_path / "pair.secret")
    before = read_secret(tmp_path / "pair.secret")
    with pytest.raises(Refused, match="is there already"):
        make_secret(tmp_path / "pair.secret")
    assert read_secret(tmp_path / "pair.secret") == before
