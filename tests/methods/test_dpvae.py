"""DP-VAE: the contract in its forms, its gradient by autograd, sizes and account."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    get_epsilon_gaussian,
)
from onnx_device import run

from tacit.accounting.epsilon import epsilon
from tacit.aggregation.server_optimizers import Adam
from tacit.audits.audit_method import audit
from tacit.data.catalog import Profiles
from tacit.data.features import Vectors
from tacit.data.federated_data import FederatedData
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.method import (
    Candidates,
    CentralGaussian,
    LocalPrivUnit,
    Method,
    Unmetered,
    participate,
)
from tacit.methods.dpvae import DpVae
from tacit.models.mult_vae import Network
from tacit.plans import Plan
from tacit.privacy import PublishedPersonalNoise
from tacit.release import Standing, Unit, View
from tacit.runtime.simulate import Simulation
from tacit.sampling import Poisson, PoissonByGroup
from tacit.serving.onnx_file import to_onnx
from tacit.statement import account
from tacit.testing.contract import (
    MethodContract,
    ScoreFunction,
    assert_checkerboard_learnt,
    checkerboard,
    mixed_world,
)

SMALL = {"head": 15, "latent": 3, "dtype": "float64", "rate": 0.1}
KINDS = ("gender", "age", "job", "zip")
VAE = {**SMALL, "model": "vae", "hidden": 6}
PAPER = {"latent": 3, "hidden": 6, "dtype": "float64", "beta": 0.01, "rate": 2.0}
QUIET = CentralGaussian({"counts": 0.01, "gradients": 0.001}, clip=5.0)


class TestCentral(MethodContract):
    """The contract under noise; the answer is learnt with little of it."""

    def method(self) -> Method:
        return DpVae(**SMALL, privacy=QUIET)

    def answer_plan(self, world: FederatedData) -> Plan:
        return Plan(len(world.shards), rounds=30)

    def check_learnt(self, score: ScoreFunction, world: FederatedData) -> None:
        assert_checkerboard_learnt(score, world.shards)


class TestBare(TestCentral):
    """With dropout, and a clip that nobody needs."""

    def method(self) -> Method:
        return DpVae(**SMALL, dropout=0.3)


class TestVae(TestCentral):
    """The paper's network, sampled, with its divergence."""

    def method(self) -> Method:
        return DpVae(**VAE, privacy=QUIET)


def described(world: FederatedData) -> FederatedData:
    """The same users, who say four things about themselves; the means are public."""
    n = len(world.shards)
    draws = Key.from_seed(8).generator()
    features = {}
    for kind in KINDS:
        own = draws.normal(size=(n, 5)).astype(np.float32)
        own /= np.linalg.norm(own, axis=1, keepdims=True)
        features[f"{kind}_vector"] = Vectors(own)
        features[f"{kind}_mean"] = Vectors(np.full((n, 5), 0.2, np.float32))
    profiles = Profiles(world.profiles.ids, features)
    return replace(world, profiles=profiles)


class WithPriors(TestCentral):
    def world(self) -> FederatedData:
        return described(mixed_world())

    def answer_world(self) -> FederatedData:
        return described(checkerboard())


class TestPriors(WithPriors):
    """Sound: the prior is the client's, and nothing of it leaves but the gradient."""

    def method(self) -> Method:
        return DpVae(**VAE, priors=KINDS, beta=0.02, privacy=QUIET)


class TestPaper(WithPriors):
    """Algorithm 3 without its noise: it learns."""

    def method(self) -> Method:
        return DpVae(mode="paper", **PAPER, priors=KINDS)

    def answer_plan(self, world: FederatedData) -> Plan:
        return Plan(len(world.shards), rounds=200)


class TestPublished(WithPriors):
    """Algorithm 3 as printed; nobody learns anything under its noise."""

    rounds = 2

    def method(self) -> Method:
        privacy = PublishedPersonalNoise()
        own = {**PAPER, "rate": 1e-5}  # else a latent's variance overflows
        return DpVae(mode="paper", **own, priors=KINDS, privacy=privacy)

    def answer_plan(self, world: FederatedData) -> Plan:
        return Plan(len(world.shards), rounds=3)

    def check_learnt(self, score: ScoreFunction, world: FederatedData) -> None:
        assert np.isfinite(score(world.shards)).all()


def simulation(method, *, world=None, rounds=3):
    world = world or mixed_world()
    data = world.catalog, world.profiles, world.shards
    return Simulation(method, Plan(len(world.shards), rounds), *data, Key.from_seed(3))


