"""A run over nodes is the run on one machine; what is not as agreed does not count."""

from __future__ import annotations

import struct
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from runtime.machines import CASES, KEY, Case, Machines, Scripted

from tacit import memory
from tacit.documents import read_document
from tacit.errors import Refused
from tacit.method import Unmetered
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.fmf_ldp import FmfLdp
from tacit.methods.gram import Gram
from tacit.plans import Plan
from tacit.privacy import CentralGaussian, LocalPrivUnit
from tacit.privacy.local_bits import VOTES
from tacit.release import Standing, Unit, View
from tacit.runtime.checkpoint import load_checkpoint, save_checkpoint
from tacit.runtime.federation import NODES_FOLLOW, Federation, Reply
from tacit.runtime.node import refuse_channel
from tacit.runtime.rounds import Cohort
from tacit.runtime.run import RunDirectory, play
from tacit.runtime.secrets import Secrets
from tacit.sampling import FixedSize, Poisson
from tacit.transport.channels import RoundContext, partial_slots
from tacit.transport.codec import (
    decode_broadcast,
    decode_partial,
    decode_stack,
    encode_broadcast,
    encode_partial,
    encode_stack,
)
from tacit.transport.messages import PartialSum, Reports
from tacit.transport.node_answer import Kind, NodeAnswer, Share
from tacit.tree import Dense, Tree

POPULAR = CASES["popularity, central"]
COUNTED = Case(FederatedPopularity(max_votes=4), "secure_sum")


