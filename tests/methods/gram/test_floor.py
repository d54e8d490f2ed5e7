"""Gram counts until that is enough: ways, budget, sensitivity of loadings."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.accounting.calibration import gaussian_epsilon
from tacit.data.federated_data import FederatedData
from tacit.errors import BadValue
from tacit.kernels import dispatch
from tacit.keys import Key
from tacit.method import Candidates, CentralGaussian, LocalPrivUnit
from tacit.methods import gram
from tacit.methods import gram_heuristics as heuristics
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.gram import Gram
from tacit.methods.gram_heuristics import first_count_share, load_share, loads_shape
from tacit.models.eigenvalue_shrinkage import Spectrum, noise_edge
from tacit.models.item_relations import Relations, own_parts
from tacit.plans import Plan
from tacit.release import View
from tacit.runtime.simulate import Simulation
from tacit.sampling import Everyone, Poisson
from tacit.statement import account
from tacit.testing.contract import MethodContract, assert_checkerboard_learnt

CENTRAL = Gram(privacy=CentralGaussian())


def world_of(
    n_users: int, n_items: int, *, length: int, power: float, other: float = 0.1
):
    """Users of two tastes, whose items are liked by a power of their rank.

    Items of the other taste are liked `other` times as much: at 1 there are no tastes.
    """
    rng = np.random.default_rng(0)
    chance = 1 / np.arange(1, n_items + 1) ** power
    histories = []
    for user in range(n_users):
        mine = chance * np.where(np.arange(n_items) % 2 == user % 2, 1.0, other)
        items = rng.choice(n_items, length, replace=False, p=mine / mine.sum())
        histories.append(sorted(items.tolist()))
    return FederatedData.of_histories(histories, n_items=n_items)


def plan_of(world, *, epsilon, rounds=3, **fields):
    n = len(world.shards)
    named = {"channel": "secure_sum", "delta": 1e-6, "target_epsilon": epsilon}
    return Plan(n, rounds=rounds, **{**named, **fields})


def trained(method, world, plan, *, seed=0):
    made = method.calibrated(plan)
    people = world.catalog, world.profiles, world.shards
    simulation = Simulation(made, plan, *people, Key.from_seed(seed))
    *_, (state, _) = simulation.run(simulation.start())
    return made, simulation, state


class TestChosen(MethodContract):
    """The contract where phases are chosen, up to loadings."""

    rounds = 3

    def method(self):
        privacy = CentralGaussian(total_noise=0.01)
        sizes = {"head": 12, "load_items": 20, "load_rank": 4}
        return Gram(privacy=privacy, count_share=0.1, rank=8, **sizes)

    def plan(self, world):
        return Plan(len(world.shards), rounds=self.rounds)

    def check_learnt(self, score, world):
        assert_checkerboard_learnt(score, world.shards)


class TestChosenByFewItems(TestChosen):
    """The same where loadings are made by the kernels, and not written out."""

    @pytest.fixture(autouse=True)
    def compiled(self, monkeypatch):
        twin = dispatch.TABLE["rows.unit_rests"]
        monkeypatch.setitem(dispatch.TABLE, "rows.unit_rests", twin.at(1))


def test_loadings_by_few_items_are_those_of_rows_written_out(monkeypatch):
    """Up to the rounding of sums; the noise is the same."""
    plan, found = plan_of(DENSE, epsilon=8.0), []
    for smallest in (1, 10_000):
        twin = dispatch.TABLE["rows.unit_rests"].at(smallest)
        monkeypatch.setitem(dispatch.TABLE, "rows.unit_rests", twin)
        _, _, state = trained(CENTRAL, DENSE, plan)
        found.append(state.server.memory["loadings"])
    few, written = found
    np.testing.assert_allclose(few, written, atol=1e-12 * np.abs(written).max())


DENSE = world_of(1500, 60, length=12, power=0.8)
SPARSE = world_of(1000, 4000, length=6, power=0.3)
ALIKE = world_of(1500, 60, length=12, power=0.8, other=1.0)


@pytest.mark.parametrize(
    ("world", "epsilon", "names"),
    [
        (DENSE, 8.0, ["counts", "relations", "loadings"]),
        (SPARSE, 2.0, ["counts", "more counts", "last counts"]),
        (SPARSE, 0.05, ["counts"]),
        (ALIKE, 1.0, ["counts", "relations", "counts after relations"]),
    ],
)
def test_released_counts_decide_what_the_rest_of_the_budget_buys(world, epsilon, names):
    method = CENTRAL.calibrated(plan_of(world, epsilon=epsilon))
    plan, people = plan_of(world, epsilon=epsilon), (world.catalog, world.profiles)
    simulation = Simulation(method, plan, *people, world.shards, Key.from_seed(3))
    state, found = simulation.start(), []
    while not method.is_over(state.server):
        phase = method.next_phase(state.server)
        assert phase is not None
        found.append(phase.name)
        state, _ = simulation.step(state)
    assert found == names


@pytest.mark.parametrize("epsilon", [0.05, 4.0, 8.0])
@pytest.mark.parametrize("world", [DENSE, SPARSE], ids=["dense", "sparse"])
def test_every_way_spends_the_budget_and_no_more(world, epsilon):
    plan = plan_of(world, epsilon=epsilon)
    made, _, state = trained(CENTRAL, world, plan)
    total = made.privacy.total_noise
    assert float(state.server.memory["budget spent"]) == pytest.approx(total**-2)
    assert gaussian_epsilon(total, delta=1e-6) == pytest.approx(epsilon, rel=1e-6)
    told = account(plan, made.releases(plan))
    assert told.worst(view=View.RELEASE) == pytest.approx(epsilon, rel=1e-6)


@given(st.floats(0.01, 1.0))
def test_the_shares_of_every_way_add_up_to_one(counting):
    shares = {
        p.name: p.share for p in replace(CENTRAL, count_share=counting)._ways(counting)
    }
    if counting == 1:
        assert shares == {"counts": 1.0}
        return
    ways = [
        ("counts", "relations", "loadings"),
        ("counts", "more counts", "later relations"),
        ("counts", "more counts", "last counts"),
        ("counts", "relations", "counts after relations"),
    ]
    for way in ways:
        assert sum(shares.get(name, 0.0) for name in way) == pytest.approx(1.0)


def test_where_relations_show_no_tastes_it_counts_on_and_ranks_by_counts():
    """The counts have the noise of both countings, and nobody's list is personal."""
    plan = plan_of(ALIKE, epsilon=1.0)
    made, _, state = trained(CENTRAL, ALIKE, plan)
    server, noise = state.server, made.privacy
    assert not server.weights["strengths"].any()
    shares = {phase.name: phase.share for phase in made.phases(plan)}
    both = made._count_deviation(
        plan, shares["counts"] + shares["counts after relations"]
    )
    assert server.memory["count variance"][0] == pytest.approx(both**2)
    assert float(server.memory["budget spent"]) == pytest.approx(noise.total_noise**-2)
    space = made.item_space(made.broadcast(server), Candidates.all_of(ALIKE.catalog))
    order = np.argsort(-(space.vectors[:, -1] + space.offsets), kind="stable")
    by_counts = np.argsort(-server.weights["counts"], kind="stable")
    np.testing.assert_array_equal(order, by_counts)


