"""FedVAE: the round by hand, its account, its defenses, and what it refuses."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from onnx_device import run
from quick import some_of

from tacit.aggregation.bucketed import Bucketed
from tacit.aggregation.krum import Krum
from tacit.aggregation.mean import Mean
from tacit.aggregation.server_optimizers import Adam
from tacit.errors import BadMessage, BadValue, Refused
from tacit.keys import Key
from tacit.mechanisms.adaptive_clip import BIT
from tacit.method import (
    Candidates,
    CentralGaussian,
    Exportable,
    Unmetered,
    participate,
)
from tacit.methods.fedvae import FedVae
from tacit.plans import Plan
from tacit.privacy import Unprotected
from tacit.release import Standing, View
from tacit.runtime.rounds import chunk_size
from tacit.runtime.simulate import Simulation, check_plan
from tacit.sampling import Everyone, FixedSize, Once, Poisson
from tacit.serving.onnx_file import to_onnx
from tacit.statement import account
from tacit.testing.contract import checkerboard, mixed_world
from tacit.transport.channels import Each, Sum, Unlinked
from tacit.tree import Factored

SMALL = {"hidden": (5,), "latent": 3, "dtype": "float64"}
NOISY = FedVae(privacy=CentralGaussian(1.0), **SMALL)
MOVING = CentralGaussian(1.0, clip_quantile=0.5, bit_noise=1.0)


def simulation(method, *, world=None, plan=None, **options):
    world = world or mixed_world()
    plan = plan or Plan(len(world.shards), rounds=4)
    data = world.catalog, world.profiles, world.shards
    return Simulation(method, plan, *data, Key.from_seed(3), **options)


def said(made, state):
    """What everyone would report in the next round."""
    n = len(made.shards)
    rows, broadcast = np.arange(n), made.method.broadcast(state.server)
    users = state.clients.take(rows), made.shards, made.population.keys
    return participate(made.method, broadcast, *users, ledger=Unmetered())[1].tree


# a round


def test_a_round_is_adam_on_the_mean_gradient():
    made = simulation(FedVae(mode="paper", **SMALL))
    state = made.start()
    gradient = {n: g / 13 for n, g in said(made, state).sum().items()}
    weights = {name: state.server.weights[name] for name in gradient}
    expected, _ = Adam(1e-3).step(weights, Adam().start(weights), gradient)
    after, _ = made.step(state)
    for name, value in expected.items():
        np.testing.assert_allclose(after.server.weights[name], value, atol=1e-12)


def test_reports_are_factors_and_their_size_says_how_many_fit():
    method = FedVae(mode="paper", init="xavier")
    world = mixed_world()
    layout = method.layout(Plan(13), world.catalog, round=0)
    one = 4 * (21 + 600 + 601 + 400 + 201 + 600 + 601 + 20)
    assert method.report_bytes(layout) == one
    assert chunk_size(one) * one < 2**24
    made = simulation(FedVae(**SMALL), world=world)
    leaves = said(made, made.start()).leaves
    assert all(isinstance(leaf, Factored) for leaf in leaves.values())
    assert {leaf.left.shape[1] for leaf in leaves.values()} == {1}


@pytest.mark.parametrize("privacy", [Unprotected(), CentralGaussian(1.0)])
def test_a_round_allocates_no_gradient_a_user(privacy):
    """200 users and 104,000 weights: written out they would be 166 MB."""
    world = mixed_world()
    n_items, users = 500, 200
    rng = np.random.default_rng(0)
    histories = [sorted(rng.choice(n_items, 20, replace=False)) for _ in range(users)]
    world = type(world).of_histories(histories, n_items=n_items)
    method = FedVae(hidden=(100,), latent=10, dtype="float64", privacy=privacy)
    made = simulation(method, world=world)
    state, _ = made.step(made.start())
    tracemalloc.start()
    made.step(state)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 25e6


@pytest.mark.parametrize(("boost", "decay"), [(0.0, 0.9), (3.0, 0.9), (3.0, 1.0)])
def test_the_boost_counts_epochs_from_one(boost, decay):
    """13 users, 5 a round: an epoch has three rounds, since 2 x 5 < 13."""
    method = FedVae(mode="paper", boost=boost, decay=decay, **SMALL)
    made = simulation(method, plan=Plan(13, rounds=9, sampler=FixedSize(5)))
    state = made.start()
    epochs = []
    for _ in range(7):
        epochs.append(method._epoch(state.server))
        state, _ = made.step(state)
    assert epochs == [1, 1, 1, 2, 2, 2, 3]
    rate = method._optimizer.rate.at(2)
    assert rate == pytest.approx(1e-3 * (1 + boost * decay**2))


def test_beta_rises_and_stays():
    method = FedVae(beta=0.4, beta_rounds=4, count_rounds=2)
    assert [method._beta(t) for t in (2, 3, 6, 9)] == [0.0, 0.1, 0.4, 0.4]
    assert FedVae(beta=0.4)._beta(0) == 0.4


def test_modes_choose_the_first_weights():
    start = {}
    for mode in ("paper", "sound"):
        made = simulation(FedVae(mode=mode, hidden=(50,), latent=20))
        start[mode] = made.start().server.weights["decoder/0"][:-1].std()
    assert start["paper"] == pytest.approx(1.0, rel=0.1)
    assert start["sound"] == pytest.approx((2 / 70) ** 0.5, rel=0.1)
    assert FedVae(mode="paper")._dtype == "float64"
    usual = simulation(FedVae(mode="paper", init="xavier", hidden=(50,), latent=20))
    assert usual.start().server.weights["decoder/0"][:-1].std() < 0.3


def test_the_papers_first_weights_stay_finite():
    """At 600 units some variances are beyond any float32."""
    made = simulation(FedVae(mode="paper"))
    *_, (state, _) = made.run(made.start())
    for name, value in state.server.weights.items():
        assert np.isfinite(value).all(), name
    with np.errstate(over="ignore"):
        x = np.ones((200, 20)) / 20**0.5
        network, weights = made.method._network(20), made.start().server.weights
        spread = network.encode(weights, x)
    assert np.abs(spread).max() > 30


# counting


def test_counting_gives_the_head_and_the_bias():
    method = FedVae(count_rounds=2, head=8, **SMALL)
    made = simulation(method)
    state, _ = made.step(made.start())
    assert (state.server.weights["head"] == np.arange(8)).all()
    state, _ = made.step(state)
    world = mixed_world()
    expected = np.zeros(20)
    for history in world.shards.histories:
        for item in set(history.tolist()):
            expected[item] += 2 / len(set(history.tolist())) ** 0.5
    found = state.server.weights
    np.testing.assert_allclose(found["counts"], expected)
    head = np.argsort(-expected, kind="stable")[:8]
    assert found["head"].tolist() == head.tolist()
    bias = found["decoder/1"][-1]
    np.testing.assert_allclose(np.diff(bias), np.diff(np.log(expected[head])))
    assert found["decoder/1"].shape == (6, 8)


def test_items_outside_the_head_follow_by_count():
    method = FedVae(count_rounds=1, head=8, **SMALL)
    made = simulation(method)
    *_, (state, _) = made.run(made.start())
    broadcast = method.broadcast(state.server)
    keys = made.population.keys
    tastes = method.represent(broadcast, state.clients, made.shards, keys)
    scores = method.score(broadcast, tastes, Candidates.all_of(made.catalog))
    head, counts = broadcast.weights["head"], broadcast.weights["counts"]
    order = np.argsort(-scores, axis=1)
    assert (np.sort(order[:, :8]) == np.sort(head)).all()
    tail = np.setdiff1d(np.arange(20), head)
    by_count = tail[np.argsort(-counts[tail], kind="stable")]
    assert (order[:, 8:] == by_count).all()


# privacy


def epsilon_of(method, plan, view=View.RELEASE):
    return account(plan, method.releases(plan)).worst(view=view)


COUNTING = {"count_rounds": 2, "head": 5}


@pytest.mark.parametrize(
    ("sampler", "counting", "quantile"),
    some_of(
        [
            (Everyone(), {}, None),
            (Once(), COUNTING, 0.5),
            (Poisson(0.3), {}, 0.5),
            (Poisson(0.3), COUNTING, None),
        ],
        2,
    ),
)
def test_calibrated_noise_meets_the_target(sampler, counting, quantile):
    plan = Plan(
        5000,
        rounds=12,
        sampler=sampler,
        channel="secure_sum",
        delta=1e-6,
        target_epsilon=2.0,
    )
    privacy = CentralGaussian(clip_quantile=quantile)
    made = FedVae(privacy=privacy, **counting, **SMALL).calibrated(plan)
    assert epsilon_of(made, plan) == pytest.approx(2.0, abs=5e-3)
    assert epsilon_of(made, plan) <= 2.0 + 1e-6
    assert ("counts" in made.privacy.noise_multiplier) == bool(counting)
    assert (made.privacy.bit_noise is None) == (quantile is None)


def test_the_counting_gets_its_share():
    """Everyone in every round: z⁻² of both kinds of rounds adds up as Gaussians do."""
    plan = Plan(5000, rounds=11, channel="secure_sum", delta=1e-6, target_epsilon=4.0)
    method = FedVae(privacy=CentralGaussian(), count_rounds=1, count_share=0.2)
    noise = method.calibrated(plan).privacy.noise_multiplier
    counted, trained = noise["counts"] ** -2, 10 * noise["gradients"] ** -2
    assert counted / (counted + trained) == pytest.approx(0.2)
    assert (counted + trained) ** -0.5 == pytest.approx(1.1935, rel=1e-3)


def test_reports_are_clipped_together_and_liars_too():
    method = replace(NOISY, privacy=CentralGaussian(1.0, clip=0.01))
    made = simulation(method)
    state = made.start()
    tree = said(made, state)
    norms = tree.norms()
    assert norms[0] == 0
    assert norms[1:] == pytest.approx(np.full(12, 0.01), rel=1e-5)
    noise = method.noise(method.broadcast(state.server), made.plan)
    assert (noise.enforce(tree.scale(1e6)).norms() <= 0.01 * (1 + 1e-6)).all()


def test_the_noise_is_that_of_the_clip_over_the_planned_cohort():
    """Nobody speaks; 20,060 numbers, so the deviation is known within 0.5 %."""
    privacy = CentralGaussian(3.0, clip=0.2)
    method = FedVae(privacy=privacy, hidden=(500,), latent=1)
    server = simulation(method).start().server
    context = method.context(server, method.broadcast(server), Key.from_seed(0))
    assert context.planned == 13
    total = context.mechanism.add(context.layout.zeros(), context.key)
    drawn = np.concatenate([value.ravel() for value in total.values()])
    assert drawn.std() == pytest.approx(0.6, rel=0.025)


def test_an_adaptive_clip_moves_to_its_quantile():
    privacy = CentralGaussian(1e-3, clip=60.0, clip_quantile=0.5, bit_noise=0.01)
    method, plan = replace(NOISY, privacy=privacy), Plan(24, rounds=46)
    made = simulation(method, world=checkerboard(), plan=plan)
    state = made.start()
    while state.server.round < 45:
        state, _ = made.step(state)
    clip = float(method.broadcast(state.server).weights["clip"])
    free = replace(method, privacy=CentralGaussian(1e-3, clip=1e9))
    bare = simulation(free, world=checkerboard(), plan=plan)
    others = replace(state, clients=bare.start().clients)
    norms = said(bare, others).norms()
    within = (norms <= clip).mean()
    assert 0.2 <= within <= 0.8
    assert BIT in method.layout(made.plan, made.catalog, round=0).slots


def test_a_device_refuses_a_clip_it_did_not_agree_to():
    made = simulation(replace(NOISY, privacy=MOVING))
    state = made.start()
    memory = {**state.server.memory, "clip": np.array(1e4)}
    other = replace(state, server=replace(state.server, memory=memory))
    assert len(said(made, state))
    assert not said(made, other).leaves
    with pytest.raises(BadMessage, match="'clip' of a broadcast has values"):
        made.step(other)


def test_views():
    plan = Plan(5000, rounds=5, delta=1e-6, sampler=Poisson(0.1))
    assert epsilon_of(NOISY, plan, View.SERVER) is None
    summed = replace(plan, channel="secure_sum")
    assert epsilon_of(NOISY, summed, View.SERVER) > epsilon_of(NOISY, summed)
    for bare in (FedVae(), FedVae(mode="paper", attackers=3)):
        cells = [c for r in bare.releases(plan) for c in r.cells.values()]
        assert {c.standing for c in cells} == {Standing.NONE}


# defenses


def test_defenses_choose_the_aggregator():
    plan = Plan(9, rounds=3)
    bare = Mean((Each, Unlinked, Sum))  # without a promise any channel will do
    assert FedVae().aggregators(plan) == (bare,)
    assert FedVae(attackers=2, keep=7).aggregators(plan) == (Krum(2, 7),)
    assert FedVae(groups=5).aggregators(plan) == (Bucketed(5),)
    counting = FedVae(groups=5, count_rounds=1)
    assert counting.aggregators(plan) == (bare, Bucketed(5))
    check_plan(replace(NOISY, groups=5), Plan(9, channel="secure_sum"))


def test_krum_takes_the_attackers_out():
    """The step of a world with liars is that of the same world without them."""
    from tacit.transport.messages import Reports

    method = FedVae(mode="paper", init="xavier", attackers=2, **SMALL)
    made = simulation(method, world=checkerboard())
    state = made.start()
    tree = said(made, state)
    liars = np.zeros(24, bool)
    liars[[4, 9]] = True
    lies = tree.scale(np.where(liars, -50.0, 1.0))
    broadcast, key = method.broadcast(state.server), Key.from_seed(0)
    context = method.context(state.server, broadcast, key)
    found = method.aggregate(state.server, Each([Reports(lies)]), context)
    plain = FedVae(mode="paper", init="xavier", **SMALL)
    kept = tree.select(~liars)
    context = plain.context(state.server, broadcast, key)
    mean = plain.aggregate(state.server, Each([Reports(kept)]), context)
    for name in tree.leaves:
        # Adam's first step is the sign of the mean, whatever it is divided by.
        np.testing.assert_allclose(
            found.weights[name], mean.weights[name], atol=1e-6, err_msg=name
        )


# what is refused


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"mode": "paper", "privacy": CentralGaussian()}, "privacy=.*not in the paper"),
        ({"mode": "paper", "groups": 5}, "not in the paper"),
        ({"head": 5}, "needs counts"),
        ({"attackers": 1, "count_rounds": 1}, "cannot count"),
        ({"attackers": 1, "groups": 5}, "set one of them"),
        ({"privacy": CentralGaussian(), "attackers": 1}, "attackers=1.*use groups"),
        ({"dropout": 1.0}, r"in \[0, 1\)"),
        ({"hidden": (0,)}, "hidden=0"),
        ({"local_passes": 0}, "local_passes=0"),
    ],
)
def test_settings_that_cannot_be(settings, words):
    with pytest.raises(BadValue, match=words):
        FedVae(**settings)


def test_counting_leaves_rounds_to_train():
    with pytest.raises(Refused, match=r"rounds=2 .* FedVAE counts, then trains"):
        FedVae(count_rounds=2).releases(Plan(10, rounds=2))
    with pytest.raises(BadValue, match="noise_multiplier is not set"):
        FedVae(privacy=CentralGaussian()).releases(Plan(10, rounds=2))


def test_noise_is_named_by_phase():
    """A phase without noise is refused by its name."""
    method = FedVae(privacy=CentralGaussian({"gradients": 1.0}), count_rounds=1)
    with pytest.raises(BadValue, match="counts"):
        method.releases(Plan(10, rounds=2))


# the ranking written down


@pytest.mark.parametrize("counting", [{}, {"count_rounds": 1, "head": 8}])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("variational", [False, True])
def test_its_formula_is_its_network(counting, tied, variational):
    """Encoder and decoder as a formula equal `represent`, then `score`."""
    method = FedVae(**SMALL, **counting, tied=tied, variational=variational)
    assert isinstance(method, Exportable)
    made = simulation(method)
    *_, (state, _) = made.run(made.start())
    broadcast, keys = method.broadcast(state.server), made.population.keys
    tastes = method.represent(broadcast, state.clients, made.shards, keys)
    expected = method.score(broadcast, tastes, Candidates.all_of(made.catalog))
    held = np.zeros((13, 20))
    held[made.shards.owners, made.shards.items] = 1
    content = to_onnx(method.formula(broadcast), n_items=20, precision="float64")
    np.testing.assert_allclose(run(content, held), expected, rtol=1e-6, atol=1e-6)