def assert_same(found, expected):
    """Integers are equal exactly, floats in float64 to 1e-9."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].dtype == value.dtype, name
        if value.dtype.kind == "f":
            np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-9)
        else:
            np.testing.assert_array_equal(found[name], value)


# --- The same round -------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_three_nodes_give_what_one_machine_gives(name, tmp_path):
    case = CASES[name]
    alone, over = case.alone(), case.federation(tmp_path)
    here, there = alone.start(), over.start()
    while not alone.method.is_over(here.server):
        # From the same server, so that each round is compared by itself.
        there = replace(there, server=here.server)
        here, own = alone.step(here)
        there, tally = over.step(there)
        assert_same(there.server.weights, here.server.weights)
        assert_same(there.server.memory, here.server.memory)
        assert (tally.asked, tally.took_part) == (own.asked, own.took_part)
        assert tally.dropped == {}
    for node in over.nodes.nodes:
        rows = node.simulation.numbers
        kept = node.store.kept("run")
        np.testing.assert_array_equal(kept.taken, here.taken[rows])
        for leaf, value in here.clients.state.leaves.items():
            np.testing.assert_allclose(
                kept.state.leaves[leaf].values, value.values[rows], atol=1e-9
            )


def test_the_bits_of_nodes_are_those_of_one_machine(tmp_path):
    """Whole numbers, drawn by user: as many of each, exactly."""
    case = CASES["fmf_ldp, bits"]
    alone = case.alone()
    state = alone.start()
    broadcast = alone.method.broadcast(state.server)
    layout = alone.method.agreement(case.plan, case.world.catalog).reports[0]
    cohort = Cohort.drawn(alone.method, state, alone.population, broadcast, layout)
    here = np.concatenate([chunk.tree[VOTES] for chunk in cohort.chunks()])
    there = []
    for part in range(3):
        node = case.node(tmp_path, Share(part, 3))
        answer = NodeAnswer.decode(node.answer(encode_broadcast(broadcast)))
        for message in answer.messages:
            found = decode_stack(broadcast, message, layout, most=13)
            there.append(found.tree[VOTES])
    there = np.concatenate(there)
    assert there.dtype == here.dtype == np.int32
    assert sorted(there.tolist()) == sorted(here.tolist())


NOISE = CentralGaussian(1.0)
WHOLE = {  # nothing that clients draw decides what they report
    "gram": Gram(count_rounds=1, head=7, rank=3, privacy=NOISE),
    "popularity": FederatedPopularity(max_votes=20, privacy=NOISE),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_release_adds_up_the_same_whole_numbers(name, tmp_path):
    """Everyone takes part and the noise has the same secret: equal to the last bit."""
    case = Case(WHOLE[name], "secure_sum")
    same = Secrets(bytes(range(32)), bytes(range(32, 64)))
    alone = case.alone(is_release=True)
    over = case.federation(tmp_path, is_release=True)
    here = replace(alone.start(), secrets=same)
    there = replace(over.start(), server=here.server, secrets=same)
    here, _ = alone.step(here)
    there, tally = over.step(there)
    for leaf, value in here.server.weights.items():
        np.testing.assert_array_equal(there.server.weights[leaf], value)
    assert (tally.asked, tally.took_part) == (0, 0)  # nothing is told of users
    assert there.secrets.round != same.round


def test_a_release_without_its_secrets_asks_nobody(tmp_path):
    """Its noise would follow from a seed, and whoever knows that subtracts it."""
    case = Case(WHOLE["popularity"], "secure_sum")
    over = case.federation(tmp_path, is_release=True)
    with pytest.raises(Refused, match="no secret to draw from"):
        over.step(replace(over.start(), secrets=None))
    assert [node.store.rounds("run") for node in over.nodes.nodes] == [[], [], []]


def test_a_node_forgets_the_secret_of_its_answer(tmp_path):
    case = Case(WHOLE["gram"], "secure_sum")
    over = case.federation(tmp_path, is_release=True)
    [node, *_] = over.nodes.nodes
    node.store.join("run", node.terms, node._enrolled)
    before = node.store.kept("run").secrets
    state, _ = over.step(over.start())
    after = node.store.kept("run").secrets
    assert after.run == before.run
    assert after.round != before.round
    while not over.method.is_over(state.server):
        state, _ = over.step(state)
    assert state.secrets is None
    assert node.store.kept("run").secrets is None
    assert before.round not in (tmp_path / "node-0.db").read_bytes()


# --- Late and missing nodes -----------------------------------------------------------


def test_a_missing_node_counts_as_nothing_and_the_divisor_stays(tmp_path):
    """As if its users had refused on one machine, whatever the plan's noise."""
    over = replace(POPULAR.federation(tmp_path), min_nodes=2)
    nodes = over.nodes.nodes
    over = replace(over, nodes=Machines((nodes[0], nodes[2])))
    gone = nodes[1].simulation.numbers
    alone = replace(POPULAR.alone(), ledger=_Refusing(gone))
    here, _ = alone.step(alone.start())
    there, tally = over.step(over.start())
    assert_same(there.server.weights, here.server.weights)
    assert tally.answered == ("part 0 of 3", "part 2 of 3")
    assert tally.dropped == {"part 1 of 3": "nobody answered for it"}


class _Refusing(Unmetered):
    """The ledger of clients of whom some say no."""

    def __init__(self, rows):
        self.rows = rows

    def permits(self, clients, *, round, multipliers=None):
        return ~np.isin(clients, self.rows)


def test_below_the_minimum_a_round_is_not_finished_and_can_be_played_again(tmp_path):
    whole = COUNTED.federation(tmp_path)
    few = replace(whole, nodes=Machines(whole.nodes.nodes[:2]))
    state = few.start()
    told = r"2 of 3 nodes answered and 3 must: nobody answered for part 2 of 3;.*--res"
    with pytest.raises(Refused, match=told):
        few.step(state)
    state, _ = whole.step(state)  # two of the nodes send what they sent before
    alone = COUNTED.alone()
    expected, _ = alone.step(alone.start())
    assert_same(state.server.weights, expected.server.weights)
    for node in whole.nodes.nodes:
        assert node.store.kept("run").taken.max() == 1