def trained_to(made, rounds):
    state = made.start()
    for _ in range(rounds):
        state, _ = made.step(state)
    return state


def said(made, state):
    """What everyone would report in the next round."""
    broadcast = made.method.broadcast(state.server)
    users = state.clients, made.shards, made.population.keys
    return participate(made.method, broadcast, *users, ledger=Unmetered())[1].tree


# a round


def test_a_gradient_is_that_of_the_mean_log_likelihood():
    """Line 3 of the docstring, written out for torch."""
    made = simulation(DpVae(**SMALL))
    state = trained_to(made, 1)
    reports, known = said(made, state).to_dense(), state.server.weights
    for user in range(len(made.shards)):
        held = [i for i in known["head"] if i in made.shards.take([user]).items]
        layers = {n: torch.tensor(known[n], requires_grad=True) for n in reports.leaves}
        matrix = layers["encoder/0"]
        x = torch.tensor(np.isin(known["head"], held).astype(float))
        unit = x / max(1.0, float(x.sum())) ** 0.5
        latent = unit @ matrix[:-1] + matrix[-1]
        scores = latent @ matrix[:-1].T + layers["decoder/0"][-1]
        loss = -(x * torch.log_softmax(scores, 0)).sum() / max(1.0, float(x.sum()))
        loss.backward()
        for name, layer in layers.items():
            expected = layer.grad.numpy()
            np.testing.assert_allclose(reports[name][user], expected, atol=1e-12)


def test_a_round_is_adam_on_the_sum_over_the_planned():
    made = simulation(DpVae(**SMALL))
    state = trained_to(made, 1)
    gradient = {n: g / 13 for n, g in said(made, state).sum().items()}
    weights = {name: state.server.weights[name] for name in gradient}
    expected, _ = Adam(0.1).step(weights, Adam().start(weights), gradient)
    after, _ = made.step(state)
    for name, value in expected.items():
        np.testing.assert_allclose(after.server.weights[name], value, atol=1e-12)


def test_the_head_has_the_most_counted_items_and_begins_at_their_popularity():
    made = simulation(DpVae(**SMALL | {"head": 4}))
    state = trained_to(made, 1)
    counts, head = (state.server.weights[name] for name in ("counts", "head"))
    assert set(head) == set(np.argsort(-counts, kind="stable")[:4])
    logs = np.log(np.maximum(counts[head], 1.0))
    bias = state.server.weights["decoder/0"][-1]
    np.testing.assert_allclose(bias, logs - logs.mean(), atol=1e-12)


def test_who_has_nothing_of_the_head_says_nothing():
    made = simulation(DpVae(**SMALL | {"head": 2}))
    state = trained_to(made, 1)
    head = state.server.weights["head"]
    owners = made.shards.owners[np.isin(made.shards.items, head)]
    norms = said(made, state).norms()
    np.testing.assert_array_equal(norms > 0, np.isin(np.arange(13), owners))


def test_reports_are_factors():
    made = simulation(DpVae(**SMALL))
    leaves = said(made, trained_to(made, 1)).leaves
    assert {n: leaf.shape for n, leaf in leaves.items()} == {
        "encoder/0": (16, 3),
        "decoder/0": (1, 15),
    }
    assert leaves["encoder/0"].left.shape == (13, 2, 16)  # two outer products


@pytest.mark.parametrize("own", [SMALL, {**PAPER, "mode": "paper"}])
def test_whoever_has_a_broadcast_can_rank_with_it(own):
    """Also before the last round, where a simulation looks at validation users."""
    made = simulation(DpVae(**own))
    state = made.start()
    for _ in range(3):
        told = made.method.broadcast(state.server)
        users = state.clients, made.shards, made.population.keys
        taste = made.method.represent(told, *users)
        scores = made.method.score(told, taste, Candidates.all_of(made.catalog))
        assert np.isfinite(scores).all()
        state, _ = made.step(state)


