"""PrivateRec: the contract in its forms, its start, gradient, bounds and account."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from dp_accounting import get_epsilon_gaussian
from onnx_device import run

from tacit.audits.audit_method import audit
from tacit.baselines.content import Content
from tacit.codes import Code
from tacit.data.catalog import Catalog
from tacit.data.features import Numeric, Text, Vectors
from tacit.data.federated_data import FederatedData
from tacit.data.impressions import Impressions
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.data.strings import Strings
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.method import (
    Broadcast,
    Candidates,
    CentralGaussian,
    LocalPrivUnit,
    Method,
    Unmetered,
    participate,
)
from tacit.methods.privaterec import PrivateRec
from tacit.models.news_vectors import centred
from tacit.plans import Plan
from tacit.privacy import (
    PublishedAttentionNoise,
    PublishedGradientNoise,
    PublishedVotes,
)
from tacit.release import Standing, Unit, View
from tacit.runtime.simulate import Simulation
from tacit.serving.onnx_file import to_onnx
from tacit.serving.recommender import Recommender
from tacit.statement import account
from tacit.testing.contract import (
    MethodContract,
    ScoreFunction,
    checkerboard,
    mixed_world,
)

SMALL = {"dimensions": None, "most_impressions": 2, "rate": 0.1}
QUIET = CentralGaussian({"clicks": 0.01, "gradients": 0.001}, clip=5.0)


def described(n_items: int) -> Catalog:
    """A catalog whose vectors say of an item whether it is even, and little else."""
    own = 0.3 * Key.from_seed(5).generator().normal(size=(n_items, 4))
    own[:, 0] += np.where(np.arange(n_items) % 2, 1.0, -1.0)
    ids = Strings.of([f"N{item}" for item in range(n_items)])
    # Pairs of an odd and an even item share a word; every second one shares another.
    titles = Strings.of([f"{['even', 'odd'][i % 2]} w{i // 4}" for i in range(n_items)])
    return Catalog(ids, titles, {"title_vector": Vectors(own.astype(np.float32))})


def shown_news(world: FederatedData, *, each: int = 3) -> FederatedData:
    """The same users, shown some items `each` times; they click what they have."""
    n, n_items = len(world.shards), len(world.catalog)
    has = np.zeros((n, n_items), bool)
    has[world.shards.owners, world.shards.items] = True
    rows = [[*range(k % 3, n_items, 3)] for k in range(n * each)]
    lengths = [len(row) for row in rows]
    items = np.array([item for row in rows for item in row], np.int32)
    users = np.arange(n * each) % n
    impressions = Impressions.of_columns(
        users,
        Ragged.of_lengths(lengths, items),
        clicked=has[np.repeat(users, lengths), items],
        histories=world.shards.histories,
        history_of=users,
        times=np.arange(n * each),
        n_users=n,
        n_items=n_items,
    )
    shards = replace(world.shards, impressions=impressions)
    return replace(world, catalog=described(n_items), shards=shards)


class TestCentral(MethodContract):
    """The contract under noise; the answer is learnt with little of it."""

    def method(self) -> Method:
        return PrivateRec(**SMALL, privacy=QUIET)

    def world(self) -> FederatedData:
        return shown_news(mixed_world())

    def answer_world(self) -> FederatedData:
        return shown_news(checkerboard())

    def answer_plan(self, world: FederatedData) -> Plan:
        return Plan(len(world.shards), rounds=20)

    def check_learnt(self, score: ScoreFunction, world: FederatedData) -> None:
        """The clicked stand above the others of their slate, nearly always."""
        slates = world.shards.known_impressions.slates
        scores, clicked = score(world.shards), world.shards.known_impressions.clicked
        wins = []
        for place in range(len(slates)):
            own = scores[slates.users[place], slates.shown[place]]
            is_clicked = clicked[slates.shown.places([place])]
            wins += [own[is_clicked][:, None] > own[~is_clicked]]
        assert np.mean(np.concatenate([win.ravel() for win in wins])) > 0.95


class TestProjection(TestCentral):
    """One matrix for both sides, all rounds on gradients."""

    def method(self) -> Method:
        own = {"model": "projection", "learns": "gradients"}
        return PrivateRec(**SMALL, **own, privacy=replace(QUIET, noise_multiplier=1e-3))


class TestLocal(TestCentral):
    """DP-FedRec with noise that proves its epsilon; here hardly any."""

    def method(self) -> Method:
        own = {"model": "projection", "learns": "gradients"}
        return PrivateRec(
            **SMALL, **own, privacy=LocalPrivUnit(epsilon=500.0, clip=5.0)
        )


class TestEncoder(TestCentral):
    """PLM-NR under central noise, from content similarity on."""

    def method(self) -> Method:
        quiet = replace(QUIET, noise_multiplier=1e-3)
        return PrivateRec(**SMALL, model="plm-nr", privacy=quiet)


class TestBasis(TestCentral):
    """Sound mode with interests: the basis is trained under the noise of the sum."""

    def method(self) -> Method:
        quiet = replace(QUIET, noise_multiplier=1e-3)
        own = {"model": "plm-nr", "interests": 2, "basis_length": 4.0}
        return PrivateRec(**SMALL, **own, privacy=quiet)


PAPER = {"mode": "paper", "model": "plm-nr", "dimensions": None, "rate": 0.1}


class TestPaper(TestCentral):
    """Algorithm 3 to the letter; its claimed epsilon is large enough to learn."""

    def method(self) -> Method:
        privacy = PublishedAttentionNoise(epsilon=60.0, padding=0.1)
        return PrivateRec(**PAPER, serving="relu", privacy=privacy)

    def answer_plan(self, world: FederatedData) -> Plan:
        return Plan(len(world.shards), rounds=60)


class TestPublishedGradient(TestCentral):
    """DP-FedRec as printed, with a clip that small gradients do not feel."""

    def method(self) -> Method:
        privacy = PublishedGradientNoise(epsilon=1e4, theta=5.0)
        return PrivateRec(**PAPER, starts_at="content", privacy=privacy)


@pytest.mark.slow
class TestWords(TestCentral):
    """NRMS with words that are learnt, without noise: FedRec."""

    def method(self) -> Method:
        pytest.importorskip("torch")
        return PrivateRec(model="nrms", word_width=8, most_impressions=2, rate=0.03)


class TestBare(TestCentral):
    """Without protection."""

    def method(self) -> Method:
        return PrivateRec(**SMALL)


class TestClicks(TestCentral):
    """Content and private click counts alone."""

    def method(self) -> Method:
        privacy = CentralGaussian(0.01)
        return PrivateRec(dimensions=None, learns="clicks", privacy=privacy)


def simulation(method, *, world=None, rounds=3, plan=None):
    world = world or shown_news(mixed_world())
    plan = plan or Plan(len(world.shards), rounds)
    return Simulation(
        method, plan, world.catalog, world.profiles, world.shards, Key.from_seed(3)
    )


def scores_of(made, server):
    method, shards = made.method, made.shards
    broadcast = method.broadcast(server)
    clients, keys = made.start().clients, Key.from_seed(0).each(np.arange(len(shards)))
    tastes = method.represent(broadcast, clients, shards, keys)
    return method.score(broadcast, tastes, Candidates.all_of(made.catalog))


def of_unit_length(catalog: Catalog) -> Catalog:
    rows = centred(catalog.features["title_vector"].values)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    # Less its mean once more would change it: the baseline centres what it is given.
    both = np.concatenate([rows, -rows]).astype(np.float32)
    ids = Strings.of([str(i) for i in range(len(both))])
    return Catalog(ids, ids, {"title_vector": Vectors(both)})


@pytest.mark.parametrize("model", ["projection", "bilinear"])
def test_untrained_it_is_the_content_baseline(model):
    """To the last digits: the same vectors, all of length one, and the scale."""
    world = mixed_world()
    catalog = of_unit_length(described(len(world.catalog)))
    shards = replace(world.shards, n_items=len(catalog))
    own = replace(world, catalog=catalog, shards=shards)
    made = simulation(PrivateRec(model=model, dimensions=None, scale=3.0), world=own)
    baseline = Content().reading(catalog).fit(shards, key=Key.from_seed(0))
    found = scores_of(made, made.start().server)
    np.testing.assert_allclose(found, 3.0 * baseline.score(shards), atol=3e-6)


def loss_of(method, server, shards, user):
    """The summed cross-entropy of one user's slates, slate by slate."""
    broadcast, impressions = method.broadcast(server), shards.known_impressions
    slates, total = impressions.slates, 0.0
    head, vectors = (
        broadcast.weights["head"],
        broadcast.weights["vectors"].astype(float),
    )
    for place in np.flatnonzero(slates.users == user):
        shown = slates.shown[place]
        clicked = impressions.clicked[slates.shown.places([place])]
        if not clicked.any() or clicked.all():
            continue
        read = slates.histories[slates.history_of[place]]
        h = vectors[read].mean(axis=0) if len(read) else np.zeros(vectors.shape[1])
        if method.model == "projection":
            scores = method.scale * vectors[shown] @ head.T @ (head @ h)
        else:
            scores = method.scale * vectors[shown] @ head.T @ np.append(h, 0.3)
        scores = scores + method.popularity * broadcast.weights["effects"][shown]
        logs = scores - np.log(np.exp(scores).sum())
        total -= logs[clicked].mean()
    return total