def test_who_is_late_and_who_is_not_there_are_both_named(tmp_path):
    """Of a node that said nothing nobody knows the share; two parts are missing."""
    over = replace(POPULAR.federation(tmp_path), min_nodes=1)
    [node, *_] = over.nodes.nodes
    late = Scripted([Reply("node 7", None, "is late")], Machines((node,)))
    _, tally = replace(over, nodes=late).step(over.start())
    absent = dict.fromkeys(["part 1 of 3", "part 2 of 3"], "nobody answered for it")
    assert tally.dropped == {"node 7": "is late", **absent}
    strict = replace(over, nodes=late, min_nodes=3)
    told = "must: node 7 is late; nobody answered for part 1 of 3; nobody answered for"
    with pytest.raises(Refused, match=told):
        strict.step(over.start())
    # One node and one share: the node is enough of a name.
    one = Scripted([Reply("node 7", None, "is late")], Machines(over.nodes.nodes[:2]))
    _, tally = replace(over, nodes=one).step(over.start())
    assert tally.dropped == {"node 7": "is late"}


# --- Answers that are not as agreed ---------------------------------------------------


def sealed(question, total, **options):
    message = encode_partial(decode_broadcast(question), PartialSum(total))
    made = NodeAnswer(Kind.PARTIAL_SUM, Share(1, 3), (message,), **options)
    return made.encode()


def good(case, question):
    n = len(case.world.catalog)
    return sealed(question, {"votes": np.zeros(n)})


def _version(content, place):
    return content[:place] + bytes([0]) + content[place + 1 :]


def _claims(content):
    """The answer with a length of 10^11 floats in front of its message."""
    return content[:52] + struct.pack("<Q", 8 * 10**11) + content[60:]


def _stack(question):
    votes = Reports(Tree({"votes": Dense(np.ones((2, 20), np.float32))}))
    message = encode_stack(decode_broadcast(question), votes)
    return NodeAnswer(Kind.REPORTS, Share(1, 3), (message,)).encode()


BAD = {
    "nan": lambda q: sealed(q, {"votes": np.full(20, np.nan)}),
    "infinity": lambda q: sealed(q, {"votes": np.full(20, np.inf)}),
    "wrong shape": lambda q: sealed(q, {"votes": np.zeros(21)}),
    "wrong type": lambda q: sealed(q, {"votes": np.zeros(20, np.int64)}),
    "wrong name": lambda q: sealed(q, {"voted": np.zeros(20)}),
    "longer than all users": lambda q: sealed(q, {"votes": np.full(20, 1e6)}),
    "100 MB": lambda q: sealed(q, {"votes": np.zeros(12_500_000)}),
    "claims 10^11 floats": lambda q: _claims(good(POPULAR, q)),
    "old version of the answer": lambda q: _version(good(POPULAR, q), 4),
    "old version of the sum": lambda q: _version(good(POPULAR, q), 60 + 4),
    "one byte is other": lambda q: good(POPULAR, q)[:-1] + b"x",
    "too short": lambda q: good(POPULAR, q)[:-9],
    "nothing": lambda q: b"",
    "reports instead of a sum": _stack,
    "another share": lambda q: NodeAnswer(
        Kind.PARTIAL_SUM, Share(1, 4), (b"",)
    ).encode(),
    "a refusal": lambda q: NodeAnswer.refusal(Share(1, 3), "not today").encode(),
}


class _Hostile:
    """Two honest nodes, and one that answers what a test wants."""

    def __init__(self, machines, made):
        self.machines, self.made = machines, made

    def ask(self, question, *, round, most_bytes):
        yield Reply("node 7", self.made(question))
        yield from self.machines.ask(question, round=round, most_bytes=most_bytes)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_answer_is_dropped_named_and_counted(name, tmp_path):
    over = replace(POPULAR.federation(tmp_path), min_nodes=2)
    honest = Machines((over.nodes.nodes[0], over.nodes.nodes[2]))
    expected, _ = replace(over, nodes=honest).step(over.start())
    hostile = replace(over, nodes=_Hostile(honest, BAD[name]))
    found, tally = hostile.step(over.start())
    assert_same(found.server.weights, expected.server.weights)
    assert [*tally.dropped] == ["node 7"]
    assert tally.dropped["node 7"]
    assert len(tally.answered) == 2


