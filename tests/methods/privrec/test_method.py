"""PrivRec: the contract in every form, and what each form does.

Also tests `tacit.models.feature_mlp.blueprint` and `tacit.models.feature_mlp.cohort`.
"""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from methods.privrec.worlds import FULL, TINY, mixed, two_kinds
from quick import some_of

from tacit.accounting.published import privrec_epsilon
from tacit.data.catalog import Profiles
from tacit.data.features import Category, Numeric
from tacit.data.shards import Shards
from tacit.data.strings import Strings
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.mechanisms.adaptive_clip import BIT
from tacit.method import Candidates, CentralGaussian, LocalPrivUnit, Updates, enrol
from tacit.methods.privrec import PrivRec
from tacit.plans import Plan
from tacit.privacy import PublishedClippedSum
from tacit.release import Unit, View
from tacit.runtime.simulate import Simulation
from tacit.sampling import FixedSize, Poisson
from tacit.serving.recommender import Recommender, stranger
from tacit.statement import account
from tacit.testing.contract import MethodContract
from tacit.transport.channels import Sum
from tacit.tree import Tree

FAST = {"local_epochs": 1, "batch": 32, "rate": 0.2, "negatives": 1}
LEARNER = {
    **TINY,
    "widths": (8, 4),
    "embedding": 4,
    "local_epochs": 5,
    "batch": 8,
    "rate": 0.3,
    "adapt_epochs": 30,
    "adapt_rate": 0.3,
}


class PrivRecContract(MethodContract):
    rounds = 2
    settings: dict[str, object] = {}  # noqa: RUF012

    def method(self):
        return PrivRec(**{**FULL, **FAST, "positive_from": 3.0, **self.settings})

    def world(self):
        return mixed()

    def plan(self, world):
        """Few a round: every form plays dozens of them."""
        return Plan(len(world.shards), rounds=self.rounds, sampler=Poisson(0.35))

    def answer_world(self):
        return two_kinds()

    def check_learnt(self, score, world):
        """A user of the even kind ranks every even item above every odd one."""
        scores = score(world.shards)
        own = np.arange(12) % 2 == (np.arange(24) % 2)[:, None]
        worst_own = np.where(own, scores, np.inf).min(axis=1)
        best_other = np.where(own, -np.inf, scores).max(axis=1)
        assert (worst_own > best_other).all()


class Answering(PrivRecContract):
    """The answer is learnt with the same protection and settings that can learn."""

    rounds = 3

    def method(self):
        return PrivRec(**{**LEARNER, **self.settings})

    def world(self):
        return two_kinds()


class TestBare(PrivRecContract):
    def test_a_small_world_with_a_known_answer_is_learnt(self):
        Knows().test_a_small_world_with_a_known_answer_is_learnt()


class Knows(Answering):
    pass


class TestCentral(PrivRecContract):
    """One round counts, the others train."""

    rounds = 3
    settings = {  # noqa: RUF012
        "privacy": CentralGaussian(
            {"counts": 0.01, "updates": 0.02},
            clip=0.5,
            clip_quantile=0.5,
            bit_noise=0.05,
        ),
        "count_rounds": 1,
    }

    def test_a_small_world_with_a_known_answer_is_learnt(self):
        known = Knows()
        known.settings, known.rounds = self.settings, 4
        known.test_a_small_world_with_a_known_answer_is_learnt()


def test_adam_belongs_to_sound_mode_and_needs_no_other_account():
    """What the server does with a noisy sum costs nothing."""
    with pytest.raises(BadValue, match="takes plain steps"):
        PrivRec(mode="paper", server_step="adam")
    plan = Plan(100, rounds=3, channel="secure_sum", delta=1e-6)
    plain = TestCentral().method()
    releases = [
        replace(plain, server_step=step).releases(plan) for step in ("reptile", "adam")
    ]
    assert releases[0] == releases[1]


def test_adam_takes_steps_of_its_rate():
    """The first one is as long as its rate where anything moved at all."""
    world, plan = mixed(), Plan(13, rounds=1)
    method = PrivRec(**{**FULL, **FAST}, server_step="adam", step=0.01)
    made = simulation(method, world, plan)
    before, after = made.start().server.weights, last(made).server.weights
    moved = np.abs(after["weights.2"] - before["weights.2"])
    assert moved.max() == pytest.approx(0.01, rel=0.01)
    np.testing.assert_array_equal(after["catalog.kinds"], before["catalog.kinds"])