def test_a_refresh_of_a_run_without_tastes_starts_relations_of_its_own_head():
    plan = plan_of(ALIKE, epsilon=1.0)
    _, _, state = trained(CENTRAL, ALIKE, plan)
    memory = state.server.memory
    assert not memory["half"].any()
    assert (memory["people"], memory["variance"]) == (0, 0)


@pytest.mark.parametrize(
    ("strongest", "name"),
    [
        (0.0, "counts after relations"),
        (0.33, "counts after relations"),
        (0.34, "loadings"),
        (2.0, "loadings"),
    ],
)
def test_the_strongest_direction_next_to_the_noise_decides_on_loadings(
    strongest, name, monkeypatch
):
    """Whatever counting on would find, and whatever the other directions have."""

    def found(matrix, *, deviation, **_):
        vectors = np.eye(len(matrix))[:, :3]
        strengths = noise_edge(len(matrix), deviation) * strongest * np.ones(3)
        return Spectrum(vectors, strengths, rest=0.0)

    monkeypatch.setattr(gram, "cleaned", found)
    monkeypatch.setattr(heuristics, "own_part_taken_out", lambda *_: 0.0)
    plan = plan_of(DENSE, epsilon=4.0)
    method = CENTRAL.calibrated(plan)
    people = DENSE.catalog, DENSE.profiles, DENSE.shards
    simulation = Simulation(method, plan, *people, Key.from_seed(0))
    state, _ = simulation.step(simulation.start())
    state, _ = simulation.step(state)
    phase = method.next_phase(state.server)
    assert phase is not None
    assert phase.name == name
    assert state.server.weights["strengths"].any() == (name == "loadings")