@pytest.mark.parametrize("model", ["projection", "bilinear"])
def test_the_gradient_is_that_of_the_loss(model):
    """Central differences of a loss that is written down slate by slate."""
    own = {"dimensions": None, "most_impressions": 3, "learns": "gradients"}
    made = simulation(PrivateRec(model=model, **own))
    server, draws = made.start().server, Key.from_seed(9).generator()
    moved = server.weights["head"] + 0.3 * draws.normal(
        size=server.weights["head"].shape
    )
    effects = draws.normal(size=len(made.catalog))
    weights = {**server.weights, "head": moved, "effects": effects}
    server = replace(server, weights=weights)
    _, reports, _ = participate(
        made.method,
        made.method.broadcast(server),
        made.start().clients,
        made.shards,
        Key.from_seed(1).each(np.arange(len(made.shards))),
        ledger=Unmetered(),
    )
    found = reports.tree.leaves["head"].dense().values
    for user in (1, 4, 9):
        expected = np.zeros_like(moved)
        for cell in np.ndindex(*moved.shape):
            sides = []
            for step in (1e-5, -1e-5):
                head_ = moved.copy()
                head_[cell] += step
                at = replace(server, weights={**weights, "head": head_})
                sides.append(loss_of(made.method, at, made.shards, user))
            expected[cell] = (sides[0] - sides[1]) / 2e-5
        np.testing.assert_allclose(found[user], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("learns", "privacy", "bound"),
    [
        ("clicks", CentralGaussian(1.0), 1.0),
        ("gradients", CentralGaussian(1.0, clip=0.2), 0.2),
    ],
)
def test_reports_are_bounded_whatever_the_history(learns, privacy, bound):
    """Clicks by construction, gradients by the clip; who clicked nothing sends zero."""
    made = simulation(PrivateRec(**SMALL, learns=learns, privacy=privacy))
    state = made.start()
    _, reports, _ = participate(
        made.method,
        made.method.broadcast(state.server),
        state.clients,
        made.shards,
        Key.from_seed(1).each(np.arange(len(made.shards))),
        ledger=Unmetered(),
    )
    norms = reports.tree.norms()
    assert norms.max() <= bound * (1 + 1e-6)
    assert norms.max() > 0.99 * bound
    assert norms[0] == 0.0


