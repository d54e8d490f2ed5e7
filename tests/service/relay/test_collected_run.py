"""Runs over a relay: what they promise, what they refuse, and their server's bytes.

Also `tacit.service.federation.invited_run`, which has the files of every such run.
"""

import numpy as np
import pytest
from methods.test_privaterec import described
from service.federation.services import catalog
from service.relay.places import GRAM, Place, experiment

from tacit.codes import Code, sentences
from tacit.errors import BadMessage, BadValue, Refused
from tacit.release import Adjacency, Standing, Unit, View
from tacit.service.federation.invitation import Invitation
from tacit.service.relay.services import run_of

MANY = {"data": {"population": 5000}}


def epsilons(run):
    return {
        line.view: line.epsilon
        for line in run.assembled.simulation.account.totals
        if line.unit is Unit.USER
    }


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def the_run(place, *, one_machine=False, **privacy):
    changes = {**MANY, "privacy": {"min_contributors": 2000, **privacy}}
    settings = place.collector(one_machine=one_machine)
    return run_of(experiment(**changes), catalog(15), settings)


class TestStatements:
    def test_the_shuffle_line_is_for_the_relays_minimum(self, place):
        found = epsilons(the_run(place))
        assert found[View.COLLUSION] == pytest.approx(12.0)  # 6 votes of 2 each
        assert found[View.SERVER] == found[View.RELEASE] < 4

    def test_assumed_sybils_are_taken_off_the_minimum(self, place):
        plain = epsilons(the_run(place))
        fewer = epsilons(the_run(place, min_contributors=1200))
        less = the_run(place, assumed_sybils=800)
        assert epsilons(less)[View.SERVER] == pytest.approx(fewer[View.SERVER])
        assert epsilons(less)[View.SERVER] > plain[View.SERVER]
        assert epsilons(less)[View.COLLUSION] == plain[View.COLLUSION]
        # The relay waits for all 2,000: who is invented is among them.
        assert less.invitation.least_reports == 2000
        [release] = less.assembled.simulation.releases
        cell = release.cells[Unit.USER, View.SERVER]
        assert Code("honest_clients_beside_sybils", (1200, 2000, 800)) in cell.assumes
        assert cell.adjacency is Adjacency.REPLACE_ONE

    def test_the_line_says_what_makes_uploads_users(self, place):
        """The figure is the same: what is assumed for it is not."""

        def said(**privacy):
            run = the_run(place, **privacy)
            [release] = run.assembled.simulation.releases
            cell = release.cells[Unit.USER, View.SERVER]
            return cell.standing, sentences(cell.assumes), epsilons(run)

        standing, plain, own = said()
        assert standing is Standing.ASSUMED
        assert str(Code("uploads_not_invented")) in plain
        standing, some, _ = said(assumed_sybils=7)
        assert standing is Standing.ASSUMED
        assert str(Code("few_uploads_invented", (7,))) in some
        standing, tickets, same = said(counted_by="tickets")
        assert standing is Standing.PROVEN
        assert "one ticket per user" in tickets
        assert "invented" not in tickets
        assert own == same

    def test_clients_agree_to_what_is_counted(self, place):
        made = the_run(place, counted_by="tickets").invitation
        assert made.run != the_run(place).invitation.run
        assert Invitation.decode(made.encode()).plan.counted_by == "tickets"

    def test_on_one_machine_the_server_sees_what_both_see(self, place):
        found = epsilons(the_run(place, one_machine=True))
        assert found[View.SERVER] == found[View.COLLUSION] == pytest.approx(12.0)
        assert found[View.RELEASE] < 4
        [release] = the_run(place, one_machine=True).assembled.simulation.releases
        assert "one machine" in release.cells[Unit.USER, View.SERVER].reason

    def test_all_may_not_be_sybils(self, place):
        with pytest.raises(BadValue, match="nobody honest"):
            the_run(place, assumed_sybils=2000)


class TestRefusals:
    def test_a_relay_that_mixes_nobody_is_refused(self, place):
        with pytest.raises(Refused, match="hides nobody"):
            the_run(place, min_contributors=1)

    def test_a_minimum_above_the_population_is_refused(self, place):
        """Before: the collector started, and every step failed."""
        with pytest.raises(Refused, match=r"below privacy\.min_contributors = 5,001"):
            the_run(place, min_contributors=5001)
        the_run(place, min_contributors=5000)

    def test_reports_that_clients_do_not_protect_are_refused(self, place):
        changes = {
            **MANY,
            "method": {"name": "federated_popularity"},
            "privacy": {
                **{"mechanism": "central", "epsilon": None, "votes": None},
                **{"target_epsilon": 4.0, "min_contributors": 100},
            },
        }
        with pytest.raises(Refused):
            run_of(experiment(**changes), catalog(15), place.collector())

    def test_samplers_that_a_client_cannot_play_are_refused(self, place):
        sampler = {"rounds": 2, "sampler": {"name": "poisson", "rate": 0.5}}
        with pytest.raises(Refused, match="'everyone' or 'once'"):
            place.run(experiment(run=sampler))


def test_an_invitation_over_a_relay_has_one_form(place):
    made = the_run(place, assumed_sybils=10).invitation
    found = Invitation.decode(made.encode())
    assert found.plan == made.plan
    assert found.run == made.run
    assert found.encode() == made.encode()
    other = the_run(place, assumed_sybils=11).invitation
    assert other.run != made.run  # clients agree to the number, too


@pytest.mark.parametrize("changes", [{}, GRAM], ids=["fmf_ldp", "gram"])
def test_the_server_is_on_the_disk_as_it_was(place, changes):
    run = place.run(experiment(**changes))
    server = run.start
    found = run.from_bytes(run.to_bytes(server), round=0)
    assert found.round == server.round
    for name, value in server.weights.items():
        np.testing.assert_array_equal(found.weights[name], value)
        assert found.weights[name].dtype == value.dtype
    assert found.memory.keys() == server.memory.keys()
    with pytest.raises(BadMessage, match="cannot be read"):
        run.from_bytes(b"x", round=0)


def test_noise_in_floats_is_refused(place):
    """PrivateRec under Laplace noise is there to compare, not to release."""
    method = {"name": "privaterec_local", "dimensions": None, "interests": 2}
    privacy = {"mechanism": "local_laplace", "epsilon": 4.0, "votes": None}
    changes = experiment(method=method, privacy=privacy)
    with pytest.raises(Refused, match="LocalNoisyClicks"):
        run_of(changes, described(15), place.collector())
