"""Releases to terms, spending to statements, and simulated clients that refuse."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from methods.privrec.worlds import described
from quick import some_of
from runtime.chosen import Chooses, choosing

from tacit.accounting.calibration import gaussian_epsilon
from tacit.accounting.views import allowed_participations
from tacit.codes import Code
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.ledger.budget import Cap
from tacit.ledger.durable import ClientLedger
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.fedvae import FedVae
from tacit.methods.fmf_ldp import FmfLdp
from tacit.methods.gram import Gram
from tacit.methods.privrec import PrivRec
from tacit.plans import Plan
from tacit.privacy import CentralGaussian, LocalBits, LocalPrivUnit
from tacit.privacy.guarantees import summed, unprotected
from tacit.privacy.privacy import SEEN_BY
from tacit.release import CELLS, EVERYONE, Cell, Release, Standing, Unit, View
from tacit.runtime.checkpoint import load_checkpoint
from tacit.runtime.ledger import caps_of, run_statements, statements, terms_of
from tacit.runtime.run import RunDirectory, play
from tacit.runtime.simulate import Simulation
from tacit.sampling import Everyone, FixedSize, Once, Poisson, PoissonByGroup
from tacit.statement import account
from tacit.testing.contract import mixed_world

WORLD = mixed_world()
USERS = len(WORLD.shards)
LOCAL = FederatedPopularity(privacy=LocalPrivUnit(1.0))
CENTRAL = FederatedPopularity(privacy=CentralGaussian(3.0))
SERVER = Unit.USER, View.SERVER


def plan(**changed) -> Plan:
    return Plan(**{"population": USERS, "rounds": 12, "delta": 1e-6} | changed)


# --- Terms ---------------------------------------------------------------------------


def test_a_local_report_is_charged_a_round_whoever_looks():
    terms = terms_of(LOCAL, plan())
    [release] = terms.releases
    assert (terms.rounds, terms.most, terms.population) == (12, 12, USERS)
    assert {release.cells[name].each.epsilon for name in CELLS} == {1.0}
    assert {release.cells[name].event.count for name in CELLS} == {12}
    assert terms_of(LOCAL, plan(sampler=Once())).most == 1


def test_a_noisy_sum_is_charged_a_run_to_readers_and_a_round_to_the_server():
    made = plan(channel="secure_sum", sampler=Poisson(0.1))
    [release] = terms_of(CENTRAL, made).releases
    kinds = {view: release.cells[Unit.USER, view] for view in View}
    assert kinds[View.RELEASE].each is None
    assert kinds[View.RELEASE].event.count == 12
    assert kinds[View.SERVER].each.noise_multiplier == 3.0
    assert kinds[View.SERVER].assumes == (Code("trusted_aggregator"),)
    assert kinds[View.COLLUSION].event is None
    over_direct = terms_of(CENTRAL, plan()).releases[0]
    assert over_direct.cells[SERVER].event is None


@dataclass(frozen=True)
class Claims(FederatedPopularity):
    def releases(self, plan):
        event = GaussianDpEvent(2.0)
        cell = Cell(Standing.CLAIMED, "the paper says so", event)
        cells = {(unit, view): cell for unit in Unit for view in View}
        return (Release("votes", "server", "each round", cells),)


def test_a_claim_is_no_promise():
    terms = terms_of(Claims(), plan())
    [release] = terms.releases
    assert not any(release.guarantee(name).has_epsilon for name in CELLS)
    for line in run_statements(terms, [0], delta=1e-6):
        assert (line.epsilon, line.standing) == (None, Standing.CLAIMED)


@dataclass(frozen=True)
class ByGroup(FederatedPopularity):
    """Each public group has a noise of its own."""

    def releases(self, plan):
        return tuple(
            Release(
                *("noisy sum", "server", "each round"),
                summed(plan, GaussianDpEvent(z), reason="a test", group=group),
                group=group,
            )
            for group, z in {"careful": 5.0, "open": 2.0}.items()
        )


GROUPS = {"careful": 4, "open": USERS - 4}


def test_each_group_has_its_own_terms():
    made = plan(groups=GROUPS, channel="secure_sum")
    for group, z in {"careful": 5.0, "open": 2.0}.items():
        terms = terms_of(ByGroup(), made, group=group)
        [release] = terms.releases
        assert terms.group == group
        assert release.cells[SERVER].each.noise_multiplier == z
    with pytest.raises(BadValue, match="known: careful, open"):
        terms_of(ByGroup(), made, group="closed")


# --- Rounds that are not alike -------------------------------------------------------


def noisy(later: str, **more) -> dict:
    """Two rounds count under noise 2; the phase that follows has noise 5."""
    privacy = CentralGaussian({"counts": 2.0, later: 5.0}, **more)
    return {"count_rounds": 2, "privacy": privacy}


MOVING = {"clip": 1.0, "clip_quantile": 0.5, "bit_noise": 50.0}
IN_TURN = {
    "privrec": PrivRec(embedding=3, widths=(5,), **noisy("updates", **MOVING)),
    "fedvae": FedVae(hidden=(4,), latent=2, **noisy("gradients")),
    "gram": Gram(count_share=0.1, head=5, **noisy("relations")),
}


def in_turn(name: str, **changed):
    """A method that counts in two of twelve rounds, and its plan."""
    settings = {"sampler": Poisson(0.1), "channel": "secure_sum"}
    return IN_TURN[name], plan(**settings | changed)


@pytest.mark.parametrize("name", IN_TURN)
def test_every_round_is_charged_for_the_noise_that_it_has(name):
    """What adds the noise of a round is what the ledger reads for it."""
    method, made = in_turn(name)
    world = described(WORLD)
    server = method.start(made, world.catalog, Key.from_seed(0))
    terms = terms_of(method, made)
    for round_ in range(made.rounds):
        noise = method.noise(method.broadcast(replace(server, round=round_)), made)
        [release] = [one for one in terms.releases if one.is_made_in(round_)]
        assert release.guarantee(SERVER).each == noise.event


@pytest.mark.parametrize("name", IN_TURN)
def test_a_whole_run_costs_what_the_plan_says_and_no_device_more(name):
    """Of the two kinds of rounds one is never charged for the other."""
    method, made = in_turn(name)
    terms = terms_of(method, made)
    planned = account(made, method.releases(made))
    told = run_statements(terms, range(12), delta=made.delta)
    for line, said in zip(told, planned.totals, strict=True):
        assert line.epsilon == said.epsilon
    for rounds, a, b in (([0, 1], 2, 0), ([3, 7, 11], 0, 3), ([1, 5], 1, 1)):
        server = run_statements(terms, rounds, delta=made.delta)[1]
        noise = (a / 2.0**2 + b / 5.0**2) ** -0.5
        expected = gaussian_epsilon(noise, delta=made.delta)
        assert server.view is View.SERVER
        assert server.epsilon == pytest.approx(expected, rel=1e-6)
        assert server.epsilon < planned.worst(view=View.SERVER)


def test_who_speaks_once_is_charged_for_the_dearer_in_any_round():
    method, made = in_turn("gram", sampler=Once())
    [release] = terms_of(method, made).releases
    assert release.rounds is None
    assert release.cells[SERVER].each.noise_multiplier == 2.0


def test_a_line_speaks_of_what_was_said_only():
    """Counts are bare, updates are not: who came later reads of updates alone."""
    method, made = in_turn("gram")
    counted, related = method.releases(made)
    cells = unprotected("bare_reports", "counts are bare")

    class Half(FederatedPopularity):
        def releases(self, plan):
            return replace(counted, cells=cells), related

    terms = terms_of(Half(), made)
    early, late = (run_statements(terms, [r], delta=1e-6)[1] for r in (0, 5))
    assert (early.epsilon, early.standing) == (None, Standing.NONE)
    assert early.reason == "counts are bare"
    assert late.standing is Standing.PROVEN
    assert "bare" not in late.reason


def test_simulated_devices_refuse_by_what_they_said():
    """Noise 2 while counting costs 6.25 of the later rounds, of which 17 fit."""
    method, made = in_turn("gram", rounds=40, sampler=Poisson(0.7))
    state = play_all(simulation(method, made, caps=(Cap(4.0, 1e-6),)))
    counts, others = state.taken.T
    assert {0, 1, 2} == {*counts.tolist()}
    assert others.tolist() == [{0: 17, 1: 11, 2: 5}[n] for n in counts.tolist()]


# --- Noise that is chosen as a run goes ----------------------------------------------


FOUR = {"rounds": 4, "channel": "secure_sum"}


def test_a_run_of_chosen_phases_is_agreed_to_as_one_release():
    """Whatever is chosen costs no more than that, and so the terms say nothing else."""
    terms = terms_of(choosing("dear", "cheap"), plan(**FOUR))
    [release] = terms.releases
    cell = release.cells[SERVER]
    assert (cell.event, cell.each) == (GaussianDpEvent(2.0), None)
    assert release.rounds is None
    assert terms.total_multiplier == 2.0
    for rounds in ([0], range(3)):
        server = run_statements(terms, rounds, delta=1e-6)[1]
        assert server.epsilon == gaussian_epsilon(2.0, delta=1e-6)


def test_a_run_of_chosen_phases_is_played_until_it_chooses_none():
    made = simulation(choosing("dear", "cheap", "cheap"), plan(**FOUR))
    states = [state for state, _ in made.run(made.start())]
    for state, share in zip(states, (0.5, 0.75, 1.0), strict=True):
        assert state.spent.tolist() == pytest.approx([share / 2.0**2] * USERS)
    assert states[-1].taken.tolist() == [[3]] * USERS
    assert made.method.is_over(states[-1].server)


def after_two_dear_rounds():
    """The whole budget is spent, and the method wants another round."""
    made = simulation(choosing("dear", "dear", "cheap"), plan(**FOUR))
    state = made.start()
    for _ in range(2):
        state, _ = made.step(state)
    return made, state


def test_the_engine_refuses_a_choice_that_passes_the_budget():
    made, state = after_two_dear_rounds()
    said = r"Chooses chose 'cheap' for round 2.* 1\.250 times the budget"
    with pytest.raises(Refused, match=said):
        made.step(state)


def test_devices_refuse_what_passes_the_budget_by_their_own_count():
    """A server that forgot what it spent: its own check passes, and nobody answers."""
    made, state = after_two_dear_rounds()
    blank = replace(state.server, memory=made.start().server.memory)
    after, tally = made.step(replace(state, server=blank))
    assert (tally.asked, tally.took_part) == (USERS, 0)
    assert after.spent.tolist() == state.spent.tolist()


def test_a_target_is_met_by_the_whole_run_however_it_chooses():
    made = plan(**FOUR, target_epsilon=3.0)
    method = Chooses(privacy=CentralGaussian()).calibrated(made)
    [server] = [
        line.epsilon
        for line in account(made, method.releases(made)).totals
        if (line.unit, line.view) == SERVER
    ]
    assert 2.99 < server <= 3.0
    assert play_all(simulation(method, made)).taken.tolist() == [[3]] * USERS


def test_chosen_phases_need_everyone_in_every_round():
    """The account of a cohort drawn in secret is made before anything is chosen."""
    for sampler in (Poisson(0.5), Once()):
        with pytest.raises(Refused, match="only if everyone is asked in every round"):
            choosing("dear").releases(plan(**FOUR, sampler=sampler))


# --- Statements ----------------------------------------------------------------------


VOTES = FmfLdp(factors=2, privacy=LocalBits(epsilon=0.5, votes=2))
MANY = 10**7  # users, of whom a delta of 1e-6 would lay ten bare


@pytest.mark.parametrize("method", [LOCAL, CENTRAL, VOTES, FederatedPopularity()])
@pytest.mark.parametrize("channel", ["direct", "secure_sum", "shuffle"])
@pytest.mark.parametrize("sampler", [Everyone(), FixedSize(USERS // 2), Poisson(0.1)])
@pytest.mark.parametrize("users", [USERS, MANY])
@pytest.mark.parametrize("delta", some_of([1e-6, None, 1e-9, 1e-4], 2))
def test_a_device_that_took_part_in_everything_has_spent_what_the_plan_said(
    method, channel, sampler, users, delta
):
    """Every field of every line that both have, whatever makes a figure none."""
    made = plan(
        population=users,
        channel=channel,
        sampler=sampler,
        delta=delta,
        min_contributors=min(users, 100_000),
        rounds=3,
    )
    told = run_statements(terms_of(method, made), range(3), delta=made.delta)
    planned = account(made, method.releases(made)).totals
    for spent, said in zip(told, planned, strict=True):
        assert said == replace(
            spent, **{name: getattr(said, name) for name in TOLD_DIFFERENTLY}
        )


TOLD_DIFFERENTLY = ("what", "group", "horizon", "assumes")


@pytest.mark.parametrize("sampler", [Poisson(1e-4), FixedSize(1000)])
def test_noise_on_a_sum_of_many_needs_a_small_delta_whatever_the_adjacency(sampler):
    """1/(10 N) is asked of a cohort of fixed size as well: it is an exchange."""
    made = plan(population=MANY, channel="secure_sum", sampler=sampler)
    terms = terms_of(CENTRAL, made)
    for line in (
        *account(made, CENTRAL.releases(made)).totals,
        *run_statements(terms, range(12), delta=made.delta),
    ):
        assert (line.epsilon, line.standing) == (None, Standing.NONE)
        if line.view is not View.COLLUSION:
            assert "delta=1e-06 is more than 1e-08" in line.reason
    small = replace(made, delta=1e-8)
    lines = run_statements(terms, range(12), delta=1e-8)
    assert account(small, CENTRAL.releases(small)).worst(view=View.RELEASE) is not None
    assert lines[0].standing is Standing.PROVEN


def test_a_relay_with_too_large_a_delta_adds_nothing_to_what_clients_do():
    """Plan and ledger fall back on the pure figure, which needs no relay."""
    made = plan(
        population=MANY,
        rounds=1,
        sampler=Once(),
        channel="shuffle",
        min_contributors=1_000_000,
    )
    for delta, expected in ((1e-6, (1.0, 0.0)), (1e-8, (None, 1e-8))):
        told = replace(made, delta=delta)
        for lines in (
            account(told, VOTES.releases(told)).totals,
            run_statements(terms_of(VOTES, told), [0], delta=delta),
        ):
            [server] = [one for one in lines if (one.unit, one.view) == SERVER]
            assert server.standing is Standing.PROVEN
            assert server.delta == expected[1]
            if expected[0] is None:
                assert server.epsilon < 1.0
                assert "relay" in server.assumes
            else:
                assert (server.epsilon, server.assumes) == (1.0, "nothing")


def test_a_line_says_everything_that_qualifies_its_figure(tmp_path):
    with ClientLedger(tmp_path / "x") as ledger:
        ledger.join("run", terms_of(LOCAL, plan()), state=b"")
        for round_ in range(2):
            ledger.permits("run", round_, asked=b"")
        [line] = {
            replace(s, unit=Unit.USER, view=View.SERVER) for s in statements(ledger)
        }
    assert line.horizon == "for 2 messages in 1 run, of at most 12 agreed"
    assert (line.standing, line.adjacency) == (Standing.PROVEN, "replace_one")
    assert (line.epsilon, line.delta) == (2.0, 0.0)  # pure, where that costs nothing
    assert (line.assumes, line.seen_by) == ("nothing", SEEN_BY)
    assert line.channel == plan().channel


def test_the_figure_is_at_the_delta_of_the_cap_or_at_one_that_is_small_enough(tmp_path):
    big = Plan(10_000_000, rounds=3, channel="secure_sum")
    with ClientLedger(tmp_path / "x") as ledger:
        ledger.join("run", terms_of(CENTRAL, big), state=b"")
        ledger.permits("run", 0, asked=b"")
        assert {line.delta for line in statements(ledger)} == {1e-8}
        ledger.set_cap(Cap(9.0, 1e-9))
        deltas = {(s.unit, s.view): s.delta for s in statements(ledger)}
        assert deltas[Unit.USER, View.SERVER] == 1e-9
        ledger.set_cap(Cap(9.0, 1e-5))  # too large to be called a guarantee here
        deltas = {(s.unit, s.view): s.delta for s in statements(ledger)}
        assert deltas[Unit.USER, View.SERVER] == 1e-8


def test_a_figure_rests_on_the_promise_that_proves_it():
    """Many rounds without sampling: what the server saw of one says less."""
    made = plan(channel="secure_sum", rounds=1000)
    release, *_ = run_statements(terms_of(CENTRAL, made), [0], delta=1e-6)
    assert release.view is View.RELEASE
    assert release.epsilon == pytest.approx(gaussian_epsilon(3.0, delta=1e-6))
    assert release.assumes == str(Code("trusted_aggregator"))


def test_what_released_nothing_has_no_figure(tmp_path):
    """Neither of a ledger in which nothing is, nor of a run that nobody was in."""
    with ClientLedger(tmp_path / "x") as ledger:
        told = [
            *statements(ledger),
            *run_statements(terms_of(LOCAL, plan()), (), delta=0.1),
        ]
    assert len(told) == 2 * len(CELLS)
    for line in told:
        assert (line.epsilon, line.delta) == (None, None)
        assert line.standing is Standing.NOTHING


# --- Simulation ----------------------------------------------------------------------


def simulation(method, made, **settings) -> Simulation:
    return Simulation(
        method,
        made,
        WORLD.catalog,
        WORLD.profiles,
        WORLD.shards,
        Key.from_seed(7),
        **settings,
    )


def play_all(made: Simulation):
    *_, (state, _) = made.run(made.start())
    return state


def test_a_target_is_a_cap_in_the_release_view():
    assert caps_of(plan(), EVERYONE) == ()
    [cap] = caps_of(plan(target_epsilon=3.0), EVERYONE)
    assert cap == Cap(3.0, 1e-6, view=View.RELEASE)
    assert caps_of(plan(target_epsilon=3.0, delta=None), EVERYONE)[0].delta == 0


def test_over_two_servers_a_target_is_a_cap_in_its_own_view():
    [cap] = caps_of(plan(channel="two_servers", target_epsilon=3.0), EVERYONE)
    assert cap == Cap(3.0, 1e-6, view=View.SERVER)
    readers = plan(channel="two_servers", target_epsilon=3.0, target_view="release")
    assert caps_of(readers, EVERYONE)[0].view is View.RELEASE


def test_every_group_has_a_cap_of_its_own():
    made = plan(target_epsilon={"careful": 1.0, "open": 3.0}, groups=GROUPS)
    found = [caps_of(made, group)[0].epsilon for group in GROUPS]
    assert found == [1.0, 3.0]


def test_simulated_devices_stop_at_their_cap():
    """Three reports of epsilon 1 and no fourth; the rounds go on without them."""
    made = simulation(LOCAL, plan(), caps=(Cap(3.0, 0.0),), chunk=4)
    state = play_all(made)
    assert state.taken.tolist() == [[3]] * USERS
    assert state.server.round == 12
    _, last = made.step(replace(state, server=replace(state.server, round=11)))
    assert (last.asked, last.took_part) == (USERS, 0)


@pytest.mark.slow
def test_a_run_calibrated_to_its_target_refuses_nobody():
    made = plan(target_epsilon=6.0, sampler=Poisson(0.5), delta=1e-6)
    for method in (
        FederatedPopularity(privacy=LocalPrivUnit()),
        FederatedPopularity(privacy=CentralGaussian()),
    ):
        calm = simulation(method.calibrated(made), made)
        free = replace(calm, caps=())
        assert play_all(calm).taken.tolist() == play_all(free).taken.tolist()
        assert play_all(calm).taken.sum() > 0


def test_a_target_that_the_method_passes_lets_nobody_speak():
    state = play_all(simulation(FederatedPopularity(), plan(target_epsilon=5.0)))
    assert state.taken.sum() == 0


def test_groups_stop_at_their_own_budgets():
    codes = np.repeat([0, 1], [4, USERS - 4])
    made = plan(groups=GROUPS, channel="secure_sum", rounds=30)
    cap = Cap(3.0, 1e-6)
    state = play_all(simulation(ByGroup(), made, groups=codes, caps=(cap,)))
    expected = [allowed_participations(z, target=3.0, delta=1e-6) for z in (5.0, 2.0)]
    assert expected[0] > expected[1] > 0
    assert state.taken[:, 0].tolist() == [expected[code] for code in codes]


def test_amplification_is_by_group_as_well():
    rates = PoissonByGroup({"careful": 0.1, "open": 0.9})
    made = plan(groups=GROUPS, channel="secure_sum", sampler=rates)
    careful, open_ = (
        run_statements(terms_of(ByGroup(), made, group=group), range(12), delta=1e-6)[0]
        for group in GROUPS
    )
    assert careful.view is View.RELEASE
    assert careful.epsilon < open_.epsilon


def test_a_ledger_of_ones_own_decides_alone():
    class Nobody:
        def permits(self, clients, *, round, multipliers=None):
            return np.zeros(len(clients), bool)

    caps = (Cap(3.0, 0.0),)
    state = play_all(simulation(LOCAL, plan(), ledger=Nobody(), caps=caps))
    assert state.taken.sum() == 0


def test_a_step_is_a_function_of_the_state():
    """A round played twice from one state is permitted twice and counted once."""
    made = simulation(LOCAL, plan(), caps=(Cap(1.0, 0.0),))
    start = made.start()
    first, again = made.step(start)[0], made.step(start)[0]
    assert first.taken.tolist() == again.taken.tolist() == [[1]] * USERS
    assert start.taken.tolist() == [[0]] * USERS


# --- Runs on disk --------------------------------------------------------------------


CAPPED = simulation(LOCAL, plan(sampler=Poisson(0.6)), caps=(Cap(3.0, 0.0),), chunk=5)


def play_into(directory, made=CAPPED, *, rounds=None, every=1):
    played = play(made, directory, digest="x", observe=lambda _s, _t: {}, every=every)
    for _, (state, _) in zip(range(rounds or 99), played, strict=False):
        last = state
    return last


@pytest.mark.parametrize(
    ("stop", "every"), some_of([(7, 3), (1, 1), (5, 1), (4, 9)], 1)
)
def test_a_resumed_run_neither_forgets_nor_spends_twice(tmp_path, stop, every):
    whole = play_into(RunDirectory(tmp_path / "whole"))
    directory = RunDirectory(tmp_path / "stopped")
    play_into(directory, rounds=stop, every=every)
    resumed = play_into(directory, every=every)
    assert resumed.taken.tolist() == whole.taken.tolist()
    assert whole.taken.max() == 3 < whole.taken.sum() / USERS * 2
    for name, value in whole.server.weights.items():
        np.testing.assert_array_equal(resumed.server.weights[name], value)
    ledgers = [
        json.loads(RunDirectory(tmp_path / name).ledger.read_text())
        for name in ("whole", "stopped")
    ]
    assert ledgers[0] == ledgers[1]


def test_the_ledger_of_a_run_has_what_is_spent_so_far_and_never_less(tmp_path):
    directory, seen = RunDirectory(tmp_path), []

    def observe(state, tally):
        entry = json.loads(directory.ledger.read_text())
        figures = {(s["unit"], s["view"]): s["epsilon"] for s in entry["spent"]}
        seen.append((figures["user", "server"], entry["most_participations"]))
        assert figures["user", "server"] >= state.taken.max()  # pure, epsilon 1 each
        return {}

    free = replace(CAPPED, caps=())
    for _ in play(free, directory, digest="x", observe=observe):
        pass
    assert seen == sorted(seen)
    saved = load_checkpoint(directory.checkpoint, free.start(), digest="x")
    assert seen[-1][1] >= saved.taken.max()
    assert seen[0][0] == 1.0


@pytest.mark.slow
def test_the_ledger_of_a_run_counts_the_parts_that_have_begun(tmp_path):
    """Never less than any client spent, never more than the plan says."""
    method, made = in_turn("gram", sampler=Poisson(0.5))
    directory, figures = RunDirectory(tmp_path), []
    run = simulation(method, made)
    planned = run.account.worst(view=View.SERVER)

    def observe(state, tally):
        entry = json.loads(directory.ledger.read_text())
        spent = {(s["unit"], s["view"]): s["epsilon"] for s in entry["spent"]}
        figures.append(spent["user", "server"])
        for counts in np.unique(state.taken, axis=0).tolist():
            rounds = [*range(12)[: counts[0]], *range(2, 12)[: counts[1]]]
            told = run_statements(run.terms[0], rounds, delta=1e-6)[1]
            assert (told.standing is Standing.NOTHING) == (not rounds)
            assert not rounds or told.epsilon <= figures[-1] + 1e-9
        return {}

    for _ in play(run, directory, digest="x", observe=observe):
        pass
    assert figures == sorted(figures)
    counting = run_statements(run.terms[0], [0, 1], delta=1e-6)[1].epsilon
    assert figures[1] == counting
    assert figures[2] > counting
    assert figures[-1] <= planned + 1e-9


def test_the_ledger_never_goes_back_though_the_checkpoint_does(tmp_path):
    directory = RunDirectory(tmp_path)
    play_into(directory, rounds=5, every=99)
    before = json.loads(directory.ledger.read_text())
    play_into(directory, rounds=1, every=99)
    after = json.loads(directory.ledger.read_text())
    assert before["rounds_begun"] == after["rounds_begun"] == 5
    assert before["spent"] == after["spent"]


def test_the_ledger_of_a_run_stays_within_the_caps(tmp_path):
    directory = RunDirectory(tmp_path)
    play_into(directory)
    entry = json.loads(directory.ledger.read_text())
    assert entry["most_participations"] == 3
    assert {line["epsilon"] for line in entry["spent"]} == {3.0}