class TestPaper(PrivRecContract):
    settings = {  # noqa: RUF012
        "mode": "paper",
        "privacy": PublishedClippedSum(0.01, clip=2.0, quantile=0.9),
        "uses_value": True,
        "step": 0.7,
    }

    def plan(self, world):
        sampler = FixedSize(4)
        return Plan(len(world.shards), rounds=self.rounds, sampler=sampler)

    def test_a_small_world_with_a_known_answer_is_learnt(self):
        class Whole(Answering):
            settings = self.settings

        Whole().test_a_small_world_with_a_known_answer_is_learnt()


def simulation(method, world=None, plan=None, seed=0):
    world = world or mixed()
    plan = plan or Plan(len(world.shards), rounds=2)
    data = world.catalog, world.profiles, world.shards
    return Simulation(method, plan, *data, Key.from_seed(seed))


def last(made):
    *_, (state, _) = made.run(made.start())
    return state


# adaptation


def tastes_of(method, state, world, shards):
    broadcast = method.broadcast(state.server)
    keys = Key.from_seed(2).each(np.arange(len(shards)))
    clients = enrol(method, state.server.plan, world.profiles, keys)
    return broadcast, method.represent(broadcast, clients, shards, keys)


def test_a_history_changes_the_list_and_no_history_does_not():
    """Somebody with nothing is scored by the global weights alone."""
    world = mixed()
    method = PrivRec(**{**FULL, **FAST, "positive_from": 3.0})
    state = last(simulation(method, world))
    empty = world.shards.take(np.zeros(len(world.shards), int))  # user 0 has nothing
    broadcast, bare = tastes_of(method, state, world, empty)
    _, own = tastes_of(method, state, world, world.shards)
    global_bias = np.broadcast_to(
        broadcast.weights["bias.2"], bare.tree["bias.2"].shape
    )
    np.testing.assert_array_equal(bare.tree["bias.2"], global_bias)
    moved = np.abs(own.tree["bias.2"] - global_bias).max(axis=1)
    assert (moved > 0).tolist() == (world.shards.lengths > 0).tolist()


def test_a_new_user_without_a_profile_adapts():
    """Shown even items, even ones come first; nothing but the history is known."""
    method, world = PrivRec(**LEARNER), two_kinds()
    state = last(simulation(method, world, Plan(24, rounds=3)))
    broadcast = method.broadcast(state.server)
    shard = Shards.of_history([0, 2, 4], n_items=12)
    keys = Key.from_seed(1).each([0])
    tastes = method.represent(broadcast, stranger(method), shard, keys)
    scores = method.score(broadcast, tastes, Candidates.all_of(world.catalog))[0]
    assert scores[::2].min() > scores[1::2].max()


def test_an_item_that_nobody_touched_is_scored_by_its_features():
    """Items 10 and 11 are in no history; they stand with their kind."""
    world = two_kinds()
    kept = world.shards.items < 10
    lengths = np.bincount(world.shards.owners[kept], minlength=24)
    shards = Shards(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        world.shards.items[kept],
        world.shards.values[kept],
        None,
        12,
    )
    method = PrivRec(**LEARNER, negatives=2)
    made = simulation(method, replace(world, shards=shards), Plan(24, rounds=3))
    state = last(made)
    broadcast, tastes = tastes_of(method, state, world, shards)
    scores = method.score(broadcast, tastes, Candidates.all_of(world.catalog))
    assert (scores[:, 10] == scores[:, 0]).all()  # of one kind, so they tie
    assert ((scores[:, 10] > scores[:, 11]) == (np.arange(24) % 2 == 0)).all()