def test_a_claim_is_never_allocated(tmp_path):
    over = replace(POPULAR.federation(tmp_path), min_nodes=1)
    broadcast = over.method.broadcast(over.start().server)
    lie = _claims(good(POPULAR, encode_broadcast(broadcast)))
    lied = replace(over, nodes=Scripted([Reply("liar", lie)]))
    tracemalloc.start()
    with pytest.raises(Refused):
        lied.step(over.start())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000


def test_a_share_counts_once(tmp_path):
    over = POPULAR.federation(tmp_path)
    twice = Machines((*over.nodes.nodes, over.nodes.nodes[1]))
    expected, _ = over.step(over.start())
    found, tally = replace(over, nodes=twice).step(over.start())
    assert_same(found.server.weights, expected.server.weights)
    assert "answered already" in tally.dropped["node 1"]


def test_another_store_for_a_known_share_does_not_count(tmp_path):
    """A share is bound to the store that answered for it, also after a checkpoint."""
    over = POPULAR.federation(tmp_path / "nodes", min_nodes=2)
    [_, one, two] = over.nodes.nodes
    stranger = POPULAR.node(tmp_path / "stranger", Share(0, 3))
    state, _ = over.step(over.start())
    assert {*state.stores} == {0, 1, 2}
    path = tmp_path / "state.safetensors"
    save_checkpoint(path, state, digest="x")
    state = load_checkpoint(path, over.start(), digest="x")
    mixed = replace(over, nodes=Machines((stranger, one, two)))
    after, tally = mixed.step(state)
    assert "answered for it in an earlier round" in tally.dropped["node 0"]
    assert tally.answered == ("part 1 of 3", "part 2 of 3")
    assert after.stores == state.stores


def test_two_that_claim_a_share_in_its_first_round_are_both_dropped(tmp_path):
    over = replace(POPULAR.federation(tmp_path / "nodes"), min_nodes=2)
    [zero, one, two] = over.nodes.nodes
    few = replace(over, nodes=Machines((one, two)))
    expected, _ = few.step(over.start())
    strangers = [
        Renamed(POPULAR.node(tmp_path / str(n), Share(0, 3)), f"stranger {n}")
        for n in range(2)
    ]
    crowd = Crowd((strangers[0], zero, one, strangers[1], two))
    found, tally = replace(over, nodes=crowd).step(over.start())
    assert_same(found.server.weights, expected.server.weights)
    assert {*tally.dropped} == {"stranger 0", "node 0", "stranger 1"}
    assert "so does stranger 0" in tally.dropped["node 0"]
    assert "several nodes claim" in tally.dropped["stranger 1"]
    assert {*found.stores} == {1, 2}  # the share is nobody's yet


class Renamed:
    def __init__(self, node, name):
        self.node, self.name = node, name


class Crowd:
    """Nodes of which some have names of their own."""

    def __init__(self, members):
        self.members = members

    def ask(self, question, *, round, most_bytes):
        for one in self.members:
            if isinstance(one, Renamed):
                yield Reply(one.name, one.node.answer(question))
            else:
                yield Reply(f"node {one.share.part}", one.answer(question))


def test_an_answer_to_another_round_does_not_count(tmp_path):
    over = COUNTED.federation(tmp_path)
    first = over.start()
    kept = []

    class Recording:
        def ask(self, question, *, round, most_bytes):
            kept.extend(over.nodes.ask(question, round=round, most_bytes=most_bytes))
            return kept

    state, _ = replace(over, nodes=Recording()).step(first)
    with pytest.raises(Refused, match="answers round 0"):
        replace(over, nodes=Scripted(kept)).step(state)