def algorithm_3(weights, batch, noise, user):
    """The loss of lines 14 to 21, written down for one client."""
    vectors, padding = weights["input.vectors"].astype(float), weights["news.padding"]
    texts = np.concatenate([vectors, padding[None]])
    news = texts @ weights["news.head"] + weights["news.bias"]
    read = batch.histories[user][batch.histories[user] >= 0]
    hidden = np.tanh(news[read] @ weights["user.attention"] + weights["user.offset"])
    shares = np.exp(hidden @ weights["user.query"])
    u = shares / shares.sum() @ news[read]
    basis = weights["basis"]
    alpha = np.exp(basis @ u / np.sqrt(len(u)))
    alpha /= alpha.sum()
    alpha /= max(1.0, np.linalg.norm(alpha))  # line 8: never longer than 1
    noisy = np.maximum(alpha + noise[user], 0.0)
    shown = batch.candidates[user, 0][batch.candidates[user, 0] >= 0]
    scores = news[shown] @ (noisy / noisy.sum() @ basis)
    return np.log(np.exp(scores).sum()) - scores[0]


def test_the_papers_gradient_is_that_of_algorithm_3():
    """Along a random direction of all weights, by central differences."""
    privacy = PublishedAttentionNoise(epsilon=5.0, padding=0.3)
    method = PrivateRec(**PAPER, privacy=privacy)
    made = simulation(method)
    state, draws = made.start(), Key.from_seed(9).generator()
    weights = {
        name: value
        if name.startswith("input.")
        else value + draws.normal(size=value.shape)
        for name, value in state.server.weights.items()
    }
    server = replace(state.server, weights=weights)
    keys = Key.from_seed(1).each(np.arange(len(made.shards)))
    _, updates = method.local_update(
        method.broadcast(server), state.clients, made.shards, keys
    )
    batch = method._model.draws.batch(made.shards.known_impressions, keys)
    assert (batch.histories == len(made.catalog)).any()  # padding news are among them
    noise = privacy.attention(3).drawn(keys)
    step = {
        name: draws.normal(size=weights[name].shape) for name in updates.tree.leaves
    }
    users = [
        u for u in np.flatnonzero(batch.labels[:, 0] == 0) if batch.histories[u, 0] >= 0
    ]
    for user in users[:4]:
        sides = [
            algorithm_3(
                {**weights, **{n: weights[n] + h * d for n, d in step.items()}},
                batch,
                noise,
                user,
            )
            for h in (1e-6, -1e-6)
        ]
        found = sum(
            (updates.tree.leaves[n].dense().values[user] * d).sum()
            for n, d in step.items()
        )
        assert found == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-4, abs=1e-6)


