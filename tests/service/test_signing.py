"""What no operator signs, whatever its channel: one contract for all three roles."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from service.federation.rounds import Local
from service.manifests import changed
from service.relay.test_relay import World

from tacit.service.http import Failure

WINDOW = 600
MONTH = 31 * 86_400


@dataclass
class Subject:
    """An operator with an open first round, and manifests of rounds after it."""

    operator: Any
    first: Any
    world: Local | World

    def next(self, **changes):
        """The manifest of the second round, by default a sound one."""
        now = int(self.world.now)
        first, url = self.first, changes.pop("url", None)
        changes = {"previous": first.round_id, "round": 1, **changes}
        window = {"opens": now, "closes": now + WINDOW}
        if url is not None:
            changes["url"] = url
        if isinstance(self.world, Local):  # which has keys of its own for each round
            number, run = changes["round"], changes.get("run", first.run)
            keys = {
                f"{name}_key": getattr(self.world, name).round_key(run, number)
                for name in ("leader", "helper")
            }
            changes = {**keys, **changes}
        return changed(first, **{**window, **changes})

    def status(self, manifest) -> tuple[int, str]:
        """The status and kind of the answer; 200 if it is signed."""
        try:
            self.operator.sign(manifest.document())
        except Failure as error:
            return error.status, error.kind
        return 200, ""


@pytest.fixture(params=["leader", "helper", "relay"])
def subject(request, tmp_path):
    world = World(tmp_path) if request.param == "relay" else Local(tmp_path)
    is_relay = isinstance(world, World)
    first = world.manifest if is_relay else world.open()
    made = Subject(getattr(world, request.param), first, world)
    yield made
    made.operator.store.close() if is_relay else world.stop()


def test_a_sound_manifest_is_signed(subject):
    assert subject.status(subject.next()) == (200, "")


@pytest.mark.parametrize(
    "changes",
    [
        {"round": 7},
        {"previous": bytes(32)},
        {"previous": b""},
        {"round": 0, "previous": bytes(32), "run": bytes([9]) * 16},
    ],
    ids=["after an unknown one", "after another", "after none", "a first one after"],
)
def test_a_round_follows_the_one_before_it_here(subject, changes):
    assert subject.status(subject.next(**changes)) == (403, "Fork")


def test_a_round_has_one_manifest(subject):
    manifest = subject.next()
    assert subject.status(manifest) == (200, "")
    assert subject.status(manifest) == (200, "")
    other = replace(manifest, closes=manifest.closes + 1)
    assert subject.status(other) == (403, "Fork")
    subject.world.now = manifest.closes + 1.0  # nobody has opened it
    later = subject.next()
    assert subject.status(later) == (200, "")


@pytest.mark.parametrize("late", [0, MONTH])
def test_a_window_that_is_over_is_not_signed(subject, late):
    manifest = subject.next()
    subject.world.now = float(manifest.closes + late)
    assert subject.status(manifest) == (403, "Window")


def test_a_window_that_closes_in_years_is_not_signed(subject):
    decade = int(subject.world.now) + 10 * 365 * 86_400
    far = subject.next(opens=decade, closes=decade + 365 * 86_400)
    assert subject.status(far) == (403, "Limits")


def test_too_little_of_a_window_is_not_signed_but_once_signed_it_is_again(subject):
    operator, now = subject.operator, int(subject.world.now)
    operator.limits = replace(operator.limits, least_window=WINDOW)
    sound, short = subject.next(), subject.next(opens=now - WINDOW, closes=now + 30)
    assert subject.status(short) == (403, "Limits")
    assert subject.status(sound) == (200, "")
    subject.world.now = sound.closes - 1.0
    assert subject.status(sound) == (200, "")


def test_reports_go_to_no_other_address(subject):
    status = subject.status(subject.next(url="http://elsewhere.test"))
    is_helper = subject.operator is getattr(subject.world, "helper", None)
    assert status == ((200, "") if is_helper else (403, "Url"))