def test_bad_reports_are_dropped_as_well(tmp_path):
    case = CASES["fmf_ldp, shuffled"]
    over = replace(case.federation(tmp_path), min_nodes=2)
    honest = Machines((over.nodes.nodes[0], over.nodes.nodes[2]))
    expected, _ = replace(over, nodes=honest).step(over.start())
    n, factors = len(case.world.catalog), case.method.factors

    def reports(question, value, n_users):
        shape = (n_users, n, factors)
        tree = Tree({"gradient": Dense(np.full(shape, value))})
        message = encode_stack(decode_broadcast(question), Reports(tree))
        return NodeAnswer(Kind.REPORTS, Share(1, 3), (message,)).encode()

    for value, n_users in ((np.nan, 1), (0.0, 14)):  # there are thirteen users

        def made(question, value=value, n_users=n_users):
            return reports(question, value, n_users)

        # The same start: honest nodes send the same bytes again.
        found, tally = replace(over, nodes=_Hostile(honest, made)).step(over.start())
        assert_same(found.server.weights, expected.server.weights)
        assert [*tally.dropped] == ["node 7"]


def test_nodes_of_a_simulation_do_not_count_in_a_release(tmp_path):
    """What their clients draw follows from a seed: whoever knows it subtracts it."""
    case = CASES["fmf_ldp"]
    simulated = case.federation(tmp_path / "simulated")
    release = case.federation(tmp_path / "release", is_release=True)
    for run, others, said in (
        (release, simulated, "as in a simulation, and this run is a release"),
        (simulated, release, "as in a release, and this run is a simulation"),
    ):
        mixed = replace(run, nodes=others.nodes)
        with pytest.raises(Refused, match=f"0 of 3 .* {said}"):
            mixed.step(mixed.start())
    _, tally = release.step(release.start())
    assert len(tally.answered) == 3


@pytest.mark.parametrize("value", [2**62, -(2**63)])
def test_whole_numbers_that_would_overflow_a_sum_are_dropped(value, tmp_path):
    case = Case(WHOLE["popularity"], "secure_sum")
    over = case.federation(tmp_path, is_release=True, min_nodes=2)
    honest = Machines((over.nodes.nodes[0], over.nodes.nodes[2]))

    def made(question):
        return sealed(
            question, {"votes": np.full(20, value, np.int64)}, is_release=True
        )

    _, tally = replace(over, nodes=_Hostile(honest, made)).step(over.start())
    assert "beyond" in tally.dropped["node 7"]


@pytest.mark.parametrize("name", WHOLE)
def test_a_release_has_no_sum_that_its_users_cannot_have(name, tmp_path):
    """√L for every user of the plan, in whole steps; honest sums are far below it."""
    case = Case(WHOLE[name], "secure_sum")
    over = case.federation(tmp_path, is_release=True, min_nodes=2)
    [one, two, three] = over.nodes.nodes
    state = over.start()
    while not over.method.is_over(state.server):
        for factor, drops in ((1, False), (10**6, True)):
            nodes = Larger((one, three), two, factor)
            after, tally = replace(over, nodes=nodes).step(state)
            assert ("length" in tally.dropped.get("node 1", "")) is drops
        state = after


class Larger:
    """Nodes of which one sends its sum times a factor."""

    def __init__(self, honest, liar, factor):
        self.honest, self.liar, self.factor = honest, liar, factor

    def ask(self, question, *, round, most_bytes):
        for node in self.honest:
            yield Reply(f"node {node.share.part}", node.answer(question))
        answer = NodeAnswer.decode(self.liar.answer(question))
        broadcast = decode_broadcast(question)
        node = self.liar
        mechanism = node.simulation.method.noise(broadcast, node.simulation.plan)
        layout = node.agreement.reports[broadcast.phase]
        context = RoundContext(layout, KEY, mechanism, is_partial=True)
        found = decode_partial(broadcast, answer.messages[0], partial_slots(context))
        total = {leaf: value * self.factor for leaf, value in found.total.items()}
        message = encode_partial(broadcast, PartialSum(total))
        yield Reply("node 1", replace(answer, messages=(message,)).encode())