def test_over_direct_the_server_is_promised_nothing():
    """It has every gradient; the leak `news_gradient` reads histories from them."""
    plan = Plan(5000, 11, channel="direct", delta=1e-6, target_epsilon=5.0)
    method = PrivateRec(privacy=CentralGaussian()).calibrated(plan)
    told = account(plan, method.releases(plan))
    assert told.worst(view=View.SERVER) is None
    reasons = {line.reason for line in told.totals if line.view is View.SERVER}
    assert all(str(Code("bare_at_server")) in reason for reason in reasons)
    assert told.worst(view=View.RELEASE) == pytest.approx(5.0, abs=5e-3)


def test_the_rows_of_words_that_an_update_has_are_those_of_what_was_read():
    """Whatever the noise on the attention: what leaves names the words of the news."""
    pytest.importorskip("torch")
    privacy = PublishedAttentionNoise(epsilon=0.1, padding=0.0)
    method = PrivateRec(mode="paper", model="nrms", word_width=8, privacy=privacy)
    made = simulation(method)
    state, keys = made.start(), Key.from_seed(1).each(np.arange(len(made.shards)))
    broadcast = method.broadcast(state.server)
    _, updates = method.local_update(broadcast, state.clients, made.shards, keys)
    batch = method._model.draws.batch(made.shards.known_impressions, keys)
    rows = np.abs(updates.tree.leaves["news.words"].dense().values).sum(axis=2) > 0
    numbers = broadcast.weights["input.title"]
    for user in np.flatnonzero(batch.labels[:, 0] == 0)[:4]:
        news = {*batch.histories[user], *batch.candidates[user].ravel()} - {-1}
        known = {int(w) - 1 for n in news for w in numbers[n] if w}  # 0: no word
        assert {*np.flatnonzero(rows[user]).tolist()} == known


