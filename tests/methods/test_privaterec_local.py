"""PrivateRec's local reports: the contract, what leaves, the account and the audit."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from methods.test_privaterec import described, shown_news

from tacit.audits.audit_method import audit
from tacit.audits.likelihood_ratios import check_epsilon
from tacit.data.features import Category
from tacit.data.federated_data import FederatedData
from tacit.data.impressions import Impressions
from tacit.data.ragged import Ragged
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.mechanisms.label_choice import LabelChoice, negatives, with_labels
from tacit.mechanisms.private_attention import LaplaceAttention
from tacit.mechanisms.randomized_response import respond
from tacit.method import (
    Candidates,
    LocalPrivUnit,
    Method,
    Unmetered,
    empty_reports,
    enrol,
    participate,
)
from tacit.methods.privaterec_local import PrivateRecLocal, StoredReports
from tacit.plans import Plan
from tacit.privacy import (
    UNPROTECTED,
    LocalClicks,
    LocalNoisyClicks,
    SensitiveClicks,
)
from tacit.release import Standing, Unit, View
from tacit.runtime.simulate import Simulation, check_plan
from tacit.sampling import Once
from tacit.statement import account
from tacit.testing.contract import (
    MethodContract,
    ScoreFunction,
    checkerboard,
    mixed_world,
)
from tacit.transport.channels import Each, Unlinked
from tacit.transport.codec import encode_reports
from tacit.transport.messages import Reports
from tacit.tree import Tree

SMALL = {
    "dimensions": None,
    "interests": 3,
    "most_impressions": 2,
    "most_shown": 8,
    "negatives": 5,
    "passes": 10,
}


class TestBare(MethodContract):
    """The contract without protection."""

    def method(self) -> Method:
        return PrivateRecLocal(**SMALL)

    def world(self) -> FederatedData:
        return shown_news(mixed_world())

    def answer_world(self) -> FederatedData:
        return shown_news(checkerboard())

    def check_learnt(self, score: ScoreFunction, world: FederatedData) -> None:
        """The clicked stand above the others of their slate, nearly always."""
        slates = world.shards.known_impressions.slates
        scores, clicked = score(world.shards), world.shards.known_impressions.clicked
        wins = []
        for place in range(len(slates)):
            own = scores[slates.users[place], slates.shown[place]]
            is_clicked = clicked[slates.shown.places([place])]
            wins += [own[is_clicked][:, None] > own[~is_clicked]]
        assert np.mean(np.concatenate([win.ravel() for win in wins])) > 0.9


class TestLocal(TestBare):
    """Under randomised response; the answer is learnt with little noise."""

    def method(self) -> Method:
        return PrivateRecLocal(**SMALL, privacy=LocalClicks(24.0))


class TestLabels(TestBare):
    """Labels alone: no interest leaves."""

    def method(self) -> Method:
        return PrivateRecLocal(**SMALL, attention_share=0.0, privacy=LocalClicks(24.0))


class TestLaplace(TestBare):
    """Under Laplace noise on the attention."""

    def method(self) -> Method:
        return PrivateRecLocal(**SMALL, privacy=LocalNoisyClicks(40.0))


class TestSensitive(TestBare):
    """Labels of slates with every other item under randomised response."""

    def method(self) -> Method:
        privacy = SensitiveClicks(24.0, ("odd",), "kind")
        return PrivateRecLocal(**SMALL, privacy=privacy)

    def world(self) -> FederatedData:
        return of_two_kinds(super().world())

    def answer_world(self) -> FederatedData:
        return of_two_kinds(super().answer_world())


def of_two_kinds(world: FederatedData) -> FederatedData:
    """The same world, in which every eighth item is of a sensitive kind."""
    column = Category.of(
        ["odd" if n % 8 == 1 else "even" for n in range(len(world.catalog))]
    )
    features = {**world.catalog.features, "kind": column}
    return replace(world, catalog=replace(world.catalog, features=features))


def simulation(method, *, world=None, rounds=1):
    world = world or shown_news(mixed_world())
    return Simulation(
        method,
        Plan(len(world.shards), rounds),
        world.catalog,
        world.profiles,
        world.shards,
        Key.from_seed(3),
    )


def played(made):
    *_, (state, _) = made.run(made.start())
    return state


def slates_of_all(n: int, *, clicked: list[int], history: list[int], n_items: int = 4):
    """`n` clients who were shown every item, with these clicks and this history."""
    return Impressions.of_columns(
        np.arange(n),
        Ragged.of_lengths(
            [n_items] * n, np.tile(np.arange(n_items, dtype=np.int32), n)
        ),
        clicked=np.tile(np.isin(np.arange(n_items), clicked), n),
        histories=Ragged.of_lengths([len(history)], np.array(history, np.int32)),
        history_of=np.zeros(n, np.int64),
        times=np.zeros(n, np.int64),
        n_users=n,
        n_items=n_items,
    )


def saying(method: Method, n_items: int = 4):
    """What clients say who were shown all items: an input is clicks and a history."""
    catalog = described(n_items)

    def say(held, keys):
        clicks, history = held
        n = len(keys)
        world = FederatedData.of_histories([[]] * n, n_items=n_items)
        shown = slates_of_all(n, clicked=clicks, history=history, n_items=n_items)
        shards = replace(world.shards, impressions=shown)
        server = method.start(Plan(1), catalog, Key.from_seed(0))
        clients = enrol(method, server.plan, world.profiles, keys, catalog=catalog)
        broadcast = method.broadcast(server)
        _, reports, _ = participate(
            method, broadcast, clients, shards, keys, ledger=Unmetered()
        )
        dense = reports.tree.to_dense()
        rows = [dense[name].reshape(n, -1) for name in dense.leaves]
        return np.concatenate(rows, axis=1).astype(np.float64)

    return say


INPUTS = {  # clicks, history
    "first": ([0], [0, 2]),
    "last": ([3], [3, 1]),
    "all": ([0, 1, 2, 3], [0, 1, 2, 3]),
    "nothing": ([], []),
}


# --- what leaves ----------------------------------------------------------------------


def test_the_upload_is_the_released_values_and_the_slate_and_nothing_else():
    """Other histories and clicks with the same released values give the same bytes.

    With an epsilon of 1e-6 responses forget what they were asked about, so that both
    inputs release the same values from the same keys.
    """
    n, method = (
        50,
        PrivateRecLocal(
            dimensions=None, interests=3, most_shown=8, privacy=LocalClicks(1e-6)
        ),
    )
    world = FederatedData.of_histories([[]] * n, n_items=4)
    made = simulation(method, world=replace(world, catalog=described(4)))
    state, keys = made.start(), Key.from_seed(1).each(np.arange(n))
    broadcast = method.broadcast(state.server)
    messages = []
    for clicks, history in (([0], [0, 2]), ([1, 3], [3, 1, 1]), ([], [])):
        shown = slates_of_all(n, clicked=clicks, history=history)
        shards = replace(world.shards, impressions=shown)
        _, reports, _ = participate(
            method, broadcast, state.clients, shards, keys, ledger=Unmetered()
        )
        messages.append(encode_reports(broadcast, reports))
    assert messages[0] == messages[1] == messages[2]


def test_negatives_follow_from_the_reported_label():
    """Given the label, the same keys draw the same negatives whatever was clicked."""
    method = PrivateRecLocal(
        dimensions=None, most_shown=8, negatives=2, privacy=LocalClicks(1.0)
    )
    say, keys = saying(method, n_items=8), Key.from_seed(2).each(np.arange(2_000))
    one, other = say(([0], [0]), keys), say(([7], [0]), keys)
    label = slice(1, 2)  # after the size
    same = (one[:, label] == other[:, label]).all(axis=1)
    assert 100 < same.sum() < 2_000
    np.testing.assert_array_equal(one[same, :4], other[same, :4])


def test_how_many_slates_are_reported_does_not_depend_on_clicks():
    """Slates are drawn among all that were shown, clicked or not; others are public."""
    world = shown_news(mixed_world())
    shown = world.shards.known_impressions
    bare = Impressions(shown.slates, np.zeros_like(shown.clicked))
    reports = []
    for impressions in (shown, bare):
        shards = replace(world.shards, impressions=impressions)
        made = simulation(
            PrivateRecLocal(**SMALL, privacy=LocalClicks(1.0)),
            world=replace(world, shards=shards),
        )
        reports.append(played(made).server.memory["sizes"])
    assert reports[0].any()
    np.testing.assert_array_equal(np.sort(reports[0], 0), np.sort(reports[1], 0))


def test_every_report_has_the_same_size_and_long_slates_are_left_out():
    world = shown_news(mixed_world())
    made = simulation(PrivateRecLocal(**{**SMALL, "most_shown": 6}), world=world)
    state = played(made)
    sizes = state.server.memory["sizes"]
    assert sizes.max() == 6  # slates of 7 items are public, and too long
    assert state.server.memory["candidates"].shape[2] == 6


def test_users_without_impressions_report_no_slate():
    world = mixed_world()
    world = replace(world, catalog=described(len(world.catalog)))
    made = simulation(PrivateRecLocal(**SMALL), world=world)
    state = played(made)
    assert not state.server.memory["sizes"].any()
    assert state.server.memory["interests"].any(axis=1).all()
    np.testing.assert_array_equal(
        state.server.weights["head"], made.start().server.weights["head"]
    )


# --- the server -----------------------------------------------------------------------


def test_untrained_it_is_content_similarity():
    world = shown_news(mixed_world())
    made = simulation(PrivateRecLocal(**SMALL), world=world)
    state = made.start()
    broadcast = made.method.broadcast(state.server)
    keys = Key.from_seed(0).each(np.arange(len(world.shards)))
    tastes = made.method.represent(broadcast, state.clients, world.shards, keys)
    found = made.method.score(broadcast, tastes, Candidates.all_of(world.catalog))
    vectors = broadcast.weights["vectors"].astype(np.float64)
    for user in (1, 4, 9):
        items = world.shards.histories[user]
        expected = 5.0 * vectors[items].mean(axis=0) @ vectors.T
        np.testing.assert_allclose(found[user], expected, atol=1e-9)


def test_more_passes_over_the_same_reports_are_free():
    """Reports are stored: the account of a longer fit is that of a shorter one."""
    short, long = (
        PrivateRecLocal(**{**SMALL, "passes": n}, privacy=LocalClicks(24.0))
        for n in (1, 50)
    )
    plan = Plan(13)
    assert short.releases(plan) == long.releases(plan)
    heads = [played(simulation(one)).server.weights["head"] for one in (short, long)]
    assert np.abs(heads[0] - heads[1]).max() > 0


def test_noise_leaves_content_similarity():
    made = simulation(PrivateRecLocal(**SMALL, privacy=LocalClicks(0.05)))
    weights = played(made).server.weights
    assert np.abs(weights["head"] - np.eye(4)).max() < 0.02
    assert np.abs(weights["effects"]).max() < 0.05


def test_a_report_that_no_client_can_send_counts_as_none():
    made = simulation(PrivateRecLocal(**SMALL))
    state = made.start()
    server, method = state.server, made.method
    memory = {name: value.copy() for name, value in server.memory.items()}
    memory["candidates"][0, 0, :2] = [3, 10_000]
    memory["sizes"][0, 0] = 5
    memory["candidates"][1, 0, :2] = [3, 4]
    memory["sizes"][1, 0] = 1  # fewer than were sent
    memory["candidates"][2, 0, :2] = [3, -4]
    memory["sizes"][2, 0] = 5
    assert not len(method._reported(memory, server.weights))


@pytest.mark.parametrize("privacy", [UNPROTECTED, LocalClicks(24.0)])
def test_a_report_names_one_interest_also_where_nothing_protects_it(privacy):
    world = shown_news(mixed_world())
    made = simulation(PrivateRecLocal(**SMALL, privacy=privacy), world=world)
    state = made.start()
    keys = Key.from_seed(1).each(np.arange(len(world.shards)))
    _, reports, _ = participate(
        *(made.method, made.method.broadcast(state.server), state.clients),
        *(world.shards, keys),
        ledger=Unmetered(),
    )
    arrays = {name: reports.tree[name].copy() for name in reports.tree.leaves}
    assert made.method.legal(reports.tree, made.plan, world.catalog, phase=0).all()
    arrays["interests"][0] *= 100.0
    arrays["interests"][1] = 1.0
    fine = made.method.legal(Tree.dense(**arrays), made.plan, world.catalog, phase=0)
    assert np.flatnonzero(~fine).tolist() == [0, 1]


# --- account and audit ----------------------------------------------------------------


@pytest.mark.parametrize("privacy", [LocalClicks(), LocalNoisyClicks()])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_the_target_is_met_for_a_user_in_every_view(privacy, share):
    plan = Plan(5_000, 3, Once(), target_epsilon=5.0)
    own = {"attention_share": share, "most_impressions": 3, "privacy": privacy}
    method = PrivateRecLocal(**own).calibrated(plan)
    told = account(plan, method.releases(plan))
    is_exact = privacy.is_releasable
    for line in told.totals:
        # Laplace noise is in floats, whose low bits nobody checks.
        assert line.standing is (Standing.PROVEN if is_exact else Standing.ASSUMED)
        assert 4.99 < line.epsilon <= 5.0
        assert line.adjacency == "replace_one"
        assert "public" in line.assumes


def test_without_protection_nothing_is_promised():
    for release in PrivateRecLocal().releases(Plan(100)):
        cell = release.guarantee((Unit.USER, View.SERVER))
        assert cell.standing is Standing.NONE


def test_a_sum_takes_reports_apart():
    with pytest.raises(Refused, match="needs Each"):
        check_plan(
            PrivateRecLocal(privacy=LocalClicks(1.0)), Plan(10, channel="secure_sum")
        )


def test_a_relay_may_mix_reports_for_they_are_one_message_each():
    check_plan(PrivateRecLocal(privacy=LocalClicks(1.0)), Plan(10, channel="shuffle"))
    tree = Tree.dense(
        sizes=np.array([[2], [3], [4]], np.int32),
        candidates=np.arange(6, dtype=np.int32).reshape(3, 1, 2),
    )
    memory = {
        "sizes": np.zeros((5, 1), np.int32),
        "candidates": np.zeros((5, 1, 2), np.int32),
    }
    direct = StoredReports().added(memory, Each([Reports(tree)]))
    mixed = StoredReports().added(memory, Unlinked(tree.select([2, 0, 1]), 3))
    assert direct.keys() == mixed.keys()
    rows = {
        name: sorted(value.reshape(len(value), -1).tolist())
        for name, value in direct.items()
    }
    for name, value in mixed.items():
        assert sorted(value.reshape(len(value), -1).tolist()) == rows[name]


FEW = {"dimensions": None, "interests": 2, "most_shown": 4, "negatives": 1}


def louder(method: Method, epsilon: float) -> float:
    """How far the loudest event is above the claim, in a small audit."""
    found = check_epsilon(
        saying(method), INPUTS, epsilon=epsilon, key=Key.from_seed(4), draws=20_000
    )
    return found.measured - epsilon


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_reports_survive_likelihood_ratios(share):
    """Interest, label and negative together, against other clicks and histories."""
    method = PrivateRecLocal(**FEW, attention_share=share, privacy=LocalClicks(1.5))
    assert louder(method, 1.5) <= 0


def test_noisy_attention_survives_likelihood_ratios():
    method = PrivateRecLocal(**FEW, privacy=LocalNoisyClicks(1.5))
    assert louder(method, 1.5) <= 0


@dataclass(frozen=True)
class AroundTheClick(LabelChoice):
    """Algorithm 3: candidates first, around the true click, and only then a label."""

    def privatize(self, clicks, keys, *, sizes):
        size = np.asarray(sizes, np.int64)
        true = np.asarray(clicks, np.int64)
        others = negatives(true, keys.at("negatives"), sizes=size, count=self.negatives)
        drawn = with_labels(true, others)
        place = respond(
            np.zeros(len(true), np.int64),
            keys.at("label"),
            sizes=drawn.lengths,
            epsilon=self.epsilon,
        )
        values = drawn.values.copy()
        first, said = drawn.offsets[:-1], drawn.offsets[:-1] + place
        values[first], values[said] = drawn.values[said], drawn.values[first]
        return Ragged(drawn.offsets, values)


@dataclass(frozen=True)
class CandidatesFirst(LocalClicks):
    def labels(self, *, share, slates, negatives):
        made = super().labels(share=share, slates=slates, negatives=negatives)
        return AroundTheClick(made.epsilon, made.negatives)


@dataclass(frozen=True)
class PaperSensitivity(LocalNoisyClicks):
    """Noise for a sensitivity of theta / 2 instead of 2."""

    def _laplace(self, share, interests):
        return LaplaceAttention(4 * self._share(share), interests, theta=1.0)


@dataclass(frozen=True)
class TheClickItself(PrivateRecLocal):
    """Randomises the label and sends the raw click where the size should be."""

    def privatize(self, broadcast, clients, updates, keys):
        reports = super().privatize(broadcast, clients, updates, keys)
        leaves = {**reports.tree.leaves}
        leaves["sizes"] = updates.tree.leaves["clicks"]
        return replace(reports, tree=replace(reports.tree, leaves=leaves))


@pytest.mark.parametrize(
    "method",
    [
        PrivateRecLocal(**FEW, privacy=CandidatesFirst(1.5)),
        PrivateRecLocal(**FEW, temperature=0.01, privacy=PaperSensitivity(1.5)),
        TheClickItself(**FEW, privacy=LocalClicks(1.5)),
    ],
    ids=["negatives around the click", "the paper's sensitivity", "the click itself"],
)
def test_what_breaks_the_promise_is_caught(method):
    assert louder(method, 1.5) > 0.2


@pytest.mark.slow
@pytest.mark.parametrize("privacy", [LocalClicks(), LocalNoisyClicks()])
def test_its_claims_survive_the_audit(privacy):
    plan = Plan(2_000, 4, target_epsilon=4.0)
    method = PrivateRecLocal(most_shown=20, privacy=privacy).calibrated(plan)
    found = audit(method, plan, key=Key.from_seed(0))
    assert found.checks
    assert not found.failed


# --- what is refused ------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"content": ()},
        {"dimensions": 0},
        {"interests": 1},
        {"most_shown": 1},
        {"most_impressions": 0},
        {"negatives": 0},
        {"passes": -1},
        {"temperature": 0.0},
        {"scale": 0.0},
        {"attention_share": 1.0},
        {"head_deviation": 0.0},
        {"taste_deviation": 0.0},
        {"effect_deviation": -1.0},
        {"privacy": LocalPrivUnit()},
    ],
)
def test_fields_that_are_refused(fields):
    [name] = fields
    with pytest.raises(BadValue, match=name):
        PrivateRecLocal(**fields)


def test_who_cannot_compute_reports_on_its_slates_all_the_same():
    """A report without slates would tell, of somebody who was shown some."""
    method = PrivateRecLocal(**SMALL, privacy=LocalClicks(1.0))
    made = simulation(method)
    state = made.start()
    broadcast, n = method.broadcast(state.server), len(made.shards)
    keys = Key.from_seed(0).each(np.arange(n))
    empty = empty_reports(method, broadcast, state.clients, made.shards, keys).tree
    assert method.legal(empty, made.plan, made.catalog, phase=0).all()
    _, honest, _ = participate(
        method, broadcast, state.clients, made.shards, keys, ledger=Unmetered()
    )
    np.testing.assert_array_equal(empty["sizes"] > 0, honest.tree["sizes"] > 0)
    assert (empty["sizes"] > 0).any()
    shown = made.shards.known_impressions
    for user in range(n):
        own = {*(shown.take_users([user]).slates.shown.values + 1).tolist(), 0}
        assert {*empty["candidates"][user].ravel().tolist()} <= own


def test_who_was_shown_nothing_and_cannot_compute_names_an_interest():
    made = simulation(PrivateRecLocal(**SMALL, privacy=LocalClicks(1.0)))
    state = made.start()
    broadcast, keys = made.method.broadcast(state.server), Key.from_seed(0).each([0])
    clients, held = state.clients.take([0]), made.shards.take([0])
    bare = replace(held, impressions=None)
    reports = empty_reports(made.method, broadcast, clients, bare, keys)
    assert not reports.tree["sizes"].any()
    assert reports.tree["interests"].sum() == 1


def test_failing_clients_are_as_likely_to_say_anything_as_honest_ones():
    """Of one who has read and clicked nothing, both ways have one distribution.

    False alarm below 1e-9 if seeds were drawn anew (Hoeffding); sees a difference of
    .05 in how often an interest or a label is named.
    """
    n = 20_000
    method = PrivateRecLocal(**SMALL, privacy=LocalClicks(1.0))
    made = simulation(method)
    state = made.start()
    broadcast = method.broadcast(state.server)
    rows = np.zeros(n, np.int64)
    clients, blank = state.clients.take(rows), made.shards.take(rows).only_shown()
    keys = Key.from_seed(7).each(np.arange(n))
    failed = empty_reports(method, broadcast, clients, made.shards.take(rows), keys)
    _, able, _ = participate(
        method, broadcast, clients, blank, keys, ledger=Unmetered()
    )
    for name in ("interests", "candidates"):
        for value in range(8):
            one, other = (
                (some.tree[name].reshape(n, -1) == value).mean(axis=0)
                for some in (failed, able)
            )
            assert np.abs(one - other).max() < 0.05


# --- reports of strangers -------------------------------------------------------------


def honest(**changes):
    """Real reports, the plan and the catalog they are for."""
    method = PrivateRecLocal(**{**SMALL, **changes}, privacy=LocalClicks(2.0))
    made = simulation(method)
    state, keys = made.start(), Key.from_seed(1).each(np.arange(len(made.shards)))
    broadcast = method.broadcast(state.server)
    _, reports, _ = participate(
        method, broadcast, state.clients, made.shards, keys, ledger=Unmetered()
    )
    return method, made, reports.tree


@pytest.mark.parametrize("changes", [{}, {"negatives": 2}, {"attention_share": 0.0}])
def test_every_honest_report_is_legal(changes):
    method, made, tree = honest(**changes)
    assert method.legal(tree, made.plan, made.catalog, phase=0).all()


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("sizes", (0, 0), 9),  # more than most_shown
        ("sizes", (0, 0), -1),
        ("sizes", (0, 0), 0),
        ("candidates", (0, 0, 0), 2**31 - 1),
        ("candidates", (0, 0, 0), 0),
        ("candidates", (0, 0, 1), None),  # the first item again
        ("interests", (0, 0), 3e38),
        ("interests", (0, slice(None)), 1.0),
        ("interests", (0, slice(None)), 0.0),
    ],
)
def test_a_report_that_no_client_makes_is_not(name, at, value):
    method, made, tree = honest()
    arrays = {one: tree[one].copy() for one in tree.leaves}
    some = np.flatnonzero(arrays["sizes"][:, 0] > 1)[0]
    arrays = {one: values[[some]] for one, values in arrays.items()}
    found = arrays["candidates"][0, 0, 0] if value is None else value
    arrays[name][at] = found
    fine = method.legal(Tree.dense(**arrays), made.plan, made.catalog, phase=0)
    assert fine.tolist() == [False]


def test_more_reports_than_were_agreed_are_all_kept():
    """Clients that report oftener than once end no run."""
    _, _, tree = honest()
    memory = {
        name: np.zeros((3, *tree[name].shape[1:]), tree[name].dtype)
        for name in tree.leaves
    }
    kept = StoredReports().added(memory, Unlinked(tree, len(tree)))
    wide = np.concatenate(
        [tree[name].reshape(len(tree), -1) for name in tree.leaves], axis=1
    )
    assert len(kept["sizes"]) == max(3, np.count_nonzero(wide.any(axis=1))) > 3
