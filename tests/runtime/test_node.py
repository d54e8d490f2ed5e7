"""A node answers a round once; what it refuses depends on the question alone."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from runtime.machines import CASES, KEY, Case

from tacit.errors import Refused
from tacit.keys import Key
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.privacy import CentralGaussian, LocalPrivUnit
from tacit.runtime.node import Node
from tacit.runtime.node_store import NodeStore
from tacit.transport.channels import RoundContext, partial_slots
from tacit.transport.codec import decode_partial, encode_broadcast
from tacit.transport.exact_total import longest_sums
from tacit.transport.node_answer import Kind, NodeAnswer, Share

CASE = Case(FederatedPopularity(max_votes=4), "secure_sum")
SHARE = Share(1, 3)


def question(case, *, state=None, **changes):
    alone = case.alone()
    state = alone.start() if state is None else state
    broadcast = replace(alone.method.broadcast(state.server), **changes)
    return broadcast, encode_broadcast(broadcast)


def test_the_sum_of_its_users_has_no_noise(tmp_path):
    """Whatever the plan's noise is: that is added once, elsewhere."""
    noisy = replace(
        CASE, method=FederatedPopularity(max_votes=20, privacy=CentralGaussian(9.0))
    )
    node = noisy.node(tmp_path, SHARE)
    broadcast, asked = question(noisy)
    answer = NodeAnswer.decode(node.answer(asked))
    assert (answer.kind, answer.share) == (Kind.PARTIAL_SUM, SHARE)
    mechanism = noisy.method.noise(broadcast, noisy.plan)
    context = RoundContext(node.agreement.reports[0], KEY, mechanism)
    found = decode_partial(broadcast, answer.messages[0], partial_slots(context))
    held = node.simulation.shards
    expected = np.zeros(20)
    for row in range(len(held)):
        items = np.unique(held.take([row]).items)
        expected[items] += np.float32(1 / np.sqrt(max(len(items), 1)))
    np.testing.assert_allclose(found.total["votes"], expected, atol=1e-6)


def test_asked_again_it_sends_the_same_bytes(tmp_path):
    """Also after it was closed; local noise is not drawn a second time."""
    case = replace(CASES["fmf_ldp"], sampler=CASE.sampler)
    node = case.node(tmp_path, SHARE)
    _, asked = question(case)
    said = node.answer(asked)
    assert node.answer(asked) == said
    node.store.close()
    again = case.node(tmp_path, SHARE)
    assert again.answer(asked) == said
    assert again.store.kept("run").taken.max() == 1


def test_a_release_draws_from_the_operating_system_and_answers_once(tmp_path):
    case = replace(CASES["fmf_ldp"], sampler=CASE.sampler)
    case = replace(
        case, method=replace(case.method, privacy=LocalPrivUnit(epsilon=4.0))
    )
    _, asked = question(case)
    one = case.node(tmp_path / "one", SHARE, is_release=True)
    two = case.node(tmp_path / "two", SHARE, is_release=True)
    said = one.answer(asked)
    assert one.answer(asked) == said
    assert two.answer(asked) != said
    assert NodeAnswer.decode(said).asked == 0


def test_killed_before_the_answer_was_kept_it_computes_the_same(tmp_path, monkeypatch):
    case = replace(CASES["fmf_ldp"], sampler=CASE.sampler)
    _, asked = question(case)
    expected = case.node(tmp_path / "other", SHARE).answer(asked)
    node = case.node(tmp_path, SHARE)

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(NodeStore, "keep", killed)
        with pytest.raises(KeyboardInterrupt):
            node.answer(asked)
    assert node.store.rounds("run") == [0]  # spent, as far as anybody can tell
    assert node.store.kept("run").taken.max() == 0
    answer = NodeAnswer.decode(node.answer(asked))
    assert answer.messages == NodeAnswer.decode(expected).messages
    assert node.store.kept("run").taken.max() == 1


@dataclass(frozen=True)
class FailsFor(FederatedPopularity):
    """One user's client fails, in whatever company."""

    failing: int = -1

    def local_update(self, broadcast, clients, shards, keys):
        if self.failing in clients.numbers:
            raise ArithmeticError("of one user")
        return super().local_update(broadcast, clients, shards, keys)


def release_sum(place, *, failing=-1):
    """The whole numbers that a node answers a release with, and what it told."""
    privacy = CentralGaussian(1.0)
    case = replace(
        CASE, method=FailsFor(max_votes=20, privacy=privacy, failing=failing)
    )
    node, told = case.node(place, SHARE, is_release=True), []
    node = replace(node, note=told.append)
    broadcast, asked = question(case)
    answer = NodeAnswer.decode(node.answer(asked))
    mechanism = case.method.noise(broadcast, case.plan)
    layout = node.agreement.reports[0]
    context = RoundContext(layout, KEY, mechanism, is_partial=True)
    found = decode_partial(broadcast, answer.messages[0], partial_slots(context))
    return found.total, told, (mechanism, layout)