@pytest.mark.parametrize(
    "own", [SMALL, {**SMALL, "is_weighted": True}, {**PAPER, "mode": "paper"}]
)
def test_what_a_phone_would_compute(own):
    made = simulation(DpVae(**own), world=checkerboard())
    state = trained_to(made, 3)
    method, told = made.method, made.method.broadcast(state.server)
    x = np.zeros((24, 12), np.float32)
    x[made.shards.owners, made.shards.items] = made.shards.values
    taste = method.represent(told, state.clients, made.shards, made.population.keys)
    expected = method.score(told, taste, Candidates.all_of(made.catalog))
    found = run(to_onnx(method.formula(told), n_items=12), x)
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("own", "reads"),
    [
        (SMALL, False),
        ({**SMALL, "is_weighted": True}, True),
        ({**PAPER, "mode": "paper"}, True),
    ],
)
def test_ratings_are_read_as_published_and_where_asked_for(own, reads):
    """What is learnt and what is ranked; without noise, so that nothing else moves."""
    world = checkerboard()
    stars = np.where(world.shards.items % 3 == 0, 5.0, 1.0).astype(np.float32)
    rated = replace(world, shards=replace(world.shards, values=stars))
    plain, other = (simulation(DpVae(**own), world=one) for one in (world, rated))
    states = [trained_to(made, 3) for made in (plain, other)]
    weights = [state.server.weights["decoder/0"] for state in states]
    assert np.array_equal(*weights) != reads


# Algorithm 3


@pytest.mark.parametrize(
    ("items", "hidden", "latent", "printed"),
    [
        (1682, 80, 20, 275_802),  # ML-100K
        (26_744, 100, 30, 5_384_804),  # ML-20M before it is pre-processed
        (
            17_770,
            100,
            50,
            3_587_070,
        ),  # Netflix, whole: in no table
    ],
)
def test_the_papers_parameter_counts_imply_its_widths(items, hidden, latent, printed):
    """Table 3 against Table 2: none of the counts is of the pre-processed items."""
    shapes = Network(items, (hidden,), latent).shapes.values()
    assert sum(math.prod(shape) for shape in shapes) == printed


def paper(**own):
    made = simulation(
        DpVae(mode="paper", **PAPER, **own), world=described(mixed_world())
    )
    return made, made.start()


def test_without_noise_a_round_is_a_plain_step_along_the_mean_of_examples():
    made, state = paper(examples=4)
    reports = said(made, state)
    assert reports.leaves["encoder/0"].left.shape == (13, 4, 21)
    gradient = reports.sum()
    after, _ = made.step(state)
    for name, value in gradient.items():
        expected = state.server.weights[name] - 2.0 * value / 13
        np.testing.assert_allclose(after.server.weights[name], expected, atol=1e-12)


def test_with_a_constant_clip_the_mean_of_clipped_examples_is_sent():
    """A clip that nobody reaches, and an epsilon that makes the noise vanish."""
    loose = PublishedPersonalNoise(most_epsilon=1e12, clip=1e3)
    made, state = paper(privacy=loose)
    bare, bare_state = paper()
    expected = said(bare, bare_state).to_dense()
    found = said(made, state)
    for name, leaf in found.leaves.items():
        # Somebody may choose a small share of the largest epsilon: 1e3 · 1e-12 · 1e3.
        np.testing.assert_allclose(leaf.values, expected[name], atol=1e-4)


def test_the_noise_of_a_batch_is_797_times_the_longest_mean_gradient():
    """docs/errata/dpvae.md: 4.7985 sqrt(275,802) / sqrt(10), for epsilon 1."""
    sigma = PublishedPersonalNoise().sigma(np.ones(1))[0]
    assert round(sigma * math.sqrt(275_802) / math.sqrt(10)) == 797
    # Epsilons are uniform in (0, 1], and 1/ε² has no mean: the median of σ is twice it.
    assert PublishedPersonalNoise().sigma(np.array([0.5]))[0] == 2 * sigma


def test_everyone_keeps_an_epsilon_and_a_noisy_prior():
    made, state = paper(priors=("gender",), privacy=PublishedPersonalNoise())
    kept = state.clients.state
    assert ((kept["epsilon"] > 0) & (kept["epsilon"] <= 1)).all()
    assert len({*kept["epsilon"]}) == 13
    bare, clean = paper(priors=("gender",))
    assert [*clean.clients.state.leaves] == ["prior mean", "prior variance"]
    moved = kept["prior mean"] - clean.clients.state["prior mean"]
    assert np.abs(moved).mean() > 3  # deviations of 4.8 and more
    assert kept["prior variance"].min() == 1e-4  # some came out negative
    after, _ = made.step(state)
    np.testing.assert_array_equal(after.clients.state["epsilon"], kept["epsilon"])
    assert bare.method.priors == ("gender",)


def test_the_paper_promises_and_we_do_not():
    method = DpVae(mode="paper", privacy=PublishedPersonalNoise())
    plan = Plan(943, rounds=30, delta=1e-6)
    [release] = method.releases(plan)
    cell = release.cells[Unit.USER, View.RELEASE]
    assert (cell.standing, cell.published_epsilon) == (Standing.NONE, 1.0)
    assert account(plan, [release]).worst(view=View.RELEASE) is None


