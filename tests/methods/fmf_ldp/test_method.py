"""The protocol by hand, edges, and what leaves a device."""

import subprocess
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tacit.data.federated_data import FederatedData
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.ledger.budget import Cap
from tacit.method import Candidates, LocalPrivUnit, Unmetered, enrol, participate
from tacit.methods.fmf_ldp import FmfLdp
from tacit.models.implicit_factors import ImplicitFactors
from tacit.plans import Plan
from tacit.privacy import LocalBits, PublishedVotes, Unprotected
from tacit.runtime.client import Client
from tacit.runtime.simulate import Simulation, check_plan
from tacit.sampling import Once
from tacit.serving.recommender import Recommender
from tacit.testing.contract import checkerboard, mixed_world
from tacit.transport.codec import encode_broadcast, wire_size

KINDS = {
    "none": FmfLdp(learning_rate=0.1),
    "votes": FmfLdp(privacy=LocalBits(epsilon=1.0, votes=10)),
    "whole": FmfLdp(privacy=LocalPrivUnit(epsilon=4.0)),
    "paper": FmfLdp(mode="paper", privacy=PublishedVotes(epsilon=1.0, votes=10)),
}
WORLD = mixed_world()  # of thirteen users, the first has nothing, the second all


def simulation(method, world=WORLD, *, seed=0, **plan):
    data = world.catalog, world.profiles, world.shards
    return Simulation(
        method, Plan(len(world.shards), **plan), *data, Key.from_seed(seed)
    )


def asked(method, world=WORLD, *, broadcast=None):
    """What all say in round 0."""
    made = simulation(method, world)
    state = made.start()
    broadcast = broadcast or method.broadcast(state.server)
    keys = made.population.keys
    _, reports, _ = participate(
        method, broadcast, state.clients, world.shards, keys, ledger=Unmetered()
    )
    return reports.tree


# --- The protocol --------------------------------------------------------------------


def test_a_round_without_noise_by_hand():
    """Twenty steps with the mean of all gradients, at the factors that were told."""
    method = replace(KINDS["none"], alpha=0.5, ridge=0.01)
    made = simulation(method)
    state = made.start()
    after, _ = made.step(state)
    told = method.broadcast(state.server).weights["items"].astype(np.float64)
    model = ImplicitFactors(told, 0.5, method.user_ridge)
    mean = model.gradients(WORLD.shards).sum(axis=0) / 13
    items = state.server.weights["items"]
    for _ in range(20):
        items = items - 0.1 * (mean + 2 * 0.01 * items)
    np.testing.assert_allclose(after.server.weights["items"], items, atol=1e-12)


def test_the_start_has_its_mean_and_deviation():
    """10,000 draws: four standard errors of either are below 0.005."""
    world = FederatedData.of_histories([[0]], n_items=2000)
    method = replace(KINDS["none"], init_mean=0.3, init_deviation=0.1)
    items = simulation(method, world).start().server.weights["items"]
    assert items.shape == (2000, 5)
    assert items.mean() == pytest.approx(0.3, abs=0.005)
    assert items.std() == pytest.approx(0.1, abs=0.005)


def test_the_loss_falls():
    """With the sign of Equation 6; the printed one makes it grow."""

    def losses(method):
        made = simulation(method, checkerboard(), rounds=8)
        held = np.zeros((24, 12))
        held[made.shards.owners, made.shards.items] = 1
        for state, _ in made.run(made.start()):
            items = state.server.weights["items"]
            x = ImplicitFactors(items, 0.0, method.user_ridge).users(made.shards)
            yield ((held - x @ items.T) ** 2).sum()

    method = FmfLdp(learning_rate=0.01, init_mean=0.1, init_deviation=0.1)
    down = [*losses(method)]
    assert np.all(np.diff(down) < 0)
    assert down[-1] < 0.8 * down[0]
    object.__setattr__(method, "learning_rate", -0.01)  # the printed sign
    assert np.all(np.diff([*losses(method)]) > 0)


