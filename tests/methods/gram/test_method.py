"""Gram: the contract in every form, the sensitivity, and what it learns."""

from dataclasses import replace

import numpy as np
import pytest
from quick import some_of

from tacit.data.features import Categories
from tacit.data.federated_data import FederatedData
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.method import (
    Candidates,
    CentralGaussian,
    Clients,
    LocalPrivUnit,
    Updates,
)
from tacit.methods.gram import Gram
from tacit.models.item_relations import Relations
from tacit.plans import Plan
from tacit.release import View
from tacit.runtime.simulate import Simulation
from tacit.sampling import Everyone, Once, Poisson
from tacit.statement import account
from tacit.testing.contract import (
    MethodContract,
    assert_checkerboard_learnt,
    checkerboard,
    mixed_world,
)
from tacit.transport.messages import Broadcast, Slot
from tacit.tree import Symmetric, Tree, mirrored

DELTA = 1e-6
CENTRAL = Gram(privacy=CentralGaussian())


class GramContract(MethodContract):
    """Two rounds of counting and one of relating."""

    rounds = 3

    def check_learnt(self, score, world):
        assert_checkerboard_learnt(score, world.shards)


class TestBare(GramContract):
    def method(self):
        return Gram(count_rounds=2, head=20, rank=8)


class TestHeadAndTail(GramContract):
    rounds = 2

    def method(self):
        return Gram(count_rounds=1, head=7, rank=3)

    def check_learnt(self, score, world):
        """Seven of twelve items are related; the others follow, by count."""
        scores = score(world.shards)
        assert np.isfinite(scores).all()
        best = np.argsort(-scores, axis=1)
        assert (np.sort(best[:, :7], axis=1) == np.sort(best[0, :7])).all()
        assert (best[:, 7:] == best[0, 7:]).all()


class TestShared(GramContract):
    """All items in eight rows, by their parity."""

    rounds = 2

    def method(self):
        return Gram(head=8, reach=20, rank=8, content=("parity",))

    def _simulation(self, *, world=None, **named):
        place = with_parity(world or mixed_world())
        return super()._simulation(world=place, **named)


def with_parity(world):
    labels = Categories.of([[str(i % 2)] for i in range(len(world.catalog))])
    return replace(world, catalog=replace(world.catalog, features={"parity": labels}))


class TestCentral(GramContract):
    def method(self):
        privacy = CentralGaussian({"counts": 0.05, "relations": 0.05})
        return Gram(privacy=privacy, count_rounds=2, head=20, rank=8)


class TestBudgets(GramContract):
    """Every third user sends a fifth of a report."""

    def method(self):
        noise = {"counts": 0.02, "relations": 0.02}
        privacy = CentralGaussian(noise, scale={"strict": 0.2, "open": 1.0})
        return Gram(privacy=privacy, count_rounds=2, head=20, rank=8)

    def plan(self, world):
        return with_strict(super().plan(world))

    def answer_plan(self, world):
        return with_strict(super().answer_plan(world))


def with_strict(plan):
    few = plan.population // 3
    return replace(plan, groups={"strict": few, "open": plan.population - few})


class TestLocal(GramContract):
    def method(self):
        privacy = LocalPrivUnit(epsilon=400.0)
        return Gram(privacy=privacy, count_rounds=1, head=20, rank=8)

    def plan(self, world):
        return Plan(len(world.shards), rounds=self.rounds, sampler=Once())

    def answer_world(self):
        """Every user of the checkerboard forty times: noise needs a crowd."""
        few = checkerboard()
        people = np.tile(np.arange(24), 40)
        histories = [few.shards.histories[p].tolist() for p in people]
        return FederatedData.of_histories(histories, n_items=12)


def trained(method, *, world=None, plan=None, seed=0):
    world = world or checkerboard()
    plan = plan or Plan(len(world.shards), rounds=2)
    simulation = Simulation(
        method, plan, world.catalog, world.profiles, world.shards, Key.from_seed(seed)
    )
    *_, (state, _) = simulation.run(simulation.start())
    return state


PLAN = Plan(24, rounds=2)
RELATING = Broadcast(1, PLAN.digest, {}, phase=1)
ONE = CentralGaussian({"counts": 1.0, "relations": 1.0})