@pytest.mark.parametrize("own", [SMALL, {**SMALL, "model": "plm-nr"}, PAPER])
def test_nobody_has_impressions(own):
    """Clients without impressions send zeros; the model stays at its start."""
    world = mixed_world()
    nothing = Impressions.none(len(world.shards), len(world.catalog))
    shards = replace(world.shards, impressions=nothing)
    world = replace(world, catalog=described(len(world.catalog)), shards=shards)
    made = simulation(PrivateRec(**own), world=world)
    *_, (state, _) = made.run(made.start())
    for name, value in made.start().server.weights.items():
        np.testing.assert_array_equal(state.server.weights[name], value)


class TestFilms(MethodContract):
    """Histories without impressions: clients make slates of what they hold."""

    def method(self) -> Method:
        return PrivateRec(**SMALL, privacy=QUIET)

    def world(self) -> FederatedData:
        return replace(mixed_world(), catalog=described(20))

    def answer_world(self) -> FederatedData:
        return replace(checkerboard(), catalog=described(12))

    def check_learnt(self, score: ScoreFunction, world: FederatedData) -> None:
        """Items of a user's kind stand above the others, nearly always."""
        own = np.arange(12) % 2 == (np.arange(24) % 2)[:, None]
        scores = score(world.shards)
        assert scores[own].min() > np.median(scores[~own])
        assert scores[own].mean() > scores[~own].mean() + 1.0


def test_clicks_have_length_one_before_anything_clips_them():
    """A clip would hide that they are longer, and the sum would count them wrongly."""
    method = PrivateRec(**SMALL, learns="clicks")
    made = simulation(method)
    state, keys = made.start(), Key.from_seed(1).each(np.arange(len(made.shards)))
    broadcast = method.broadcast(state.server)
    _, updates = method.local_update(broadcast, state.clients, made.shards, keys)
    norms = updates.tree.norms()
    assert norms.max() == pytest.approx(1.0, abs=1e-6)
    counted = excess_clicks_by_hand(made.shards.known_impressions)
    lengths = np.linalg.norm(counted, axis=1)
    assert lengths.max() > 1.2  # so that it matters
    expected = counted / np.maximum(lengths, 1.0)[:, None]
    np.testing.assert_allclose(updates.tree["clicks"], expected, atol=1e-6)


def excess_clicks_by_hand(impressions):
    """Clicked less expected, impression by impression."""
    slates = impressions.slates
    found = np.zeros((slates.n_users, slates.n_items))
    for place, user in enumerate(slates.users):
        shown = slates.shown[place]
        clicked = impressions.clicked[slates.shown.places([place])]
        found[user, shown] += clicked - clicked.mean()
    return found


def test_effects_vanish_under_much_noise():
    """Thirteen users under a noise of 50 say nothing that could be told from noise."""
    privacy = CentralGaussian(50.0)
    made = simulation(PrivateRec(learns="clicks", privacy=privacy), rounds=1)
    *_, (state, _) = made.run(made.start())
    assert np.abs(state.server.weights["effects"]).max() < 0.5
    bare = simulation(PrivateRec(learns="clicks"), rounds=1)
    *_, (state, _) = bare.run(bare.start())
    assert np.abs(state.server.weights["effects"]).max() > 1.0