@pytest.mark.slow
def test_ranking_needs_no_torch():
    """Adapting and scoring load none of it."""
    script = """
from methods.privrec.worlds import FULL, mixed
from tacit.methods.privrec import PrivRec
from methods.privrec.test_method import last, simulation, tastes_of
from tacit.method import Candidates
method, world = PrivRec(**FULL), mixed()
broadcast, tastes = tastes_of(method, simulation(method).start(), world, world.shards)
scores = method.score(broadcast, tastes, Candidates.all_of(world.catalog))
assert scores.shape == (13, 20)
assert "torch" not in sys.modules
"""
    tests = [*map(str, sys.path)]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {tests}\n{script}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_linear_head_learns_ratings():
    """Even items get 5 stars and odd ones 2, from whoever has them; scores are stars.

    Whoever names an item without stars likes it, and so gives it 4.
    """
    world = two_kinds()
    stars = np.where(world.shards.items % 2, 2, 5).astype(np.float32)
    rated = replace(world, shards=replace(world.shards, values=stars))
    ratings = {"head": "linear", "negatives": 0, "positive_from": 4.0}
    method = PrivRec(**{**LEARNER, **ratings, "rate": 0.05, "adapt_epochs": 0})
    assert method.liked == 4.0
    plan = Plan(24, rounds=20, sampler=FixedSize(6))
    state = last(simulation(method, rated, plan))
    broadcast, tastes = tastes_of(method, state, rated, rated.shards)
    scores = method.score(broadcast, tastes, Candidates.all_of(rated.catalog))
    np.testing.assert_allclose(scores, np.tile([5.0, 2.0], (24, 6)), atol=0.2)


# Algorithm 2


@pytest.mark.parametrize("form", [TestCentral, TestPaper])
def test_layers_are_clipped_together(form):
    """Every layer at the clip would be a longer whole; a broken update is nothing."""
    method = replace(form().method(), count_rounds=0)
    if form is TestCentral:  # of which no phase counts any more
        noise = method.privacy.noise_multiplier["updates"]
        protection = replace(method.privacy, noise_multiplier=noise)
        method = replace(method, privacy=protection)
    plan = Plan(4, rounds=1)
    server = method.start(plan, mixed().catalog, Key.from_seed(0))
    broadcast, clip = method.broadcast(server), method.privacy.clip
    slots = method.layout(plan, mixed().catalog, round=0).slots
    tree = {
        name: np.full((4, *slot.shape), clip)
        * np.array([0, 1e-6, 1, np.nan]).reshape(4, *(1,) * len(slot.shape))
        for name, slot in slots.items()
        if name != BIT
    }
    keys = Key.from_seed(1).each(np.arange(4))
    sent = method.privatize(
        broadcast, strangers(method, plan, 4), Updates(Tree.dense(**tree)), keys
    ).tree
    update = Tree({name: leaf for name, leaf in sent.leaves.items() if name != BIT})
    norms = update.norms()
    assert norms[0] == 0
    assert 0 < norms[1] < 1e-3 * clip
    assert norms[2] == pytest.approx(clip)
    assert norms[3] == 0
    # The paper's bit comes after the clip, which makes a zero of a broken update.
    within = [0.5, 0.5, -0.5, 0.0] if form is TestCentral else [1.0, 1.0, 1.0, 1.0]
    assert sent[BIT].tolist() == within


def clips_of(method, rounds, *, n=40):
    """The clip of every round, where clients' norms are 1, 2, …, n over n."""
    world, plan = mixed(), Plan(n, rounds=rounds, channel="secure_sum")
    server = method.start(plan, world.catalog, Key.from_seed(0))
    layout = method.layout(plan, world.catalog, round=0)
    shapes = {name: slot.shape for name, slot in layout.slots.items() if name != BIT}
    tree = {name: np.zeros((n, *shape)) for name, shape in shapes.items()}
    tree["bias.1"][:, 0] = np.arange(1, n + 1) / n
    updates, clients = Updates(Tree.dense(**tree)), strangers(method, plan, n)
    keys, clips = Key.from_seed(1).each(np.arange(n)), []
    for round_ in range(rounds):
        broadcast = method.broadcast(server)
        clips.append(float(broadcast.weights["clip"]))
        sent = method.privatize(broadcast, clients, updates, keys).tree.sum()
        context = method.context(server, broadcast, Key.from_seed(round_))
        total = context.mechanism.add(sent, context.key)
        server = method.aggregate(server, Sum(total), context)
    return clips


def strangers(method, plan, n):
    profiles = Profiles(Strings.of(str(i) for i in range(n)))
    return enrol(method, plan, profiles, Key.from_seed(3).each(np.arange(n)))