def sent_while_relating(method, updates):
    """What clients send of these updates."""
    n = len(updates.tree)
    clients = Clients(PLAN, np.arange(n), np.zeros(n, np.int64), Tree({}))
    keys = Key.from_seed(0).each(np.arange(n))
    return method.privatize(RELATING, clients, updates, keys).tree


# sensitivity


@pytest.mark.parametrize("scale", [0.0, 1e-12, 0.3, 1.0, 1e6])
def test_no_report_moves_the_second_sum_by_more_than_one_over_root_two(scale):
    """Also of clients that lie: one corner, all corners, huge, broken."""
    method = Gram(privacy=ONE, head=9)
    rng = np.random.default_rng(0)
    roots = np.concatenate(
        [np.eye(9), np.ones((1, 9)), rng.normal(size=(20, 9)), np.full((1, 9), np.inf)]
    )
    with np.errstate(invalid="ignore"):
        updates = Updates(Tree({"relations": Symmetric(scale * roots[:, None, :])}))
    sent = sent_while_relating(method, updates)
    norms = np.linalg.norm(sent.to_dense()["relations"], axis=1)
    assert (norms <= np.sqrt(0.5) * (1 + 1e-6)).all()


def test_honest_reports_are_as_long_as_they_may_be():
    method = Gram(privacy=ONE, head=20)
    world = mixed_world()
    plan = Plan(len(world.shards), rounds=2)
    simulation = Simulation(
        method, plan, world.catalog, world.profiles, world.shards, Key.from_seed(0)
    )
    state = simulation.start()
    for bound in (1.0, np.sqrt(0.5)):
        broadcast = method.broadcast(state.server)
        keys = simulation.population.keys
        _, updates = method.local_update(broadcast, state.clients, world.shards, keys)
        norms = updates.tree.norms()
        assert norms[0] == 0  # no history
        assert norms[1:] == pytest.approx(bound)
        state, _ = simulation.step(state)


def test_the_sum_bounds_what_a_liar_sends():
    """A report of norm 1000 moves a trusted sum no further than an honest one."""
    from tacit.transport.channels import RoundContext, SecureSum
    from tacit.transport.messages import Reports

    privacy = CentralGaussian({"counts": 1.0, "relations": 1e-9})
    method = Gram(privacy=privacy, head=4)
    lie = Reports(Tree({"relations": Symmetric(np.full((1, 1, 4), 1000.0))}))
    layout = method.layout(PLAN, checkerboard().catalog, round=1)
    context = RoundContext(layout, Key.from_seed(0), method.noise(RELATING, PLAN))
    total = SecureSum().carry([lie], context).total["relations"]
    assert np.linalg.norm(total) == pytest.approx(np.sqrt(0.5), rel=1e-6)