def test_counted_to_the_end_it_is_popularity_with_the_whole_budget():
    """The same noise, and the order of the counts for everyone."""
    plan = plan_of(SPARSE, epsilon=2.0)
    made, _, state = trained(CENTRAL, SPARSE, plan)
    counts = state.server.weights["counts"]
    variance = float(state.server.memory["count variance"][0])
    alone = FederatedPopularity(privacy=CentralGaussian())
    whole = alone.calibrated(replace(plan, rounds=1))
    [phase] = whole.phases(replace(plan, rounds=1))
    assert variance == pytest.approx(
        whole.privacy.variance(phase, users=len(SPARSE.shards), size=4000)
    )
    broadcast = made.broadcast(state.server)
    known = Relations.from_broadcast(broadcast.weights)
    r, popular = known.parted(made._rows(SPARSE.shards, known.head))
    scores = known.score(
        known.loads(r), popular[:, None], np.zeros((len(r), 0)), weight=0.0
    )
    by_count = np.argsort(-counts, kind="stable")
    assert (np.argsort(-scores, axis=1, kind="stable") == by_count).all()


def test_counts_of_two_rounds_have_the_noise_of_both_shares():
    plan = plan_of(SPARSE, epsilon=2.0)
    method = CENTRAL.calibrated(plan)
    people = SPARSE.catalog, SPARSE.profiles, SPARSE.shards
    true = np.zeros(4000)
    for history in SPARSE.shards.histories:
        true[history] += len(history) ** -0.5
    off = []
    for seed in range(3):
        simulation = Simulation(method, plan, *people, Key.from_seed(seed))
        state, _ = simulation.step(simulation.start())
        state, _ = simulation.step(state)
        off.append(state.server.weights["counts"] - true)
    share = sum(
        p.share for p in method.phases(plan) if p.name in ("counts", "more counts")
    )
    expected = method.privacy.total_noise / share**0.5
    assert np.std(off) == pytest.approx(expected, rel=0.03)


def no_tastes(n_users: int, n_items: int, *, length: int):
    """Users who all draw from one popularity, so that there is no taste to be found."""
    rng, chance = np.random.default_rng(1), 1 / np.arange(1, n_items + 1) ** 0.8
    histories = [
        sorted(rng.choice(n_items, length, replace=False, p=chance / chance.sum()))
        for _ in range(n_users)
    ]
    return FederatedData.of_histories(histories, n_items=n_items)


def test_items_that_go_with_themselves_are_no_taste(monkeypatch):
    """Without taste nothing but own parts makes directions along popular items."""
    world = no_tastes(4000, 60, length=4)
    plan = plan_of(world, epsilon=8.0)
    method = replace(CENTRAL, count_share=0.2)

    def personal():
        state = trained(method, world, plan)[2]
        assert gram._way(state.server) == gram._Way.RELATING
        return float(state.server.weights["strengths"].max())

    found = personal()
    monkeypatch.setattr(heuristics, "own_part_taken_out", lambda *_: 0.0)
    assert found < 0.5 * personal()


def test_groups_do_not_change_what_a_usual_history_has(monkeypatch):
    """Counts of groups are scaled, and so is the number of users they are held to."""
    found = []

    def kept(items_per_history, most_popular):
        found.append(items_per_history)
        return 0.0

    monkeypatch.setattr(heuristics, "own_part_taken_out", kept)
    half = len(DENSE.shards) // 2
    groups = {"strict": half, "open": len(DENSE.shards) - half}
    targets = {"strict": 8.0, "open": 16.0}
    for fields in ({}, {"groups": groups, "target_epsilon": targets}):
        plan = plan_of(DENSE, epsilon=16.0, **fields)
        made = CENTRAL.calibrated(plan)
        people = DENSE.catalog, DENSE.profiles, DENSE.shards
        codes = np.arange(len(DENSE.shards)) % len(plan.groups)
        simulation = Simulation(made, plan, *people, Key.from_seed(0), groups=codes)
        list(simulation.run(simulation.start()))
    alone, grouped = found[0], found[-1]
    assert grouped == pytest.approx(alone, rel=0.1)


def test_own_parts_are_those_of_items_drawn_alone():
    """Along a direction on one item all of a mean z zᵀ may be that item's own."""
    vectors = np.array([[1.0, 0.6], [0.0, 0.8], [0.0, 0.0]])
    lengths = np.array([4.0, 1.0, 3.0])
    assert own_parts(vectors, lengths) == pytest.approx([0.5, (0.36 * 4 + 0.64) / 8])


def test_short_histories_are_counted_again_and_shorter_ones_not_related():
    """As many users and as much noise, but three items of the head, not twelve."""
    names = {}
    for length in (2, 3, 12):
        world = world_of(1500, 60, length=length, power=0.8)
        state = trained(CENTRAL, world, plan_of(world, epsilon=1.0))[2]
        names[length] = gram._way(state.server)
    ways = gram._Way.COUNTING, gram._Way.RELATING_LATER, gram._Way.RELATING
    assert names == dict(zip((2, 3, 12), ways, strict=True))