@pytest.mark.parametrize("quantile", some_of([0.3, 0.5, 0.9], 1))
def test_the_clip_follows_its_quantile(quantile):
    """Norms are uniform on (0, 1], so the clip should end at γ itself."""
    privacy = CentralGaussian(
        0.1, clip=2.0, clip_quantile=quantile, clip_rate=0.5, bit_noise=1.0
    )
    clips = clips_of(PrivRec(**FULL, privacy=privacy), 40)
    assert clips[0] == 2.0
    assert np.mean(clips[-15:]) == pytest.approx(quantile, abs=0.06)


def test_the_published_clip_falls_whatever_the_norms_are_and_stops_at_its_floor():
    """S - α₄ (1 - γ) a round: 2 - 0.05 · 100 would be below zero."""
    privacy = PublishedClippedSum(
        1e-6, clip=2.0, quantile=0.9, clip_rate=0.5, least_clip=0.25
    )
    clips = clips_of(PrivRec(**FULL, mode="paper", privacy=privacy), 40)
    assert np.diff(clips[:20]) == pytest.approx(-0.05, abs=1e-4)
    assert clips[-1] == 0.25


def test_the_published_noise_stands_outside_the_step():
    """Line 9: θ + α₃ Δ + N(0, σ²), σ = 2 S z / M sqrt(1 / (1 - h)), whatever α₃ is.

    Some 70 weights: the standard error of a deviation is 8 %; a step inside the noise
    would be 60 % off.
    """
    world = mixed()
    for step in (0.4, 1.0):
        privacy = PublishedClippedSum(1.0, clip=40.0)
        method = PrivRec(**FULL, mode="paper", privacy=privacy, step=step)
        plan = Plan(13, channel="secure_sum")
        server = method.start(plan, world.catalog, Key.from_seed(0))
        context = method.context(server, method.broadcast(server), Key.from_seed(1))
        layout = context.layout
        total = context.mechanism.add(layout.zeros(), context.key)
        after = method.aggregate(server, Sum(total), context)
        moved = np.concatenate(
            [
                (after.weights[n] - server.weights[n]).ravel()
                for n in layout.slots
                if n != BIT
            ]
        )
        sigma = 2 * 40 / 13 * np.sqrt(1 / 0.3)
        assert moved.std() == pytest.approx(sigma, rel=0.4)


def test_a_device_refuses_a_clip_it_did_not_agree_to():
    moving = {"clip_quantile": 0.5, "bit_noise": 2.0, "clip_span": 5.0}
    method = PrivRec(**FULL, privacy=CentralGaussian(1.0, **moving))
    made = simulation(method)
    broadcast = method.broadcast(made.start().server)
    wrong = replace(broadcast, weights={**broadcast.weights, "clip": np.array(6.0)})
    with pytest.raises(Refused, match=r"clip=6\.0 is not in \[0.2, 5.0\]"):
        method.noise(wrong, made.plan)


# account


def statement(method, plan, view=View.RELEASE):
    told = account(plan, method.releases(plan))
    (found,) = [s for s in told.totals if (s.unit, s.view) == (Unit.USER, view)]
    return found


@pytest.mark.slow
def test_calibrated_noise_meets_the_target():
    plan = Plan(
        4832,
        rounds=100,
        sampler=Poisson(0.05),
        channel="secure_sum",
        delta=1e-6,
        target_epsilon=4.0,
    )
    method = PrivRec(privacy=CentralGaussian(clip_quantile=0.5)).calibrated(plan)
    assert statement(method, plan).epsilon == pytest.approx(4.0, abs=4e-3)
    assert statement(method, plan, View.COLLUSION).epsilon is None
    assert method.privacy.bit_noise == pytest.approx(0.05 * 0.05 * 4832)
    fixed = CentralGaussian(method.privacy.noise_multiplier)
    still = replace(method, privacy=fixed)
    assert still.calibrated(plan) == still  # z is set, and there are no bits
    assert still.releases(plan)[0].cells[Unit.USER, View.RELEASE].event == (
        method.releases(plan)[0].cells[Unit.USER, View.RELEASE].event
    )