def test_noise_on_the_mirrored_sum():
    """Deviation s on the diagonal, s / sqrt(2) beside it, symmetric.

    200 x 201 / 2 numbers: the standard error is 0.4 % beside the diagonal and 5 % on
    it; a diagonal without the root of two would be 30 % off.
    """
    privacy = CentralGaussian({"counts": 1.0, "relations": 3.0})
    noise = Gram(privacy=privacy, head=200).noise(RELATING, PLAN)
    total = {"relations": np.zeros(200 * 201 // 2)}
    matrix = mirrored(noise.add(total, Key.from_seed(0))["relations"])
    assert (matrix == matrix.T).all()
    assert matrix[np.triu_indices(200, 1)].std() == pytest.approx(3 / 2**0.5, rel=0.02)
    assert np.diag(matrix).std() == pytest.approx(3.0, rel=0.25)


# account


def epsilon_of(method, plan, view=View.RELEASE):
    return account(plan, method.releases(plan)).worst(view=view)


@pytest.mark.parametrize(
    ("sampler", "rounds", "count_rounds"),
    some_of(
        [(Everyone(), 2, 1), (Everyone(), 5, 2), (Once(), 4, 1), (Poisson(0.3), 6, 2)],
        3,
    ),
)
def test_calibrated_noise_meets_the_target(sampler, rounds, count_rounds):
    plan = Plan(
        5000,
        rounds=rounds,
        sampler=sampler,
        channel="secure_sum",
        delta=DELTA,
        target_epsilon=2.0,
    )
    method = Gram(privacy=CentralGaussian(), count_rounds=count_rounds)
    method = method.calibrated(plan)
    assert epsilon_of(method, plan) == pytest.approx(2.0, abs=2e-3)
    assert epsilon_of(method, plan) <= 2.0 + 1e-6
    assert method.head is not None


def test_two_sums_cost_what_one_gaussian_of_their_budget_costs():
    """Known values of 1 / mu: PLD of the two is Gaussian DP."""
    for epsilon, noise in {1: 4.2247, 2: 2.2305, 4: 1.1935, 8: 0.6529}.items():
        plan = Plan(
            5034,
            rounds=2,
            channel="secure_sum",
            delta=DELTA,
            target_epsilon=float(epsilon),
        )
        method = Gram(privacy=CentralGaussian(), count_share=0.1).calibrated(plan)
        found = method.privacy.noise_multiplier
        assert found["counts"] == pytest.approx(noise / 0.1**0.5, rel=1e-3)
        assert found["relations"] == pytest.approx(noise / 0.9**0.5, rel=1e-3)


def test_the_head_follows_the_rule():
    plan = Plan(5000, rounds=2, channel="secure_sum", delta=DELTA, target_epsilon=8.0)
    method = CENTRAL.calibrated(plan)
    assert method.head == pytest.approx(600 * (1 / 0.6529) ** 0.5, rel=0.01)
    more = replace(plan, population=20_000, groups={})
    assert CENTRAL.calibrated(more).head == pytest.approx(2 * method.head, rel=0.01)
    assert Gram().calibrated(Plan(50, rounds=2)).head == 3000


def test_local_reports_split_people_not_budget():
    plan = Plan(5000, rounds=10, sampler=Once(), target_epsilon=4.0)
    method = Gram(privacy=LocalPrivUnit(), count_rounds=3).calibrated(plan)
    assert method.privacy.epsilon == 4.0
    assert len(method.releases(plan)) == 1
    assert epsilon_of(method, plan, View.COLLUSION) == pytest.approx(4.0)


def test_over_direct_the_server_has_no_guarantee():
    plan = Plan(5000, rounds=2, delta=DELTA, target_epsilon=4.0)
    method = CENTRAL.calibrated(plan)
    assert epsilon_of(method, plan, View.SERVER) is None


# what it learns


def test_popularity_is_taken_out_before_and_put_back_after():
    """A user with nothing gets the tail order only; one with all has no residue."""
    state = trained(Gram(head=12), world=checkerboard())
    method = Gram(head=12)
    broadcast = method.broadcast(state.server)
    p = broadcast.weights["popularity"]
    assert np.linalg.norm(p) == pytest.approx(1.0)
    assert np.abs(broadcast.weights["vectors"][:, :1].T @ p) < 0.2


def test_a_new_person_folds_in_at_once():
    from tacit.data.catalog import Profiles
    from tacit.data.strings import Strings
    from tacit.method import enrol

    method, world = Gram(head=12, ridge=0.5), checkerboard()
    state = trained(method, world=world)
    broadcast = method.broadcast(state.server)
    shards = Shards.of_history([0, 2, 4], n_items=12)
    keys = Key.from_seed(1).each([0])
    clients = enrol(method, state.server.plan, Profiles(Strings.of(["new"])), keys)
    tastes = method.represent(broadcast, clients, shards, keys)
    scores = method.score(broadcast, tastes, Candidates.all_of(world.catalog))[0]
    unseen = [i for i in range(12) if i not in (0, 2, 4)]
    best = sorted(unseen, key=lambda i: -scores[i])[:3]
    assert sorted(best) == [6, 8, 10]


@pytest.mark.parametrize("n", [1, 2, 3, 10])
def test_weights_change_what_a_history_says_and_not_how_far_it_is_trusted(n):
    """g counts items; for a visit the history's own popularity counts twice."""
    method, world = Gram(head=12, ridge=0.5), checkerboard()
    broadcast = method.broadcast(trained(method, world=world).server)
    items, days = np.arange(n), np.arange(n) * 86_400 * 10
    log = Interactions.of_columns(
        np.zeros(n, int), items, times=days, n_users=1, n_items=12
    )
    shards, g = Shards.of(log), n / (n + 1)
    weights = {
        "any": np.ones(n),
        "session": 1 / np.arange(n, 0, -1),
        "visit": 0.5 ** (np.arange(n)[::-1] / 3),
    }
    known = Relations.from_broadcast(broadcast.weights)
    for list_for, expected in weights.items():
        x = np.zeros((1, 12))
        x[0, items] = expected
        r, popular = known.parted(x[:, known.head])
        own = method.ranking_for(list_for).represent(broadcast, None, shards, None)
        np.testing.assert_allclose(own.tree["loads"], g * known.loads(r))
        twice = 2 if list_for == "visit" else 1
        usual = (1 - g) * 0.3
        np.testing.assert_allclose(
            own.tree["popular"][:, 0], g * twice * popular + usual
        )


def test_who_has_nothing_gets_popularity_whatever_the_list_is_for():
    method, world = Gram(head=7), checkerboard()
    broadcast = method.broadcast(trained(method, world=world).server)
    nobody, every = (
        Shards.of_histories([[]], n_items=12),
        Candidates.all_of(world.catalog),
    )
    lists = [
        own.score(broadcast, own.represent(broadcast, None, nobody, None), every)
        for own in map(method.ranking_for, ("any", "session", "visit"))
    ]
    assert (lists[0] == lists[1]).all()
    assert (lists[0] == lists[2]).all()


def test_more_noise_leaves_fewer_directions():
    world = checkerboard()
    kept = [
        (
            trained(
                Gram(
                    privacy=CentralGaussian({"counts": 0.01, "relations": noise}),
                    head=12,
                ),
                world=world,
                plan=Plan(24, rounds=2, channel="secure_sum"),
            ).server.weights["strengths"]
            > 0
        ).sum()
        for noise in (0.01, 1.0, 100.0)
    ]
    assert kept[0] >= kept[1] >= kept[2]
    assert kept[0] > kept[2]


# what is refused


def test_settings_that_cannot_be():
    with pytest.raises(Refused, match=r"rounds=1 .* use rounds = 2"):
        Gram().calibrated(Plan(10, rounds=1))
    with pytest.raises(BadValue, match="total_noise is not set"):
        Gram(privacy=CentralGaussian(), head=3).releases(Plan(10, rounds=2))
    half = CentralGaussian({"relations": 1.0})
    with pytest.raises(BadValue, match="counts"):
        Gram(privacy=half, head=3).releases(Plan(10, rounds=2))
    with pytest.raises(BadValue, match="head is not set"):
        Gram().start(PLAN, checkerboard().catalog, Key.from_seed(0))


def test_rows_are_shared_only_with_what_is_alike():
    with pytest.raises(BadValue, match="reach=9 needs public content"):
        Gram(reach=9)


def test_shared_rows_bound_what_is_sent_and_kept():
    """Twelve items in eight rows: the report and the model have eight."""
    world = with_parity(checkerboard())
    method = Gram(head=8, reach=12, rank=20, content=("parity",))
    plan = Plan(24, rounds=2)
    layout = method.layout(plan, world.catalog, round=1)
    assert layout.slots["relations"] == Slot.symmetric("float64", 8)
    server = trained(method, world=world, plan=plan).server
    assert server.weights["vectors"].shape == (8, 8)
    assert server.weights["rows"].max() == 7
    assert "12 most frequent items in 8 rows" in method.outlook(plan, world.catalog)
    far = Gram(head=12, reach=8, content=("parity",))
    assert "rows" not in trained(far, world=world, plan=plan).server.weights


def test_without_counting_the_first_items_are_the_head():
    method = Gram(head=5, count_rounds=0)
    server = trained(method, plan=Plan(24, rounds=1)).server
    assert server.weights["head"].tolist() == [0, 1, 2, 3, 4]
    assert server.weights["weights"].tolist() == [1] * 5
    [only] = method.releases(server.plan)
    assert "relations between items" in only.what


# what to expect


def test_without_noise_there_is_nothing_to_fear():
    plan = Plan(50, rounds=2)
    assert "no noise" in Gram().calibrated(plan).outlook(plan, checkerboard().catalog)


# content


def test_content_smooths_what_is_sent_and_keeps_its_norm():
    world = with_parity(checkerboard())
    catalog = world.catalog
    plan = Plan(24, rounds=2, channel="secure_sum")
    privacy = CentralGaussian({"counts": 0.01, "relations": 20.0})
    method = Gram(privacy=privacy, head=12, content=("parity",))
    simulation = Simulation(
        method, plan, catalog, world.profiles, world.shards, Key.from_seed(0)
    )
    state, _ = simulation.step(simulation.start())
    broadcast = method.broadcast(state.server)
    assert broadcast.weights["lean"] == [1.0]
    keys = simulation.population.keys
    _, updates = method.local_update(broadcast, state.clients, world.shards, keys)
    assert updates.tree.norms() == pytest.approx(np.full(24, np.sqrt(0.5)))
    *_, (after, _) = simulation.run(state)
    told = method.broadcast(after.server)
    tastes = method.represent(told, after.clients, world.shards, keys)
    scores = method.score(told, tastes, Candidates.all_of(catalog))
    # The noise hides everything; what is alike still finds each user's kind.
    own = np.arange(12) % 2 == (np.arange(24) % 2)[:, None]
    assert (
        np.where(own, scores, -np.inf).max(1) > np.where(own, -np.inf, scores).max(1)
    ).mean() > 0.8


def test_where_few_tastes_stand_out_more_of_the_budget_counts():
    few = Plan(700, rounds=2, channel="secure_sum", delta=1e-6, target_epsilon=1.0)
    poor = CENTRAL.calibrated(few)
    usual = replace(CENTRAL, count_share=0.1).calibrated(few)
    assert poor.count_share == pytest.approx(8 * usual.edge(few, side=usual.head))
    noise = poor.privacy.noise_multiplier
    assert noise["counts"] < noise["relations"]
    many = replace(few, population=20_000, groups={})
    assert CENTRAL.calibrated(many).count_share == 0.1
    fewer = replace(few, population=100, groups={})
    assert CENTRAL.calibrated(fewer).count_share == 0.9
    asked = replace(CENTRAL, count_share=0.3).calibrated(few)
    assert asked.count_share == 0.3


def test_local_reports_are_the_central_noise_of_their_exchange_rate():
    """N reports carry noise of deviation sqrt(N) / kappa, as if mu were kappa sqrt(N).

    820 numbers estimate it within 2.5 %; twelve are 4.9 standard errors: false alarm
    below 2e-6 if the seed were drawn anew. Noise of a whole matrix would be 41 % off.
    """
    n, side, kappa = 3000, 40, 1.516  # of epsilon 4
    roots = np.random.default_rng(0).normal(size=(n, 1, side))
    roots /= np.linalg.norm(roots, axis=2, keepdims=True)
    updates = Updates(Tree({"relations": Symmetric(roots)}))
    method = Gram(privacy=LocalPrivUnit(epsilon=4.0), head=side)
    sent = sent_while_relating(method, updates)
    noise = sent.sum()["relations"] - updates.tree.sum()["relations"]
    predicted = np.sqrt(n) / kappa * np.sqrt(0.5)
    assert noise.std() == pytest.approx(predicted, rel=0.12)
    assert abs(noise.mean()) < 5 * predicted / np.sqrt(len(noise))


def test_chunks_of_loadings_that_are_not_written_out_are_larger():
    """The rounds of counting and relating take what they send, by which chunks go."""
    made = Gram(count_rounds=1, load_rounds=1, load_rank=2, head=7, rank=3)
    layouts = made.report_layouts(Plan(13, rounds=3), mixed_world().catalog)
    shares = [layout.stored_bytes / made.report_bytes(layout) for layout in layouts]
    assert shares == [1, 1, 4]
    weighted = replace(made, weighting="log")  # its rows are written out
    assert all(weighted.report_bytes(o) == o.stored_bytes for o in layouts)