def test_directions_that_are_not_loaded_are_weighted_by_how_sure_they_are(monkeypatch):
    """The first ones have loadings, which are shrunk one by one, and stay."""
    plan = plan_of(DENSE, epsilon=4.0)
    made, _, state = trained(CENTRAL, DENSE, plan)
    monkeypatch.setattr(heuristics, "doubt", lambda edge: 1.0)
    monkeypatch.setattr(gram, "certainty", lambda strengths, **_: 0.5 * (strengths > 0))
    _, _, other = trained(CENTRAL, DENSE, plan)
    monkeypatch.setattr(gram, "certainty", lambda strengths, **_: 1.0 * (strengths > 0))
    _, _, whole = trained(CENTRAL, DENSE, plan)
    first = made.load_rank
    half, full, own = (s.server.weights["strengths"] for s in (other, whole, state))
    np.testing.assert_array_equal(half[:first], full[:first])
    np.testing.assert_allclose(half[first:], 0.5 * full[first:])
    assert (own[first:] <= full[first:]).all()
    assert own[first:].sum() < full[first:].sum()


@given(st.integers(0, 10**6), st.floats(0.1, 1e6))
def test_no_loading_is_longer_than_one(seed, scale):
    """Whatever the history, and whatever directions were broadcast."""
    rng = np.random.default_rng(seed)
    weights = {
        "head": np.arange(9),
        "weights": rng.random(9) * scale,
        "popularity": rng.normal(size=9) * scale,
        "n_items": np.array([9]),
    }
    known = Relations.from_broadcast(weights)
    x = (rng.random((20, 9)) < 0.3) * rng.random((20, 9)) * scale
    q, t = known.loadings(x, scale * rng.normal(size=(5, 3)))
    assert (np.linalg.norm(q, axis=1) <= 1).all()
    assert (np.linalg.norm(t, axis=1) <= 1).all()


def test_loadings_reach_items_beyond_the_head():
    method = replace(CENTRAL, head=20)
    made, _, state = trained(method, DENSE, plan_of(DENSE, epsilon=16.0))
    vectors = state.server.weights["vectors"]
    assert vectors.shape[0] > made.head
    assert np.abs(vectors[made.head :]).max() > 0


def test_two_rounds_or_a_sample_of_users_are_planned_as_before():
    for fields in ({"rounds": 2}, {"sampler": Poisson(0.5)}):
        made = CENTRAL.calibrated(plan_of(DENSE, epsilon=4.0, **fields))
        assert not made.chooses_phases
        assert [p.name for p in made.phases(plan_of(DENSE, epsilon=4.0, **fields))] == [
            "counts",
            "relations",
        ]
    assert CENTRAL.calibrated(plan_of(DENSE, epsilon=4.0)).chooses_phases
    assert not Gram(privacy=LocalPrivUnit()).chooses_phases
    assert not Gram().chooses_phases


def test_loadings_may_be_planned():
    method = Gram(
        privacy=CentralGaussian({"counts": 0.1, "relations": 0.1, "loadings": 0.1}),
        count_rounds=1,
        load_rounds=1,
        head=10,
    )
    made, _, state = trained(method, DENSE, plan_of(DENSE, epsilon=None, delta=1e-6))
    assert (made.load_items, made.load_rank) == loads_shape(10)
    assert np.abs(state.server.weights["vectors"][10:]).max() > 0


def test_rules():
    assert first_count_share(0.2) == 1.0
    assert first_count_share(0.05) == pytest.approx(0.4)
    assert load_share(0.1) == pytest.approx(0.495)
    assert 0 < heuristics.doubt(0.01) < heuristics.doubt(0.02) < 1.0
    assert load_share(0.6) == pytest.approx(0.22)
    with pytest.raises(BadValue, match="load_share"):
        Gram(load_share=1.0)
    with pytest.raises(BadValue, match="load_rank"):
        Gram(load_rank=0)


def test_a_refresh_adds_to_loadings_where_there_are_some():
    plan = plan_of(DENSE, epsilon=8.0)
    made, _, state = trained(CENTRAL, DENSE, plan)
    again = CENTRAL.refreshing(made)
    later = plan_of(DENSE, epsilon=8.0, rounds=1)
    again = again.calibrated(later)
    started = again.start(later, DENSE.catalog, Key.from_seed(0))
    server = again.continued(
        started, weights=state.server.weights, memory=state.server.memory
    )
    phase = again.next_phase(server)
    assert phase is not None
    assert (phase.name, phase.share) == ("loadings", 1.0)
    assert np.array_equal(server.weights["tastes"], state.server.weights["tastes"])
    only = {**state.server.memory, "loaded people": np.zeros(1)}
    server = again.continued(started, weights=state.server.weights, memory=only)
    phase = again.next_phase(server)
    assert phase is not None
    assert phase.name == "relations"
    assert isinstance(later.sampler, Everyone)