def test_paper_mode_says_the_published_figure_and_the_provable_one():
    """Table 3: 30 of 4800, delta 1e-6; beside it .0378 for a step of 0.1."""
    plan = Plan(4800, rounds=1000, sampler=FixedSize(30), delta=1e-6)
    method = PrivRec(mode="paper", privacy=PublishedClippedSum(), step=0.1)
    method = method.calibrated(plan)
    assert method.privacy.noise_multiplier == 1.0
    (release,) = method.releases(plan)
    cell = release.cells[Unit.USER, View.RELEASE]
    published = privrec_epsilon(30, population=4800, delta=1e-6)
    assert cell.published_epsilon == pytest.approx(published)
    assert statement(method, plan).epsilon == pytest.approx(0.0378, abs=5e-4)
    assert statement(method, plan, View.SERVER).epsilon is None  # over direct


def test_without_privacy_nothing_is_promised():
    plan = Plan(10, rounds=3)
    assert statement(PrivRec(), plan).epsilon is None


def test_a_plan_says_what_can_be_told_apart_and_how_loud_the_noise_is():
    world = two_kinds()
    plan = Plan(24, rounds=1)
    assert "12 items are 2 kinds" in PrivRec().outlook(plan, world.catalog)
    noisy = PrivRec(**TINY, privacy=CentralGaussian(2.0, clip=3.0))
    size = 2 * 3 + 3 * 5 + 5 + 5 + 1
    times = 2.0 * np.sqrt(size) / 24
    assert f"{times:.1f} times" in noisy.outlook(plan, world.catalog)
    moving = CentralGaussian(2.0, clip=3.0, clip_quantile=0.5, bit_noise=100.0)
    again = replace(noisy, privacy=moving)  # so many bits cost next to nothing
    assert f"{times:.1f} times" in again.outlook(plan, world.catalog)
    paper = replace(noisy, mode="paper", privacy=PublishedClippedSum(2.0, clip=3.0))
    times *= 2 * np.sqrt(1 / 0.3)
    assert f"{times:.1f} times" in paper.outlook(plan, world.catalog)


# features


def test_numbers_of_items_are_standardised_unless_the_paper_is_followed():
    world = mixed()
    plan = Plan(13)
    for mode in ("sound", "paper"):
        method = PrivRec(items=("weight",), mode=mode)
        weights = method.start(plan, world.catalog, Key.from_seed(0)).weights
        numbers = weights["catalog.numbers"][weights["catalog.kinds"], 0]
        if mode == "sound":
            assert abs(numbers.mean()) < 1e-6
            assert numbers.std() == pytest.approx(1.0, rel=1e-5)
        else:
            np.testing.assert_array_equal(
                numbers, world.catalog.features["weight"].values
            )


def test_an_unknown_number_of_an_item_is_the_mean():
    world = two_kinds()
    year = np.array([1990, np.nan, *[2000] * 10], np.float32)
    catalog = replace(world.catalog, features={"year": Numeric(year)})
    server = PrivRec().start(Plan(24), catalog, Key.from_seed(0))
    kinds = server.weights["catalog.kinds"]
    assert server.weights["catalog.numbers"][kinds[1], 0] == 0.0


def test_candidates_have_no_value_and_a_usual_situation():
    """In paper mode a value is an input; of a candidate it is zero, whatever was."""
    world = mixed()
    method = PrivRec(**FULL, mode="paper", uses_value=True, positive_from=3.0)
    broadcast = method.broadcast(simulation(method, world).start().server)
    cohort = method.cohort(broadcast)
    usual = cohort.usual_situation(world.shards)
    assert not usual.numbers[:, -1].any()
    found = cohort.examples(
        strangers(method, Plan(13), 13).state,
        world.shards,
        Key.from_seed(0).each(np.arange(13)),
    )
    per_user = usual.shares.sum(axis=1)
    known = world.shards.contexts["weather"].codes >= 0
    shares = np.bincount(world.shards.owners, weights=known, minlength=13)
    np.testing.assert_allclose(per_user, shares / np.maximum(1, world.shards.lengths))
    values = found.situations.numbers[:, -1]
    assert set(values.tolist()) == {0.0, 1.0, 2.0, 3.0, 4.0, 5.0}


def test_users_who_know_other_labels_are_refused():
    world = mixed()
    other = Category.of(["a", "b", "c"]).take(np.arange(13) % 3)
    profiles = replace(world.profiles, features={"side": other})
    with pytest.raises(BadValue, match="feature 'side' has 3 labels, 2 were agreed on"):
        simulation(PrivRec(**FULL), replace(world, profiles=profiles)).start()