def test_priors_change_the_gradient_and_nothing_else_leaves():
    world = described(mixed_world())
    with_, without = (
        simulation(DpVae(**VAE, priors=p), world=world) for p in (("zip",), ())
    )
    found, bare = (said(made, trained_to(made, 1)) for made in (with_, without))
    assert [*found.leaves] == [*bare.leaves]
    moved = (found.to_dense().norms() - bare.to_dense().norms()) != 0
    np.testing.assert_array_equal(moved, found.norms() > 0)


# account


def plan_at(epsilon, users=5034):
    return Plan(
        users,
        rounds=151,
        sampler=Poisson(0.3),
        channel="secure_sum",
        delta=1e-6,
        target_epsilon=epsilon,
    )


@pytest.mark.parametrize(
    ("epsilon", "head", "latent"), [(1.0, 401, 32), (8.0, 928, 74)]
)
def test_sizes_follow_from_users_over_noise(epsilon, head, latent):
    made = DpVae(privacy=CentralGaussian()).calibrated(plan_at(epsilon))
    assert (made.head, made.latent) == (head, latent)
    spent = account(plan_at(epsilon), made.releases(plan_at(epsilon)))
    assert spent.worst(view=View.RELEASE) == pytest.approx(epsilon, rel=0.01)
    assert spent.worst(view=View.RELEASE) <= epsilon


def test_sizes_that_are_set_stay_and_without_noise_they_are_the_largest():
    set_, free = DpVae(head=7), DpVae()
    made = set_.calibrated(plan_at(1.0))
    assert (made.head, made.latent) == (7, 128)
    made = free.calibrated(plan_at(1.0))
    assert (made.head, made.latent) == (3000, 128)


def test_groups_have_budgets_of_their_own():
    """Whoever is strict sends less, and the network has the size that this allows."""
    targets = {"strict": 1.0, "open": 8.0}
    sizes = {"strict": 2517, "open": 2517}
    plan = replace(plan_at(None), groups=sizes, target_epsilon=targets)
    made = DpVae(privacy=CentralGaussian()).calibrated(plan)
    for release in made.releases(plan):
        assert release.group in targets
    for group, target in targets.items():
        own = [r for r in made.releases(plan) if r.group == group]
        found = account(plan, own).worst(view=View.RELEASE)
        assert 0.97 * target < found <= target
    alone = [
        DpVae(privacy=CentralGaussian()).calibrated(plan_at(t)) for t in (1.0, 8.0)
    ]
    assert alone[0].head < made.head < alone[1].head


SCALE = {"strict": 0.2, "open": 1.0}
NOISE = {"counts": 20.0, "gradients": 15.0}
CLIPS = {"fixed": {}, "moving": {"clip_quantile": 0.5, "bit_noise": 40.0}}


def of_halves(**fields):
    sizes = dict.fromkeys(SCALE, 1000)
    more = {"channel": "secure_sum", "delta": 1e-6, "groups": sizes, **fields}
    return Plan(2000, rounds=4, **more)


def spent_by_group(method, plan):
    return {
        line.group: line.epsilon
        for line in account(plan, method.releases(plan)).totals
        if (line.unit, line.view) == (Unit.USER, View.RELEASE)
    }


@pytest.mark.parametrize("own", CLIPS.values(), ids=CLIPS)
def test_every_group_has_the_closed_form_of_its_own_mu(own):
    """mu_g² = s_g² (1 / 20² + 3 / 15²), bits of a moving clip included."""
    plan, privacy = of_halves(), CentralGaussian(NOISE, scale=SCALE, **own)
    found = spent_by_group(DpVae(**SMALL, privacy=privacy), plan)
    for group, scale in SCALE.items():
        mu = scale * math.sqrt(1 / 20**2 + 3 / 15**2)
        exact = get_epsilon_gaussian(1 / mu, 1e-6)
        assert found[group] == pytest.approx(exact, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("own", CLIPS.values(), ids=CLIPS)
def test_every_group_has_the_account_of_its_own_rate(own):
    """By rate all have the same noise, and each group its own coins."""
    rates = {"strict": 0.05, "open": 0.5}
    plan = of_halves(sampler=PoissonByGroup(rates))
    z = {"counts": 1.5, "gradients": 1.2}
    found = spent_by_group(DpVae(**SMALL, privacy=CentralGaussian(z, **own)), plan)
    for group, rate in rates.items():
        events = [
            SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(noise)), n)
            for noise, n in ((1.5, 1), (1.2, 3))
        ]
        exact = epsilon(ComposedDpEvent(events), delta=1e-6).value
        assert found[group] == pytest.approx(exact, rel=1e-6)


