import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tacit import cipher
from tacit.errors import BadValue

SECRET = bytes(range(32))


def test_the_stream_is_that_of_the_published_vectors(federation_vectors):
    wanted = federation_vectors["stream"]
    stream = cipher.key_stream(bytes.fromhex(wanted["seed"]))
    found = np.frombuffer(stream(4 * len(wanted["first"])), "<u4")
    assert found.tolist() == wanted["first"]


def test_the_stream_goes_on_where_it_stopped():
    whole, parts = cipher.key_stream(SECRET)(100), cipher.key_stream(SECRET)
    assert parts(1) + parts(36) + parts(63) == whole


def test_blocks_are_those_of_the_library():
    inputs = np.arange(10, dtype=np.uint64).reshape(5, 2)
    theirs = Cipher(algorithms.AES256(SECRET), modes.ECB()).encryptor()
    wanted = np.frombuffer(theirs.update(inputs.astype("<u8").tobytes()), "<u8")
    np.testing.assert_array_equal(cipher.blocks(SECRET, inputs).ravel(), wanted)


def test_no_blocks():
    assert cipher.blocks(SECRET, np.empty((0, 2), np.uint64)).shape == (0, 2)


def test_a_known_answer():
    """FIPS 197, appendix C.3."""
    plain = bytes.fromhex("00112233445566778899aabbccddeeff")
    block = np.frombuffer(plain, "<u8").astype(np.uint64).reshape(1, 2)
    found = cipher.blocks(SECRET, block).astype("<u8").tobytes()
    assert found.hex() == "8ea2b7ca516745bfeafc49904b496089"


@pytest.mark.parametrize("n", [0, 16, 31, 33])
def test_other_secrets_are_refused(n):
    with pytest.raises(BadValue, match=f"a secret of {n} bytes; needed are 32"):
        cipher.key_stream(bytes(n))