def test_reports_of_all_nodes_together_are_no_more_than_users(tmp_path):
    """Thirteen users; two nodes with seven reports each are not both right."""
    case = CASES["fmf_ldp, shuffled"]
    over = replace(case.federation(tmp_path), min_nodes=1)
    n, factors = len(case.world.catalog), case.method.factors

    class Two:
        def ask(self, question, *, round, most_bytes):
            tree = Tree({"gradient": Dense(np.zeros((7, n, factors)))})
            message = encode_stack(decode_broadcast(question), Reports(tree))
            for part in (0, 1):
                made = NodeAnswer(Kind.REPORTS, Share(part, 3), (message,))
                yield Reply(f"node {part}", made.encode())

    _, tally = replace(over, nodes=Two()).step(over.start())
    assert tally.answered == ("part 0 of 3",)
    assert "from 1 to 6 may report" in tally.dropped["node 1"]


@pytest.mark.parametrize("name", ["popularity, central", "fmf_ldp, shuffled"])
def test_no_answer_is_longer_than_what_was_agreed(name, tmp_path):
    """Every honest answer fits; one byte more than may come is not even decoded."""
    case = CASES[name]
    over = replace(case.federation(tmp_path), min_nodes=2)
    sizes = []

    class Padded:
        def ask(self, question, *, round, most_bytes):
            for reply in over.nodes.ask(question, round=round, most_bytes=most_bytes):
                sizes.append((len(reply.content), most_bytes))
                if reply.node != "node 1":
                    yield reply
            yield Reply("node 1", bytes(most_bytes + 1))

    _, tally = replace(over, nodes=Padded()).step(over.start())
    assert "no answer that was agreed has more" in tally.dropped["node 1"]
    assert all(size <= most < 2**20 for size, most in sizes)


# --- Checkpoints and the ledger -------------------------------------------------------


def observed(state, tally):
    return {"nodes": [*tally.answered]}


@pytest.mark.parametrize("every", [1, 3])
def test_a_run_goes_on_from_its_last_round_with_an_exact_ledger(every, tmp_path):
    """The server dies in round 1, after the nodes have answered.

    However rarely checkpoints were asked for: nodes answer round 0 no more.
    """
    over = POPULAR.federation(tmp_path / "nodes")
    directory = RunDirectory(tmp_path / "run")

    class Dying:
        def ask(self, question, *, round, most_bytes):
            replies = [*over.nodes.ask(question, round=round, most_bytes=most_bytes)]
            if round == 1:
                raise KeyboardInterrupt
            return replies

    options = {"digest": "x", "observe": observed, "every": every}
    with directory.locked(), pytest.raises(KeyboardInterrupt):
        [*play(replace(over, nodes=Dying()), directory, **options)]
    assert read_document(directory.ledger)["rounds_begun"] == 2
    with directory.locked():
        *_, (last, _) = play(over, directory, **options)
    assert read_document(directory.ledger)["rounds_begun"] == 3
    alone = POPULAR.alone()
    *_, (expected, _) = alone.run(alone.start())
    assert_same(last.server.weights, expected.server.weights)
    for node in over.nodes.nodes:
        rows = node.simulation.numbers
        taken = node.store.kept("run").taken
        np.testing.assert_array_equal(taken, expected.taken[rows])
        assert node.store.rounds("run") == [0, 1, 2]


def test_the_ledger_counts_everybody_in_every_round_begun(tmp_path):
    """No server knows who took part, so it states what the most active may have."""
    over = POPULAR.federation(tmp_path / "nodes")
    directory = RunDirectory(tmp_path / "run")
    with directory.locked():
        [*play(over, directory, digest="x", observe=observed)]
    entry = read_document(directory.ledger)
    assert entry["most_participations"] == entry["rounds_begun"] == 3


# --- What is promised -----------------------------------------------------------------