def test_a_moving_clip_follows_the_norms_of_all_groups():
    """By scale a strict user's bit weighs a fifth, and so does its report."""
    world = mixed_world()
    n = len(world.shards)
    codes = np.arange(n) % 2
    sizes = dict(zip(SCALE, np.bincount(codes).tolist(), strict=True))
    plan = Plan(n, 40, channel="secure_sum", delta=1e-6, groups=sizes)
    loud = {"counts": 1e-4, "gradients": 1e-4}
    privacy = CentralGaussian(
        loud, scale=SCALE, clip=5.0, clip_quantile=0.5, clip_rate=0.5, bit_noise=1e-3
    )
    data = world.catalog, world.profiles, world.shards
    # The network stays as it is, so that norms do.
    method = DpVae(**{**SMALL, "rate": 1e-12}, privacy=privacy)
    made = Simulation(method, plan, *data, Key.from_seed(3), groups=codes)
    *_, (state, _) = made.run(made.start())
    clip = float(state.server.memory["clip"])
    bare = simulation(DpVae(**{**SMALL, "rate": 1e-12}), rounds=40)
    norms = said(bare, trained_to(bare, 1)).norms()
    weights = np.array([*SCALE.values()])[codes]
    within = [weights[norms <= c].sum() / weights.sum() for c in (clip / 2, clip * 2)]
    assert within[0] < 0.5 <= within[1]


def test_few_users_get_a_small_network():
    made = DpVae(privacy=CentralGaussian()).calibrated(plan_at(1.0, users=100))
    assert (made.head, made.latent) == (57, 5)


@pytest.mark.slow
def test_its_claims_survive_the_audit():
    """False alarm below 5e-3 if the seed were drawn anew."""
    plan = Plan(2000, rounds=3, channel="secure_sum", delta=1e-6)
    noise = CentralGaussian({"counts": 2.0, "gradients": 1.5}, clip=0.3)
    for own in ({}, {"model": "vae", "hidden": 3}):
        method = DpVae(head=700, latent=3, privacy=noise, **own)
        found = audit(method, plan, key=Key.from_seed(1))
        assert [check.name for check in found.checks if not check.ok] == []


@pytest.mark.slow
@pytest.mark.parametrize("own", CLIPS.values(), ids=CLIPS)
@pytest.mark.parametrize("group", SCALE)
def test_the_claims_for_every_group_survive_the_audit(own, group):
    """False alarm below 5e-3 if the seed were drawn anew."""
    own = {**own, "bit_noise": 100.0} if own else own
    noise = CentralGaussian(
        {"counts": 2.0, "gradients": 1.5}, clip=0.3, scale=SCALE, **own
    )
    # So small that 600 of 2,000 canaries have no coordinate, and are within the clip.
    method = DpVae(head=700, latent=3, privacy=noise)
    found = audit(method, of_halves(), key=Key.from_seed(1), group=group)
    assert [check.name for check in found.checks if not check.ok] == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": "gan"},
        {"head": 0},
        {"latent": 0},
        {"hidden": 0},
        {"dropout": 1.0},
        {"beta": -1.0},
        {"rate": 0.0},
        {"count_rounds": 0},
        {"mode": "letter"},
        {"examples": 0},
        {"priors": ("gender",)},
        {"head": 5, "mode": "paper"},
        {"privacy": PublishedPersonalNoise()},
        {"privacy": CentralGaussian(), "mode": "paper"},
        {"count_share": 1.0},
        {"dtype": "float16"},
        {"privacy": LocalPrivUnit(1.0)},
    ],
)
def test_what_cannot_be_is_refused(wrong):
    named = "mode='paper'" if wrong.keys() & {"privacy"} else next(iter(wrong))
    if "privacy" in wrong and isinstance(wrong["privacy"], LocalPrivUnit):
        named = "privacy"
    with pytest.raises(BadValue, match=named):
        DpVae(**wrong)


def test_sizes_are_needed_before_the_first_round():
    for own in ({"latent": 2}, {"head": 2}):
        with pytest.raises(BadValue, match="is not set"):
            simulation(DpVae(**own)).start()
    with pytest.raises(Refused, match="rounds=1"):
        simulation(DpVae(**SMALL), rounds=1).start()