def test_who_fails_in_a_release_takes_nobody_along(tmp_path):
    """The sum moves by one user's limit at most, as the proven noise assumes.

    Without that it would be the sum of none of the node's users.
    """
    whole, told, (mechanism, layout) = release_sum(tmp_path / "honest")
    assert not told
    failed, told, _ = release_sum(tmp_path / "failing", failing=1)
    assert [type(error) for error in told] == [ArithmeticError]
    moved = {name: value - failed[name] for name, value in whole.items()}
    assert any(value.any() for value in moved.values())
    assert any(value.any() for value in failed.values())
    for length, limit in longest_sums(moved, mechanism, layout):
        assert length <= limit


def test_failures_do_not_fill_the_log(tmp_path):
    node = CASE.node(tmp_path, SHARE)
    told = []
    node = replace(node, note=told.append)
    for _ in range(100):
        node._note(ValueError("again"))
    assert len(told) == len(node.failures) == 16


def refusal(node, asked):
    answer = NodeAnswer.decode(node.answer(asked))
    assert answer.kind is Kind.REFUSAL
    return answer.reason


def test_what_was_not_agreed_is_refused_and_costs_nothing(tmp_path):
    node = CASE.node(tmp_path, SHARE)
    _, other_plan = question(replace(CASE, rounds=7))
    _, other_phase = question(CASE, phase=3)
    _, too_late = question(CASE, round=99)
    large = b"x" * (node.agreement.most_bytes + 1)
    for asked in (other_plan, other_phase, too_late, large, b"", b"no message"):
        assert refusal(node, asked)
    assert node.store.rounds("run") == []


def test_a_round_has_one_question_and_does_not_come_back(tmp_path):
    node = CASE.node(tmp_path, SHARE)
    alone = CASE.alone()
    state = alone.start()
    _, first = question(CASE, state=state)
    share = {"share": np.full(20, 0.25)}
    _, other = question(CASE, state=state, weights=share)
    node.answer(first)
    assert "another question" in refusal(node, other)
    for _ in range(2):
        state, _ = alone.step(state)
        _, asked = question(CASE, state=state)
        node.answer(asked)
    assert "is over" in refusal(node, first)


def test_put_back_from_a_backup_it_answers_no_other_question(tmp_path):
    """With the same secrets and coins, two answers to a round would be compared."""
    case = replace(CASES["fmf_ldp"], sampler=CASE.sampler)
    alone = case.alone()
    state = alone.start()
    broadcast, first = question(case, state=state)
    moved = {name: value + 0.5 for name, value in broadcast.weights.items()}
    _, other = question(case, state=state, weights=moved)
    node = case.node(tmp_path, SHARE, is_release=True)
    path = node.store.path
    backup = path.read_bytes()
    node.answer(first)
    node.store.close()
    path.write_bytes(backup)
    with pytest.raises(Refused, match="a backup was put back"):
        case.node(tmp_path, SHARE, is_release=True).answer(other)


def test_a_run_goes_on_over_the_same_users_only(tmp_path):
    """The same noise over other data would show the difference."""
    node = CASE.node(tmp_path, SHARE)
    node.answer(question(CASE)[1])
    rows = np.array([0, 2, 3, 4])
    world = CASE.world
    other = replace(
        node.simulation,
        shards=world.shards.take(rows),
        profiles=world.profiles.take(rows),
        numbers=rows,
    )
    with pytest.raises(Refused, match="other users"):
        Node(other, SHARE, node.store, "run")
    with pytest.raises(Refused, match="another share"):
        Node(node.simulation, Share(2, 3), node.store, "run")
    Node(other, SHARE, node.store, "another run")


def test_a_run_counts_from_the_first_question_that_was_agreed_to(tmp_path):
    """A message that names a run and asks nothing else spends nobody's budget."""
    node = CASE.node(tmp_path, SHARE, run="named")
    assert refusal(node, b"no question")
    assert refusal(node, question(replace(CASE, rounds=7))[1])
    assert node.store.n_runs == 0
    _, asked = question(CASE)
    first, second = (
        Node(node.simulation, SHARE, node.store, name, most_runs=1)
        for name in ("first", "second")
    )
    said = first.answer(asked)
    with pytest.raises(Refused, match="trained on 1 times, and its operator allows 1"):
        second.answer(asked)
    assert first.answer(asked) == said
    assert node.store.n_runs == 1


def test_draws_are_addressed_by_user(tmp_path):
    """A seeded simulation on a node draws what one machine draws for these users."""
    node = CASE.node(tmp_path, SHARE)
    rows = node.simulation.numbers
    assert node.simulation.key == KEY != Key.from_seed(0)
    mine, alone = node.simulation.population.keys, CASE.alone().population.keys
    np.testing.assert_array_equal(mine.words, alone[rows].words)
