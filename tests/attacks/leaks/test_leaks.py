from __future__ import annotations

import json
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tacit.attacks import leaks
from tacit.attacks.leaks import Attempt, Histories, Leak, Score
from tacit.attacks.leaks.item_gradient import ItemGradient
from tacit.attacks.leaks.membership import MembershipByLoss
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.statement import Statement


@dataclass(frozen=True)
class Spy:
    """An attack that came with a method."""

    name: str = "spy"
    method: str | None = "toy"
    question: str = "who?"

    def attack(self, histories: Histories, key: Key) -> tuple[Attempt, ...]:
        [first, *_] = ItemGradient().attack(histories, key)
        return (replace(first, scores={"seen": Score(0.5, None, 0.25)}),)


def test_our_own_attacks_are_known_by_their_names() -> None:
    assert leaks.known()[:2] == ("item_gradient", "membership_by_loss")
    attacks: list[Leak] = [ItemGradient(), MembershipByLoss()]
    assert [leak.name for leak in attacks] == [*leaks.known()[:2]]


@pytest.mark.parametrize("source", ["frappe", "Frappe"])
def test_frappe_is_refused_before_it_is_looked_for(source: str) -> None:
    with pytest.raises(Refused, match=r"(?i)no attack runs on frappe: its terms"):
        leaks.run(source=source)


def test_an_unknown_attack_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadValue, match="did you mean 'item_gradient'"):
        leaks.run(["item_gradints"])


def test_findings_are_plain_data_and_come_back() -> None:
    [found] = leaks.run(["item_gradient"], n_users=40)
    document = json.loads(json.dumps(found.to_json()))
    assert document["users"] == 40
    assert document["simulation"] is True
    lines = [attempt["statement"] for attempt in document["attempts"]]
    assert [Statement.from_json(line) for line in lines] == [
        attempt.statement for attempt in found.attempts
    ]
    off = [a["mechanism"] for a in document["attempts"] if not a["is_protected"]]
    assert off == ["none: the raw gradient", "clipping alone"]


def test_the_same_seed_gives_the_same_finding() -> None:
    first, again, other = (
        leaks.run(["item_gradient"], n_users=30, seed=seed)[0].to_json()
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first["attempts"] != other["attempts"]


def test_an_attack_can_come_with_a_method(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("spy", f"{__name__}:Spy", "tacit.leaks")
    monkeypatch.setattr(EntryPoint, "load", lambda self: Spy)
    monkeypatch.setattr(leaks, "entry_points", lambda group: [entry])
    [found] = leaks.run(["spy"], n_users=30)
    assert found.attempts[0].scores == {"seen": Score(0.5, None, 0.25)}


def test_attacks_on_a_method_run_where_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = EntryPoint("spy", f"{__name__}:Spy", "tacit.leaks")
    monkeypatch.setattr(EntryPoint, "load", lambda self: Spy)
    monkeypatch.setattr(leaks, "_OWN", {})
    monkeypatch.setattr(leaks, "entry_points", lambda group: [entry])
    assert len(leaks.run(method="toy", n_users=30)) == 1
    assert leaks.run(method="other", n_users=30) == leaks.run(n_users=30) == ()


@pytest.mark.data
def test_real_users_are_found_out_too(real_data: Path) -> None:
    """MovieLens: the raw gradient gives a history away, PrivUnitG at 1 does not."""
    [found] = leaks.run(
        ["item_gradient"], source="movielens-100k", n_users=100, where=real_data
    )
    scores = {a.mechanism: a.scores.popitem()[1] for a in found.attempts}
    assert scores["none: the raw gradient"].mean == 1.0
    guarded = scores["PrivUnitG on the device, epsilon 1"]
    assert guarded.mean < guarded.chance + 0.05