# what is refused


def test_settings_that_cannot_be():
    with pytest.raises(BadValue, match="none disliked: draw negatives"):
        PrivRec(negatives=0)
    with pytest.raises(BadValue, match="uses_value=True belongs to mode='paper'"):
        PrivRec(uses_value=True)
    for mode, privacy in {
        "paper": CentralGaussian(1.0),
        "sound": PublishedClippedSum(),
    }.items():
        with pytest.raises(BadValue, match="mode='paper' and mechanism 'published' go"):
            PrivRec(mode=mode, privacy=privacy)
    with pytest.raises(BadValue, match="must be one of Unprotected, CentralGaussian"):
        PrivRec(mode="paper", privacy=LocalPrivUnit(1.0))
    with pytest.raises(BadValue, match="'value' is the event's own"):
        PrivRec(situations={"value": 0})
    with pytest.raises(BadValue, match="noise_multiplier is not set"):
        PrivRec(privacy=CentralGaussian()).releases(Plan(10))
    with pytest.raises(BadValue, match="width=0 must be >= 1"):
        PrivRec(widths=(4, 0))
    with pytest.raises(BadValue, match="labels of age=-1 must be >= 0"):
        PrivRec(people={"age": -1})
    with pytest.raises(BadValue, match="mode='papr' is not known"):
        PrivRec(mode="papr")
    with pytest.raises(BadValue, match=r"rate=0\.0 must be > 0"):
        PrivRec(rate=0.0)


def test_paper_mode_needs_cohorts_of_one_size():
    plan = Plan(100, sampler=Poisson(0.1), delta=1e-6)
    method = PrivRec(mode="paper", privacy=PublishedClippedSum())
    for refusing in (method.calibrated, method.releases):
        with pytest.raises(Refused, match="Poisson; use fixed_size"):
            refusing(plan)
    made = simulation(method, two_kinds(), replace(plan, population=24, groups={}))
    with pytest.raises(Refused, match="Poisson; use fixed_size"):
        made.start()


def test_a_catalog_without_features_is_refused():
    from tacit.testing.contract import checkerboard

    with pytest.raises(BadValue, match="no feature of items"):
        simulation(PrivRec(), checkerboard()).start()


def test_one_device_serves_from_what_it_holds():
    """The whole way: a recommender, a history of ids, a list without them."""
    world, method = two_kinds(), PrivRec(**LEARNER)
    state = last(simulation(method, world, Plan(24, rounds=3)))
    recommender = Recommender(method, method.broadcast(state.server), world.catalog)
    best = recommender.recommend(["item 1", "item 3"], n=4)
    assert {line.id for line in best} == {"item 5", "item 7", "item 9", "item 11"}


def test_what_somebody_names_is_liked():
    """Named without stars, items count as liked where only four stars would."""
    world = two_kinds()
    stars = replace(world.shards, values=np.full(len(world.shards.items), 5.0, "f4"))
    method = PrivRec(**LEARNER, positive_from=4.0)
    assert method.liked == 4.0
    made = simulation(method, replace(world, shards=stars), Plan(24, rounds=3))
    broadcast = method.broadcast(last(made).server)
    best = Recommender(method, broadcast, world.catalog).recommend(
        ["item 1", "item 3"], n=4
    )
    assert {line.id for line in best} == {"item 5", "item 7", "item 9", "item 11"}


def test_users_are_scored_a_few_hundred_at_a_time(monkeypatch):
    world = mixed()
    method = PrivRec(**{**FULL, **FAST, "positive_from": 3.0})
    broadcast = method.broadcast(simulation(method, world).start().server)
    recommender = Recommender(method, broadcast, world.catalog)
    keys = Key.from_seed(2).each(np.arange(13))
    clients = enrol(method, Plan(13, rounds=2), world.profiles, keys)
    whole = recommender.score(world.shards, clients, keys)
    monkeypatch.setattr("tacit.serving.recommender._USERS_AT_ONCE", 4)
    again = recommender.score(world.shards, clients, keys)
    np.testing.assert_allclose(again, whole, rtol=0, atol=1e-12)
