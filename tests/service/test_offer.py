"""Tests of what a server gives away."""

from hashlib import sha256

from tacit.service.offer import Resource


def test_a_digest_is_of_the_content_alone():
    found = Resource(b"weights")
    assert found.digest == sha256(b"weights").hexdigest()
    assert found.digest == Resource(b"weights", "text/plain").digest
    assert found.digest != Resource(b"Weights").digest