def test_paper_mode_steps_k_times_as_far():
    """Nearly without flips, the mean of k reports with scale d is k times the mean.

    Three coordinates and 60,000 users: four standard errors are 0.02 of the clip.
    """
    world = FederatedData.of_histories([[0], [0, 1], [2]] * 20_000, n_items=3)
    common = {"factors": 1, "init_deviation": 0.5, "ridge": 0.0, "server_steps": 1}
    common |= {"learning_rate": 1e-3}
    votes = {"votes": 3, "epsilon": 30.0, "clip": 2.0}

    def step(method):
        made = simulation(method, world)
        state = made.start()
        moved = made.step(state)[0].server.weights["items"]
        return (moved - state.server.weights["items"]).ravel()

    exact = step(FmfLdp(**common))
    paper = step(FmfLdp(mode="paper", privacy=PublishedVotes(**votes), **common))
    sound = step(FmfLdp(privacy=LocalBits(**votes), **common))
    assert np.abs(exact).max() > 0.05e-3
    np.testing.assert_allclose(sound, exact, atol=0.04e-3)
    np.testing.assert_allclose(paper, 3 * exact, atol=0.12e-3)


@pytest.mark.parametrize(
    ("gradient", "scale", "ridges"),
    [
        ("equation 6", 1.0, 0.0),
        ("equation 7", 1.0, 1.0),
        ("line 5", -0.5, 0.0),
        ("line 5, negated", 0.5, 0.0),
    ],
)
def test_paper_mode_computes_every_gradient_that_the_paper_names(
    gradient, scale, ridges
):
    """Beside -2 f, which sound mode computes without a mechanism."""
    method = replace(KINDS["paper"], gradient=gradient, ridge=0.3)
    made = simulation(method)
    state = made.start()
    (phase,), broadcast = method.phases(made.plan), method.broadcast(state.server)
    given = phase, broadcast, state.clients, WORLD.shards, made.population.keys
    tree = method.update(*given)
    whole = KINDS["none"].update(*given)["gradient"]
    items = broadcast.weights["items"].astype(np.float64)
    expected = scale * whole + ridges * 2 * 0.3 * items
    at = tree["coordinates"]
    reported = np.take_along_axis(expected.reshape(len(at), -1), at, axis=1)
    np.testing.assert_allclose(tree["values"], reported, rtol=1e-9, atol=1e-12)


# --- Users and items of every kind --------------------------------------------------


@pytest.mark.parametrize("method", KINDS.values(), ids=KINDS)
def test_a_run_stays_finite_with_users_of_every_kind(method):
    """Nobody, everything, repeats, and more factors than items."""
    for world in (WORLD, FederatedData.of_histories([[], [0, 1], [1, 1]], n_items=2)):
        made = simulation(replace(method, factors=7, alpha=2.0), world, rounds=3)
        *_, (state, _) = made.run(made.start())
        assert np.isfinite(state.server.weights["items"]).all()


def test_without_a_click_a_vote_is_a_fair_coin():
    """The empty history is legal input: half of 40,000 bits, six standard errors."""
    world = FederatedData.of_histories([[]] * 2000, n_items=20)
    method = FmfLdp(privacy=LocalBits(epsilon=9.0, votes=20))
    votes = asked(method, world)["votes"]
    assert abs((votes > 0).mean() - 0.5) < 6 * 0.5 / 200


@pytest.mark.parametrize("kind", ["votes", "whole", "paper"])
def test_what_is_not_a_number_is_refused(kind):
    """A server that sends NaN is not answered."""
    method = KINDS[kind]
    broadcast = method.broadcast(simulation(method).start().server)
    items = np.full_like(broadcast.weights["items"], np.nan)
    assert not asked(
        method, broadcast=replace(broadcast, weights={"items": items})
    ).leaves