def test_the_server_sees_bare_sums_and_is_promised_nothing(tmp_path):
    over, alone = POPULAR.federation(tmp_path), POPULAR.alone()
    [found], [before] = over.releases, alone.releases
    for unit in Unit:
        assert before.cells[unit, View.SERVER].standing is Standing.PROVEN
        server = found.cells[unit, View.SERVER]
        assert server.standing is Standing.NONE
        assert "without noise" in server.reason
        public = found.cells[unit, View.RELEASE]
        assert public.event == before.cells[unit, View.RELEASE].event
        assert NODES_FOLLOW in public.assumes
    totals = {(line.unit, line.view): line for line in over.account.totals}
    assert totals[Unit.USER, View.SERVER].epsilon is None
    assert totals[Unit.USER, View.RELEASE].epsilon == pytest.approx(
        {(x.unit, x.view): x for x in alone.account.totals}[
            Unit.USER, View.RELEASE
        ].epsilon
    )


@pytest.mark.parametrize("name", ["fmf_ldp", "fmf_ldp, bits"])
def test_local_reports_are_proven_as_far_as_nodes_follow_the_protocol(name, tmp_path):
    """The node draws their noise, and a user of two partners would report twice."""
    over, alone = CASES[name].federation(tmp_path), CASES[name].alone()
    [found], [before] = over.releases, alone.releases
    for place, cell in found.cells.items():
        assert before.cells[place].assumes == ()
        assert cell == replace(before.cells[place], assumes=(NODES_FOLLOW,))
        assert cell.has_epsilon
    for line in over.account.totals:
        assert str(NODES_FOLLOW) in line.assumes
    for said in ("follows the protocol", "no other code", "on one node"):
        assert said in str(NODES_FOLLOW)


def test_shuffling_at_the_server_hides_nothing_from_it(tmp_path):
    """The relay is the server's own: its view is that of a relay that sides with it."""
    method = FmfLdp(privacy=LocalPrivUnit(epsilon=4.0))
    case = Case(method, "direct")
    plan = Plan(13, rounds=1, channel="shuffle", min_contributors=10, delta=1e-6)
    over = Federation.of(
        method, plan, case.world.catalog, KEY, nodes=Machines(()), shares=3
    )
    for release in over.releases:
        for unit in Unit:
            own = release.cells[unit, View.SERVER]
            assert own == release.cells[unit, View.COLLUSION]


def test_what_nodes_cannot_do_is_refused(tmp_path):
    with pytest.raises(Refused, match="fixed size"):
        replace(COUNTED, sampler=FixedSize(3)).federation(tmp_path, shares=1)
    with pytest.raises(Refused, match="two operators"):
        Case(
            FederatedPopularity(max_votes=4, privacy=NOISE),
            "two_servers",
        ).federation(tmp_path)
    with pytest.raises(Refused, match="masks its own report"):
        refuse_channel("masked_sum")
    with pytest.raises(Refused, match="min_nodes=4"):
        COUNTED.federation(tmp_path / "more", min_nodes=4)


def test_reports_that_do_not_fit_into_the_servers_memory_are_refused(
    tmp_path, monkeypatch
):
    """Sums are few whoever takes part; of reports the server holds a whole round."""
    monkeypatch.setattr(memory, "available", lambda: 4096)
    assert COUNTED.federation(tmp_path / "sums").parts_of_users == 3
    with pytest.raises(Refused, match=r"holds all reports.* 4\.0 KiB are free"):
        CASES["fmf_ldp, shuffled"].federation(tmp_path / "reports")
    monkeypatch.setattr(memory, "available", lambda: None)  # nobody says
    CASES["fmf_ldp, shuffled"].federation(tmp_path / "unknown")


def test_poisson_coins_do_not_depend_on_who_else_is_on_the_machine(tmp_path):
    """Two shares or five: the same users are asked in the same rounds."""
    case = replace(COUNTED, sampler=Poisson(0.5))
    asked = {}
    for shares in (2, 5):
        over = case.federation(tmp_path / str(shares), shares=shares)
        over.step(over.start())
        taken = np.zeros(13, np.int64)
        for node in over.nodes.nodes:
            taken[node.simulation.numbers] = node.store.kept("run").taken.sum(axis=1)
        asked[shares] = taken.tolist()
    assert asked[2] == asked[5]
    assert 0 < sum(asked[2]) < 13
