"""Every release over every channel is the pinned one, in all its cells and words.

All methods with all mechanisms, each sampler, groups, one machine in two roles, nodes:
the ways of `test_statement_words`. Sentences are in the digests, so a better one is
written here too.

PYTHONPATH=tests python tests/test_releases_pinned.py      writes the digests anew
"""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path

import pytest
from test_statement_words import Way, chosen, ways
from test_wire_names import SETTINGS

from tacit.accounting.serialization import release_to_json
from tacit.runtime.ledger import caps_of

PINNED = Path(__file__).parent / "vectors" / "releases.json"
CASES = (*SETTINGS, "gram chosen")


def digests(case: str) -> dict[str, str]:
    """A digest of the releases and caps of each way, by its name."""
    found: dict[str, str] = {}
    for way in chosen() if case == "gram chosen" else ways(case):
        name, n = way.name, 2
        while name in found:  # of one machine, over nodes
            name, n = f"{way.name} {n}", n + 1
        text = json.dumps(told(way), sort_keys=True, default=str)
        found[name] = blake2b(text.encode(), digest_size=8).hexdigest()
    return found


def told(way: Way) -> list[object]:
    """The releases, and the caps of every group, as texts."""
    caps = [
        str(caps_of(way.plan, group, one_operator=way.code))
        for group in way.plan.groups
    ]
    return [*map(release_to_json, way.releases), *caps]


@pytest.mark.parametrize("case", CASES)
def test_releases_and_caps_are_the_pinned_ones(case):
    assert digests(case) == json.loads(PINNED.read_text())[case]


if __name__ == "__main__":
    made = {case: digests(case) for case in CASES}
    PINNED.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n")