@pytest.mark.parametrize("shape", [(20, 4), (21, 5), (3, 5)])
def test_item_factors_of_another_size_are_refused(shape):
    """Before anything is computed: a kernel would read what is not there."""
    method = KINDS["votes"]
    broadcast = method.broadcast(simulation(method).start().server)
    items = np.zeros(shape, np.float32)
    assert not asked(
        method, broadcast=replace(broadcast, weights={"items": items})
    ).leaves


# --- What leaves ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["votes", "paper"])
def test_which_coordinates_are_told_says_nothing_of_the_history(kind):
    one = asked(KINDS[kind])["votes"]
    other = asked(KINDS[kind], FederatedData.of_histories([[7, 8]] * 13, n_items=20))[
        "votes"
    ]
    assert (np.abs(one) == np.abs(other)).all()
    assert (one != other).any()


def test_a_report_has_four_bytes_a_vote():
    """As Section 5.3 counts them; the envelope is the codec's."""
    plan, sizes = Plan(13), {}
    for k in (50, 100):
        method = FmfLdp(privacy=LocalBits(epsilon=1.0, votes=k))
        world = FederatedData.of_histories([[0]], n_items=100)
        layout = method.layout(plan, world.catalog, round=0)
        assert layout.split_axis == 0
        assert layout.slots["votes"].dtype == "int32"
        sizes[k] = wire_size(layout)
    assert sizes[100] - sizes[50] == pytest.approx(200, abs=8)


@pytest.mark.parametrize("method", KINDS.values(), ids=KINDS)
def test_the_user_is_in_no_message(method):
    """Neither as it is nor in single precision."""
    broadcast = method.broadcast(simulation(method).start().server)
    x = method._model(broadcast).users(WORLD.shards)[3:]
    said = [leaf.values[3:].ravel() for leaf in asked(method).leaves.values()]
    for values in [*said, broadcast.weights["items"].ravel()]:
        for number in x[np.abs(x) > 1e-12]:
            assert not np.isclose(values, number, rtol=1e-6, atol=0).any()


def test_the_broadcast_is_in_single_precision():
    broadcast = KINDS["votes"].broadcast(simulation(KINDS["votes"]).start().server)
    assert {n: str(v.dtype) for n, v in broadcast.weights.items()} == {
        "items": "float32"
    }


@pytest.mark.parametrize("kind", ["votes", "paper", "whole", "none"])
def test_a_relay_changes_nothing_that_is_learnt(kind):
    direct, mixed = (
        simulation(KINDS[kind], channel=c, min_contributors=13 if c == "shuffle" else 1)
        for c in ("direct", "shuffle")
    )
    one, _ = direct.step(direct.start())
    other, _ = mixed.step(mixed.start())
    pair = (s.server.weights["items"] for s in (one, other))
    np.testing.assert_allclose(*pair, rtol=1e-9, atol=1e-9)


def test_votes_cannot_be_read_from_a_sum():
    with pytest.raises(Refused, match="delivers Sum"):
        check_plan(KINDS["votes"], Plan(13, channel="secure_sum"))


# --- A real device -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "cap", "spoken"),
    [("votes", 25.0, 2), ("votes", 9.9, 0), ("whole", 13.0, 3)],
)
def test_a_device_refuses_before_its_cap_is_passed(tmp_path, kind, cap, spoken):
    """A round of ten votes of 1 costs 10, one whole report of 4 costs 4."""
    method, plan = KINDS[kind], Plan(13, rounds=20)
    server = method.start(plan, WORLD.catalog, Key.from_seed(0))
    history = WORLD.shards.take([4])
    client = Client(
        tmp_path / "ledger.db", method, plan, catalog=WORLD.catalog, history=history
    )
    client.ledger.set_cap(Cap(cap, 0.0))
    said = [
        client.participate(encode_broadcast(method.broadcast(replace(server, round=r))))
        for r in range(4)
    ]
    client.close()
    assert [report is not None for report in said] == [r < spoken for r in range(4)]


def test_a_plans_target_caps_every_simulated_device():
    """Two rounds of ten votes fit into 25; the third finds nobody."""
    made = simulation(KINDS["votes"], rounds=3, target_epsilon=25.0)
    tallies = [tally.took_part for _, tally in made.run(made.start())]
    assert tallies == [13, 13, 0]


