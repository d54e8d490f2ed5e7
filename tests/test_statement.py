from dataclasses import asdict, replace

import pytest
from dp_accounting import GaussianDpEvent, NonPrivateDpEvent, SelfComposedDpEvent

from tacit.accounting.epsilon import compose
from tacit.errors import BadValue
from tacit.plans import Plan
from tacit.privacy.guarantees import unprotected
from tacit.release import Adjacency, Cell, Cells, Release, Standing, Unit, View
from tacit.statement import Account, Past, account

PLAN = Plan(
    10,
    rounds=4,
    delta=1e-6,
    groups={"young": 4, "old": 6},
)
EVENT = GaussianDpEvent(1.0)

KEYS = {  # DESIGN.md, section 5
    *("what", "seen_by", "group", "unit", "adjacency", "view", "delta", "horizon"),
    *("accountant", "standing", "assumes", "epsilon"),
}


def bare(what: str, *, group: str = "everyone") -> Release:
    return Release(
        what, f"who sees {what}", "each round", unprotected("bare_reports", what), group
    )


def test_every_line_has_every_key_and_no_figure_where_there_is_none():
    told = account(PLAN, (bare("votes"), bare("model")))
    assert len(told.releases) == 2 * len(Unit) * len(View)
    assert len(told.totals) == len(Unit) * len(View)
    for line in told.releases + told.totals:
        assert asdict(line).keys() >= KEYS
        assert (line.standing, line.epsilon) == (Standing.NONE, None)
        assert line.delta == PLAN.delta
        assert "4 rounds" in line.horizon


def test_a_total_names_all_it_is_made_of():
    told = account(PLAN, (bare("votes"), bare("model"), bare("votes")))
    for line in told.totals:
        assert line.what == "everything"
        assert line.reason == "votes; model"
        assert line.seen_by == "who sees votes; who sees model"


def test_a_groups_total_has_the_releases_of_everyone():
    told = account(PLAN, (bare("model"), bare("votes", group="young")))
    reasons = {line.group: line.reason for line in told.totals}
    assert reasons == {"young": "model; votes", "old": "model"}
    only = account(PLAN, (bare("votes", group="young"),))
    assert {line.group for line in only.totals} == {"young"}


def test_a_release_of_an_unknown_group_is_refused():
    with pytest.raises(BadValue, match="'yuong' is not known; did you mean 'young'"):
        account(PLAN, (bare("votes", group="yuong"),))


def test_retraining_shows_in_the_horizon():
    told = account(PLAN, (bare("votes"),), runs=3)
    assert all("3 runs" in line.horizon for line in told.totals)
    with pytest.raises(BadValue, match="runs=0"):
        account(PLAN, (bare("votes"),), runs=0)


def test_nothing_released_is_nothing_to_account_for():
    assert account(PLAN, ()).totals == ()


# --- Figures -------------------------------------------------------------------------


def proven(event, *, adjacency: Adjacency = Adjacency.ZERO_OUT) -> Cells:
    cell = Cell(Standing.PROVEN, "Theorem 1", event, adjacency)
    return {(unit, view): cell for unit in Unit for view in View}


def told(*cells: Cells, plan: Plan = PLAN, runs: int = 1) -> Account:
    releases = [Release(f"r{i}", "server", "once", c) for i, c in enumerate(cells)]
    return account(plan, tuple(releases), runs=runs)


def test_a_figure_comes_with_all_its_fields():
    line = told(proven(EVENT)).releases[0]
    assert line.epsilon == pytest.approx(4.8866, abs=5e-4)
    assert (line.delta, line.accountant) == (1e-6, "PLD")
    assert (line.standing, line.adjacency) == (Standing.PROVEN, Adjacency.ZERO_OUT)


def test_a_total_composes_its_releases():
    total = told(proven(EVENT), proven(EVENT)).totals[0]
    twice = told(proven(SelfComposedDpEvent(EVENT, 2))).totals[0]
    assert total.epsilon == pytest.approx(twice.epsilon, abs=1e-6)
    assert total.epsilon > told(proven(EVENT)).totals[0].epsilon


def test_retraining_composes():
    four = told(proven(EVENT), runs=4).totals[0]
    assert four.epsilon == pytest.approx(
        told(proven(GaussianDpEvent(0.5))).totals[0].epsilon
    )


def test_one_bare_release_leaves_nothing_of_a_total():
    found = told(proven(EVENT), unprotected("bare_reports", "bare"))
    assert found.releases[0].epsilon is not None
    assert {line.epsilon for line in found.totals} == {None}
    assert {line.standing for line in found.totals} == {Standing.NONE}
    assert {line.reason for line in found.totals} == {"bare"}