def test_the_account_is_that_of_its_gaussians():
    """Both phases together are one Gaussian mechanism; the server's view needs more."""
    plan = Plan(5000, 11, channel="secure_sum", delta=1e-6, target_epsilon=5.0)
    method = PrivateRec(privacy=CentralGaussian()).calibrated(plan)
    z = method.privacy.noise_multiplier
    mu = np.sqrt(z["clicks"] ** -2 + 10 * z["gradients"] ** -2)
    assert get_epsilon_gaussian(1 / mu, 1e-6) == pytest.approx(5.0, abs=5e-3)
    assert z["clicks"] ** -2 == pytest.approx(0.2 * mu**2, rel=1e-3)
    told = account(plan, method.releases(plan))
    assert told.worst(view=View.RELEASE) == pytest.approx(5.0, abs=5e-3)


def test_without_protection_nothing_is_promised():
    plan = Plan(100, 3)
    for release in PrivateRec().releases(plan):
        cell = release.guarantee((Unit.USER, View.SERVER))
        assert cell.standing is Standing.NONE


@pytest.mark.slow
@pytest.mark.parametrize("learns", ["clicks and gradients", "gradients"])
def test_its_claims_survive_the_audit(learns):
    plan = Plan(2_000, 4, channel="secure_sum", delta=1e-6, target_epsilon=4.0)
    # An audit needs 4,500 numbers; a head of 68 axes has 4,624.
    own = {"learns": learns, "dimensions": 68, "privacy": CentralGaussian()}
    found = audit(PrivateRec(**own).calibrated(plan), plan, key=Key.from_seed(0))
    assert found.checks
    assert not found.failed


@pytest.mark.parametrize(
    ("own", "complaint"),
    [
        ({"mode": "paper"}, "model='projection' is not in the paper"),
        ({"mode": "paper", "model": "plm-nr", "privacy": QUIET}, "'published'"),
        ({"privacy": PublishedAttentionNoise()}, "go with mode='paper'"),
        ({"mode": "local"}, "mode"),
        ({"model": "plm-nr", "learns": "clicks"}, "learn from gradients alone"),
        ({"model": "naml", "starts_at": "content"}, "could be the identity"),
        ({"interests": 1}, "interests"),
        ({"interests": 3}, "a basis is part of an encoder"),
        (
            {
                "mode": "paper",
                "model": "plm-nr",
                "interests": 3,
                "privacy": PublishedGradientNoise(),
            },
            "DP-FedRec has no basis",
        ),
        ({"basis_length": 0.0}, "basis_length"),
        ({"basis_starts_at": "users"}, "basis_starts_at"),
        ({"serving": "tanh"}, "serving"),
        ({"negatives": 0}, "negatives"),
        ({"learns": "nothing"}, "learns"),
        ({"model": "mlp"}, "model"),
        ({"content": ()}, "content is empty"),
        ({"dimensions": 0}, "dimensions"),
        ({"most_impressions": 0}, "most_impressions"),
        ({"click_rounds": 0}, "click_rounds"),
        ({"rate": -0.1}, "rate"),
        ({"click_share": 1.0}, "click_share"),
        ({"privacy": PublishedVotes()}, "privacy"),
    ],
)
def test_refuses(own, complaint):
    with pytest.raises(BadValue, match=complaint):
        PrivateRec(**own)


def test_content_that_is_not_there_is_refused_with_a_remedy():
    world, plan = mixed_world(), Plan(13, 2)
    with pytest.raises(BadValue, match=r"data.text_vectors = \['title'\]"):
        PrivateRec().start(plan, world.catalog, Key.from_seed(0))
    catalog = replace(
        world.catalog, features={"year": Numeric(np.zeros(20, np.float32))}
    )
    with pytest.raises(BadValue, match="'year' is a number"):
        PrivateRec(content=("year",)).start(plan, catalog, Key.from_seed(0))