# --- Serving -------------------------------------------------------------------------


@cache
def trained():
    start = {"init_mean": 0.1, "init_deviation": 0.1}
    method = FmfLdp(factors=3, learning_rate=0.02, **start)
    made = simulation(method, checkerboard(), rounds=40)
    *_, (state, _) = made.run(made.start())
    return method, method.broadcast(state.server), made.catalog


def test_a_newcomer_folds_in_without_training():
    """Two odd items are enough; the client needs the model and nothing else."""
    recommender = Recommender(*trained())
    listed = recommender.recommend(["item 1", "item 5"], n=4)
    assert {line.id for line in listed} == {"item 3", "item 7", "item 9", "item 11"}
    assert recommender.recommend(["item 1", "item 1", "item 5"], n=4) == listed


def test_reasons_are_items_of_the_same_kind():
    recommender = Recommender(*trained())
    because = recommender.why(["item 1", "item 2", "item 5"], "item 7", n=2)
    assert {reason.id for reason in because} == {"item 1", "item 5"}


def test_scores_are_inner_products_of_the_candidates_asked_for():
    method, broadcast, catalog = trained()
    shards = checkerboard().shards
    keys = Key.from_seed(1).each(np.arange(24))
    clients = enrol(method, Plan(24), checkerboard().profiles, keys)
    tastes = method.represent(broadcast, clients, shards, keys)
    some = Candidates(np.array([5, 2]), catalog)
    found = method.score(broadcast, tastes, some)
    whole = tastes.tree["user"] @ broadcast.weights["items"].astype(float).T
    np.testing.assert_allclose(found, whole[:, [5, 2]])


def test_nothing_here_imports_torch():
    code = (
        "import sys\n"
        "from tacit.methods.fmf_ldp import FmfLdp\n"
        "from tacit.privacy import LocalPrivUnit\n"
        "FmfLdp(privacy=LocalPrivUnit(epsilon=1.0))\n"
        "assert 'torch' not in sys.modules\n"
        "assert 'numba' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- Fields --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"mode": "published"}, "mode"),
        ({"gradient": "line 4"}, "gradient"),
        ({"gradient": "line 5"}, "gradient='line 5' with mode='sound'"),
        ({"factors": 0}, "factors"),
        ({"alpha": -1.0}, "alpha"),
        ({"user_ridge": 0.0}, "user_ridge"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"init_deviation": 0.0}, "init_deviation"),
        ({"init_mean": -0.1}, "init_mean"),
        ({"mode": "paper"}, "mode='paper' with Unprotected"),
        ({"mode": "paper", "privacy": LocalPrivUnit(1.0)}, "paper.*LocalPrivUnit"),
        ({"mode": "paper", "privacy": LocalBits(1.0, 3)}, "paper.*LocalBits"),
        ({"privacy": PublishedVotes(1.0, 3)}, "mode='sound' with PublishedVotes"),
    ],
)
def test_fields_that_do_not_go_together(fields, complaint):
    with pytest.raises(BadValue, match=complaint):
        FmfLdp(**fields)


def test_without_an_epsilon_it_refuses():
    for privacy in (LocalPrivUnit(), LocalBits(votes=3)):
        with pytest.raises(BadValue, match="epsilon is not set"):
            FmfLdp(privacy=privacy).releases(Plan(10))
        with pytest.raises(BadValue, match="target_epsilon"):
            FmfLdp(privacy=privacy).calibrated(Plan(10, sampler=Once()))


def test_nothing_protects_unless_it_is_said():
    assert FmfLdp().privacy == Unprotected()


def test_more_votes_than_coordinates_are_refused():
    world = FederatedData.of_histories([[0]], n_items=2)
    with pytest.raises(BadValue, match="count <= dimension"):
        FmfLdp(privacy=LocalBits(1.0, 11)).layout(Plan(1), world.catalog, round=0)
