"""Manifests of both channels: bytes and verdicts are those that were pinned.

PYTHONPATH=tests python tests/service/test_manifest.py      writes the digests anew

The file was written with the code that had one manifest per channel.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from service.drawn_manifests import CHANNELS, canonical, compared, damaged, tables

from tacit.errors import BadMessage, Refused
from tacit.service.federation import manifest as of_two_servers
from tacit.service.relay import manifest as of_a_relay

PINNED = Path(__file__).parents[1] / "vectors" / "manifests.json"
SOUND, DAMAGED, COMPARED = 4_000, 20_000, 4_000  # of each channel
READ = {
    "two_servers": of_two_servers.read_document,
    "shuffle": of_a_relay.read_document,
}


def sound_pin(channel: str) -> dict[str, str]:
    """Digests of the documents and round ids of sound manifests."""
    documents, names = sha256(), sha256()
    for table in tables(channel, 1, SOUND):
        manifest = READ[channel](canonical(table))
        documents.update(manifest.document())
        names.update(manifest.round_id)
    return {"documents": documents.hexdigest(), "names": names.hexdigest()}


def verdicts(channel: str) -> Iterator[bytes]:
    """The name of each damaged document that is read, or the kind of its refusal."""
    for document in damaged(channel, 2, DAMAGED):
        try:
            yield READ[channel](document).round_id
        except BadMessage:
            yield b"refused"


def verdict_pin(channel: str) -> dict[str, Any]:
    found = [*verdicts(channel)]
    digest = sha256(b"\0".join(found)).hexdigest()
    return {"verdicts": digest, "read": sum(one != b"refused" for one in found)}


def comparison(channel: str, agreed, shown, now: int, known) -> bool:
    """Whether a client takes part in the round of a manifest."""
    own, other = (READ[channel](canonical(one)) for one in (agreed, shown))
    try:
        if channel == "two_servers":
            if other.least_reports < own.least_reports:
                return False
            expected = of_two_servers.Agreed(
                *(own.run, own.leaf, own.numbers, own.steps, own.limit, own.multiplier)
            )
            of_two_servers.check_manifest(other, expected, now=now, known=known)
        else:
            expected = of_a_relay.Agreed(
                *(own.run, own.report_bytes, own.reports_per_user),
                *(own.least_uploads, own.needs_tickets),
            )
            of_a_relay.check_manifest(other, expected, now=now, known=known)
    except Refused:
        return False
    return True


def comparison_pin(channel: str) -> dict[str, Any]:
    found = [comparison(channel, *one) for one in compared(channel, seed=3, n=COMPARED)]
    digest = sha256(bytes(found)).hexdigest()
    return {"comparisons": digest, "answered": sum(found)}


def pins() -> Mapping[str, Mapping[str, Any]]:
    return {
        one: sound_pin(one) | verdict_pin(one) | comparison_pin(one) for one in CHANNELS
    }


def pinned(channel: str) -> dict[str, Any]:
    found: dict[str, dict[str, Any]] = json.loads(PINNED.read_text())
    return found[channel]


@pytest.mark.parametrize("channel", CHANNELS)
def test_four_thousand_manifests_have_the_pinned_bytes(channel):
    found = sound_pin(channel)
    assert found == {name: pinned(channel)[name] for name in found}


@pytest.mark.parametrize("channel", CHANNELS)
def test_twenty_thousand_damaged_documents_are_judged_as_before(channel):
    found = verdict_pin(channel)
    assert found == {name: pinned(channel)[name] for name in found}


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_client_answers_the_same_manifests_as_before(channel):
    found = comparison_pin(channel)
    assert found == {name: pinned(channel)[name] for name in found}


if __name__ == "__main__":
    PINNED.write_text(json.dumps(pins(), indent=1) + "\n")