def test_words_will_do_as_public_vectors():
    """Titles and abstracts as one bag: whoever shares a rare word is alike."""
    texts = ["red fox", "red hen", "blue sea", "blue sky", "green oak", "green elm"]
    ids = Strings.of([*"abcdef"])
    abstract = Text(Strings.of(["fur", "egg", "salt", "air", "bark", "leaf"]))
    catalog = Catalog(ids, Strings.of(texts), {"abstract": abstract})
    # Three colours differ in two axes: with any other number, some of equal axes are
    # kept, and which ones depends on the machine.
    method = PrivateRec(content=("title", "abstract"), dimensions=2)
    vectors = method.start(Plan(4, 2), catalog, Key.from_seed(0)).weights["vectors"]
    alike = vectors @ vectors.T
    assert alike[0, 1] > 0.5 > alike[0, 2]
    np.testing.assert_allclose(np.diag(alike), 1.0, atol=1e-6)


def test_steps_are_shorter_where_noise_outweighs_the_gradients():
    """Adam goes as far under noise as without it, so the rate must know the noise."""
    moves = []
    for z in (1e-3, 10.0, 1000.0):
        privacy = CentralGaussian(z, clip=1.0)
        own = {"learns": "gradients", "dimensions": None, "rate": 0.1, "prior": 1e3}
        made = simulation(PrivateRec(**own, privacy=privacy), rounds=4)
        *_, (state, _) = made.run(made.start())
        moved = state.server.weights["head"] - made.start().server.weights["head"]
        moves.append(np.abs(moved).max())
    assert moves[0] > 0.1
    assert moves[1] < 0.02  # 13 clients, 4 rounds: 26 over 40 and over 100
    assert moves[2] < 0.0002


def test_a_prior_holds_a_small_population_at_content():
    """Thirteen users against a prior that weighs as much as 4, and as 400 of them."""
    moves = []
    for prior in (1e3, 0.5, 0.05):
        own = {"learns": "gradients", "dimensions": None, "rate": 0.05, "prior": prior}
        made = simulation(PrivateRec(**own), rounds=60)
        *_, (state, _) = made.run(made.start())
        moved = state.server.weights["head"] - made.start().server.weights["head"]
        moves.append(np.linalg.norm(moved))
    assert moves[0] > 2 * moves[1] > 10 * moves[2] > 0


@pytest.fixture(scope="module")
def served() -> Recommender:
    """A model whose head and effects have moved, as a client has it."""
    made = simulation(PrivateRec(**SMALL), rounds=6)
    *_, (state, _) = made.run(made.start())
    broadcast = made.method.broadcast(state.server)
    assert np.abs(broadcast.weights["effects"]).max() > 0.5
    return Recommender(made.method, broadcast, made.catalog)


def test_an_exported_file_ranks_as_recommend_does(served):
    formula = served.method.formula(served.broadcast)
    ids = [*served.catalog.ids]
    content = to_onnx(formula, n_items=len(ids), precision="float64")
    for history in ([], ["N3"], ["N0", "N5", "N7", "N12"]):
        x = np.array([[name in history for name in ids]], float)
        (scores,) = run(content, x)
        scores[x[0] > 0] = -np.inf
        best = np.argsort(-scores, kind="stable")[:8]
        assert [ids[i] for i in best] == [r.id for r in served.recommend(history, n=8)]


def test_it_says_which_news_speak_for_an_item(served):
    """Even items are like even ones, so what was read of them comes first."""
    found = served.why(["N2", "N5", "N8"], "N4")
    assert {reason.id for reason in found[:2]} == {"N2", "N8"}
    assert sum(reason.share for reason in found) == pytest.approx(1.0)


def test_an_encoder_is_neither_exported_nor_explained():
    method = PrivateRec(model="plm-nr")
    broadcast = Broadcast(0, bytes(16), {})
    with pytest.raises(Refused, match="model='plm-nr'"):
        method.formula(broadcast)
    with pytest.raises(Refused, match="model='plm-nr'"):
        method.reasons(broadcast, Shards.of_history([0], n_items=2), 1)
