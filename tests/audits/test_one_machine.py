"""Both aggregators on one machine: nothing is promised against whoever runs it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from audits.broken_parts import SHARED, broken
from audits.subjects import CANARIES, POPULARITY, SCALE

from tacit.audits import small_world
from tacit.audits.one_machine import check_one_machine
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.privacy import CentralGaussian
from tacit.release import View
from tacit.runtime import ledger

GROUPED = replace(SHARED, groups={"strict": 1_000, "open": CANARIES - 1_000})
SCALED = FederatedPopularity(privacy=CentralGaussian(1.5, scale=SCALE))


def failed(method, plan):
    return [check.name for check in check_one_machine(method, plan) if not check.ok]


@pytest.mark.parametrize(
    ("method", "plan"), [(POPULARITY, SHARED), (SCALED, GROUPED)], ids=["all", "groups"]
)
def test_an_honest_account_promises_nothing_against_the_server(method, plan):
    assert failed(method, plan) == []


def test_a_promise_of_two_machines_on_one_is_seen():
    """The mutant: one machine is accounted for as two would be."""
    with broken(ledger, "of_one_operator", lambda releases, _: tuple(releases))():
        assert failed(POPULARITY, SHARED) == [
            "figures against a server that is both aggregators"
        ]


def test_a_promise_to_readers_that_changes_is_seen():
    """The mutant: the view of readers is taken for that of the server."""

    def mistaken(releases, reason):
        return tuple(
            replace(
                one,
                cells={
                    (unit, view): one.cells[unit, View.COLLUSION]
                    for unit, view in one.cells
                },
            )
            for one in releases
        )

    with broken(ledger, "of_one_operator", mistaken)():
        assert failed(POPULARITY, SHARED) == [
            "figures to readers that are not those of two machines"
        ]


def test_the_run_is_played_by_one_operator_and_by_two():
    one = small_world.simulation_of(POPULARITY, SHARED, one_operator="one_machine")
    assert one.one_operator == "one_machine"
    assert small_world.simulation_of(POPULARITY, SHARED).one_operator == ""