def test_pure_releases_need_no_delta():
    from tacit.accounting.events import pure_local

    cells = proven(pure_local(1.5), adjacency=Adjacency.REPLACE_ONE)
    total = told(cells, cells, plan=replace(PLAN, delta=None)).totals[0]
    assert (total.epsilon, total.delta) == (pytest.approx(3.0), 0.0)


@pytest.mark.parametrize(
    ("delta", "complaint"), [(None, "no delta"), (1e-4, "delta=0.0001 is more than")]
)
def test_no_guarantee_without_a_small_delta(delta, complaint):
    line = told(proven(EVENT), plan=replace(PLAN, delta=delta)).totals[0]
    assert (line.epsilon, line.standing) == (None, Standing.NONE)
    assert complaint in line.reason


def test_an_event_that_protects_nothing_is_no_guarantee():
    line = told(proven(NonPrivateDpEvent())).totals[0]
    assert (line.epsilon, line.standing) == (None, Standing.NONE)


def test_a_papers_figure_is_never_called_epsilon():
    claimed = Cell(Standing.CLAIMED, "the paper", EVENT, published_epsilon=1.36)
    cells = {(unit, view): claimed for unit in Unit for view in View}
    line = told(cells).releases[0]
    assert (line.epsilon, line.published_epsilon) == (None, 1.36)
    assert line.standing is Standing.CLAIMED


def test_the_worst_total_is_that_of_the_group_that_spends_most():
    releases = tuple(
        replace(Release(g, "server", "once", proven(GaussianDpEvent(z))), group=g)
        for g, z in (("young", 1.0), ("old", 2.0))
    )
    found = account(PLAN, releases)
    assert found.worst(view=View.SERVER) == pytest.approx(4.8866, abs=5e-4)
    assert account(PLAN, (bare("x"),)).worst(view=View.SERVER) is None


# --- Runs that add to earlier ones ---------------------------------------------------


def noisy(what: str, *, group: str = "everyone", noise: float = 3.0) -> Release:
    cell = Cell(Standing.PROVEN, "a theorem", GaussianDpEvent(noise))
    cells: Cells = {(unit, view): cell for unit in Unit for view in View}
    return Release(what, "everyone", "each round", cells, group)


def of_user(lines):
    [line] = [s for s in lines if (s.unit, s.view) == (Unit.USER, View.RELEASE)]
    return line


def epsilon_of(*noises):
    events = [(GaussianDpEvent(noise), "zero_out") for noise in noises]
    return compose(events, delta=PLAN.delta).value


def test_somebody_in_all_runs_spends_the_composition_and_others_their_own():
    past = [Past(10, (noisy("counts"),)), Past(10, (noisy("sums", noise=4.0),))]
    told = account(PLAN, (noisy("more", noise=5.0),), earlier=past)
    assert of_user(told.totals).epsilon == epsilon_of(5.0)
    assert of_user(told.earlier).epsilon == epsilon_of(3.0, 4.0)
    both = of_user(told.both)
    assert both.epsilon == epsilon_of(3.0, 4.0, 5.0)
    assert both.what == "everything, and 2 earlier runs"
    assert "2 finished runs" in both.horizon
    assert account(PLAN, (noisy("more"),)).both == ()


def test_training_again_does_not_repeat_the_earlier_run():
    past = [Past(10, (noisy("counts"),))]
    told = account(PLAN, (noisy("more", noise=5.0),), runs=2, earlier=past)
    assert of_user(told.both).epsilon == epsilon_of(3.0, 5.0, 5.0)
    assert of_user(told.earlier).epsilon == epsilon_of(3.0)


def test_every_group_may_have_been_in_any_group_before():
    past = [Past(10, (noisy("a", group="x"), noisy("b", group="y", noise=4.0)))]
    told = account(PLAN, (noisy("more", group="young", noise=5.0),), earlier=past)
    assert {line.group for line in told.both} == {"young"}
    assert of_user(told.both).epsilon == epsilon_of(3.0, 4.0, 5.0)


def test_what_was_bare_before_stays_bare():
    told = account(PLAN, (noisy("more"),), earlier=[Past(10, (bare("votes"),))])
    assert of_user(told.totals).epsilon is not None
    assert (of_user(told.both).epsilon, of_user(told.both).reason) == (None, "votes")


def test_delta_is_small_enough_for_the_larger_run():
    """1e-6 is too much for a million users, though not for these ten."""
    told = account(PLAN, (noisy("more"),), earlier=[Past(10**6, (noisy("counts"),))])
    assert of_user(told.totals).epsilon is not None
    assert of_user(told.both).epsilon is None
    assert "for 1000000 users" in of_user(told.both).reason
