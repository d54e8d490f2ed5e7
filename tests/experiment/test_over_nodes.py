"""An experiment over nodes: each reads its share of a table, and nobody holds all."""

from __future__ import annotations

import csv
import json
import stat
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from tacit.data.user_shares import key_numbers, share_of
from tacit.documents import read_document
from tacit.errors import BadData, BadRun, BadValue, Damaged, Refused
from tacit.experiment.assemble import assemble
from tacit.experiment.build_report import Finished, write_report
from tacit.experiment.over_nodes import (
    gather_over,
    head_of,
    node_at,
    prepare_node,
    users_of,
)
from tacit.experiment.saved_run import SavedRun, load
from tacit.experiment.settings import read_experiment
from tacit.experiment.training import train
from tacit.methods.gram import Gram
from tacit.runtime.federation import Reply
from tacit.runtime.node import Node
from tacit.runtime.simulate import Simulation
from tacit.transport.node_answer import Share

N_USERS, N_ITEMS, SHARES = 60, 25, 3
METHOD = """
[method]
name = "gram"
count_rounds = 1
head = 12
rank = 4
[privacy]
mechanism = "central"
channel = "secure_sum"
noise_multiplier = 1.0
delta = 1e-6
[run]
seed = 5
rounds = 2
[evaluate]
metrics = ["ndcg@10"]
"""
DATA = """
[data]
source = "table"
items = "declared"
split = "none"
population = 80
[data.table]
path = "events.%s"
user = "who"
item = "what"
[data.table.items]
path = "items.csv"
item = "id"
"""


@pytest.fixture
def tables(tmp_path):
    """A table of events, and one of items of which a few are nobody's."""
    draws = np.random.default_rng(8)
    rows = [
        (f"user {user}", f"item {item}")
        for user in draws.permutation(N_USERS)
        for item in draws.choice(N_ITEMS - 3, size=draws.integers(2, 9), replace=False)
    ]
    with (tmp_path / "events.csv").open("w", newline="") as out:
        csv.writer(out).writerows([("who", "what"), *rows])
    with (tmp_path / "items.csv").open("w", newline="") as out:
        csv.writer(out).writerows([("id",), *((f"item {i}",) for i in range(N_ITEMS))])
    return tmp_path


def written(place, *, form="csv", data=DATA, method=METHOD, name="exp.toml"):
    path = place / name
    path.write_text((data % form if "%s" in data else data) + method)
    return read_experiment(path)


@dataclass
class Prepared:
    """Nodes that are opened for every question, as Flower does."""

    folders: list[Path]
    run: str
    head: str

    def ask(self, question, *, round, most_bytes):
        for folder in self.folders:
            node = node_at(folder, self.run, head=self.head)
            try:
                yield Reply(folder.name, node.answer(question))
            finally:
                node.store.close()


def prepared(experiment, place, *, run="run", **options):
    folders = [place / f"node-{part}" for part in range(SHARES)]
    for part, folder in enumerate(folders):
        prepare_node(experiment, Share(part, SHARES), folder, **options)
    return Prepared(folders, run, head_of(experiment).digest)


def trained(experiment, place, out, **options):
    nodes = prepared(experiment, place)

    def gather(known):
        return gather_over(known, nodes, shares=SHARES)

    return train(experiment, out, page=False, gather=gather, **options)


def test_nodes_over_a_table_give_what_one_machine_would(tables):
    """The keys follow from users' ids, on one machine as on many."""
    experiment = written(tables)
    outcome = trained(experiment, tables, tables / "run")
    whole = assemble(experiment).simulation
    alone = replace(whole, numbers=key_numbers(whole.profiles.ids))
    *_, (state, _) = alone.run(alone.start())
    for name, value in state.server.weights.items():
        np.testing.assert_allclose(
            outcome.state.server.weights[name], value, rtol=1e-9, atol=1e-9
        )


def test_parquet_and_csv_have_the_same_shares(tables):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import csv as arrow_csv
    from pyarrow import parquet

    table = arrow_csv.read_csv(tables / "events.csv")
    parquet.write_table(table, tables / "events.parquet")
    assert arrow
    for form in ("csv", "parquet"):
        experiment = written(tables, form=form)
        head = head_of(experiment)
        found = [users_of(experiment, head, Share(p, SHARES)) for p in range(SHARES)]
        if form == "csv":
            expected = found
    for one, other in zip(found, expected, strict=True):
        assert one.numbers.tolist() == other.numbers.tolist()
        log, same = one.dataset.interactions, other.dataset.interactions
        np.testing.assert_array_equal(log.items, same.items)


def test_every_user_is_on_one_node_and_a_node_has_only_its_own(tables):
    experiment = written(tables)
    head = head_of(experiment)
    seen = []
    for part in range(SHARES):
        users = users_of(experiment, head, Share(part, SHARES)).dataset.profiles.ids
        assert {share_of(one, parts=SHARES) for one in users} == {part}
        seen += [*users]
    assert sorted(seen) == sorted(f"user {i}" for i in range(N_USERS))


def test_the_head_reads_no_event(tables):
    """Not even the table has to be there: items and population are declared."""
    with_events = head_of(written(tables)).digest
    (tables / "events.csv").unlink()
    assert head_of(written(tables)).digest == with_events


def test_the_head_changes_with_plan_and_items(tables):
    first = head_of(written(tables)).digest
    other = METHOD.replace("rounds = 2", "rounds = 3")
    assert head_of(written(tables, method=other)).digest != first
    items = (tables / "items.csv").read_text().splitlines()
    (tables / "items.csv").write_text("\n".join([items[0], *items[:0:-1]]) + "\n")
    assert head_of(written(tables)).digest != first  # as many items, in another order


def test_the_head_changes_with_purpose_split_and_filters(tables):
    """Each of them decides what is promised, or whose events are trained on."""
    release = METHOD.replace("seed = 5", 'purpose = "release"')
    held = DATA.replace('"none"', '"new-users"\nvalidation = 0.2\ntest = 0.2')
    texts = [
        (DATA, METHOD),
        (DATA, release),
        (held, METHOD),
        (held.replace("test = 0.2", "test = 0.3"), METHOD),
        (held, METHOD.replace("seed = 5", "seed = 6")),
        (DATA.replace("population", "min_value = 2.0\npopulation"), METHOD),
        (DATA.replace("population", "min_interactions = 3\npopulation"), METHOD),
    ]
    found = [head_of(written(tables, data=d, method=m)).digest for d, m in texts]
    assert len({*found}) == len(texts)
    # Where a node's own file lies and what its columns are called is its own matter.
    (tables / "mine.csv").write_text((tables / "events.csv").read_text())
    assert (
        head_of(written(tables, data=DATA.replace("events", "mine"))).digest
        == (found[0])
    )


def test_a_simulation_prepared_later_leaves_a_release_as_it_was(tables):
    """Neither may it answer a release, nor use up the one run that it allows."""
    release = written(tables, method=METHOD.replace("seed = 5", 'purpose = "release"'))
    nodes = prepared(release, tables)
    [folder, *_] = nodes.folders
    settings = folder / nodes.head / "node.json"
    before = settings.read_bytes()
    simulation = written(tables, name="simulation.toml")
    trained(simulation, tables, tables / "simulation")
    assert settings.read_bytes() == before
    node = node_at(folder, "run", head=nodes.head)
    assert node.simulation.is_release
    node.store.close()
    other = tables / "other"
    prepare_node(simulation, Share(0, SHARES), other)
    with pytest.raises(Refused, match="agreed to no run"):
        node_at(other, "run", head=nodes.head)


def test_a_table_of_a_nodes_own_is_read_whole(tables):
    experiment = written(tables)
    head = head_of(experiment)
    users = users_of(experiment, head, Share(0, SHARES), own=True)
    assert len(users.numbers) == N_USERS


def test_users_are_held_out_by_a_coin_of_their_own(tables):
    """Whoever else is there, the same users do not train; about two in five."""
    data = DATA.replace('"none"', '"new-users"\nvalidation = 0.2\ntest = 0.2')
    experiment = written(tables, data=data)
    head = head_of(experiment)
    train = []
    for parts in (1, 3):
        shares = [Share(part, parts) for part in range(parts)]
        found = [users_of(experiment, head, one).dataset.profiles.ids for one in shares]
        train.append(sorted(user for ids in found for user in ids))
    assert train[0] == train[1]
    assert 0.35 * N_USERS < len(train[0]) < 0.85 * N_USERS


def test_what_needs_all_users_is_refused_in_one_message(tables):
    data = """
[data]
source = "table"
min_users = 2
split = "leave-one-out"
[data.table]
path = "events.csv"
user = "who"
item = "what"
"""
    with pytest.raises(Refused) as caught:
        head_of(written(tables, data=data))
    for wanted in ("table.items", "'declared'", "population", "split", "min_users"):
        assert wanted in str(caught.value)


def test_more_users_than_were_declared_are_refused(tables):
    experiment = written(tables, data=DATA.replace("80", "10"))
    with pytest.raises(BadValue, match="declares 10 in all"):
        users_of(experiment, head_of(experiment), Share(0, SHARES), own=True)


def test_groups_are_columns_of_the_users(tables):
    rows = [(f"user {i}", "strict" if i % 3 else "open") for i in range(N_USERS)]
    with (tables / "users.csv").open("w", newline="") as out:
        csv.writer(out).writerows([("who", "wish"), *rows])
    data = DATA.replace("population = 80", "population = { strict = 50, open = 30 }")
    data += '[data.table.users]\npath = "users.csv"\nuser = "who"\ncolumns = ["wish"]\n'
    method = METHOD.replace("[privacy]", '[privacy]\ngroups = "wish"')
    experiment = written(tables, data=data, method=method)
    head = head_of(experiment)
    assert dict(head.plan.groups) == {"strict": 50, "open": 30}
    users = users_of(experiment, head, Share(1, SHARES))
    for user, code in zip(users.dataset.profiles.ids, users.groups, strict=True):
        assert code == (int(user.split()[1]) % 3 == 0)
    missing = data.replace("open = 30", "other = 30")
    wrong = written(tables, data=missing, method=method)
    with pytest.raises(BadData, match=r"'wish' has 'open'.* other, strict"):
        users_of(wrong, head_of(wrong), Share(1, SHARES))
    (tables / "users.csv").write_text("who,wish\nsomebody else,open\n")
    with pytest.raises(BadValue, match="in none of the groups"):
        users_of(experiment, head, Share(1, SHARES))


# --- What is known of users -----------------------------------------------------------

PROFILED = """
[method]
name = "privrec"
people = { age = 3 }
items = ["kind"]
precision = "float64"
embedding = 2
widths = [3]
local_epochs = 1
[privacy]
mechanism = "central"
channel = "secure_sum"
noise_multiplier = 1.0
delta = 1e-6
[run]
seed = 5
rounds = 1
[evaluate]
metrics = ["ndcg@10"]
"""
AGES = """
[data.table.users]
path = "users.csv"
user = "who"
columns = ["age"]
"""
EACH_AGE = ("old", "young", "other")  # of all users of a share
DECLARED = AGES + "[data.table.users.labels]\nage = %s\n"


def aged(tables, place, labels='["young", "old", "other"]', method=PROFILED):
    """An experiment on a node whose users all have one age: the others are others'."""
    users = [f"user {i}" for i in range(N_USERS)]
    rows = [(one, EACH_AGE[share_of(one, parts=SHARES)]) for one in users]
    with (tables / "users.csv").open("w", newline="") as out:
        csv.writer(out).writerows([("who", "age"), *rows])
    kinds = [(f"item {i}", f"kind {i % 4}") for i in range(N_ITEMS)]
    with (tables / "items.csv").open("w", newline="") as out:
        csv.writer(out).writerows([("id", "kind"), *kinds])
    data = DATA % "csv" + 'columns = ["kind"]\n'
    data += DECLARED % labels if labels else AGES
    return written(tables, data=data, method=method, name=f"{place}.toml")


def test_labels_of_users_are_those_of_the_experiment_on_every_node(tables):
    """Each node has users of one age, and all know the same three."""
    experiment = aged(tables, "good")
    head = head_of(experiment)
    for part, age in enumerate(EACH_AGE):
        users = users_of(experiment, head, Share(part, SHARES)).dataset.profiles
        column = users.features["age"]
        assert [*column.labels] == ["old", "other", "young"]
        assert {column[row] for row in range(len(users))} == {age}
    federation = gather_over(
        experiment, prepared(experiment, tables), shares=SHARES
    ).simulation
    state, tally = federation.step(federation.start())
    assert len(tally.answered) == SHARES
    whole = assemble(experiment).simulation
    alone = replace(whole, numbers=key_numbers(whole.profiles.ids))
    expected, _ = alone.step(alone.start())
    for name, value in expected.server.weights.items():
        np.testing.assert_allclose(
            state.server.weights[name], value, rtol=1e-9, atol=1e-9
        )


def test_labels_that_nodes_would_take_from_their_users_are_refused(tables):
    """Before a node reads anything, and naming the setting."""
    with pytest.raises(Refused, match=r"'age'.*data\.table\.users\.labels"):
        head_of(aged(tables, "undeclared", labels=None))


def test_labels_that_do_not_fit_are_refused_before_any_round(tables):
    """A refusal in a round would depend on what a node's users have."""
    few = aged(tables, "few", labels='["young", "old"]')
    for refuse in (head_of, lambda one: prepare_node(one, Share(0, 3), tables / "few")):
        with pytest.raises(BadValue, match="'age' has 2 labels, 3 were agreed on"):
            refuse(few)
    other = aged(tables, "other", labels='["young", "old", "ancient"]')
    with pytest.raises(BadData, match="'age' has 'other'"):
        prepare_node(other, Share(2, SHARES), tables / "other")
    assert head_of(other).digest != head_of(aged(tables, "good")).digest
    turned = aged(tables, "turned", labels='["old", "other", "young"]')
    assert head_of(turned).digest == head_of(aged(tables, "good")).digest


def test_a_built_in_world_over_nodes_is_the_run_of_tacit_train(tmp_path):
    data = """
[data]
source = "synthetic"
world = { users = 60, items = 30, events_per_user = 8.0, rank = 3, seed = 1 }
validation = 5
test = 5
"""
    experiment = written(tmp_path, data=data)
    outcome = trained(experiment, tmp_path, tmp_path / "run")
    alone = assemble(experiment).simulation
    *_, (state, _) = alone.run(alone.start())
    for name, value in state.server.weights.items():
        np.testing.assert_allclose(
            outcome.state.server.weights[name], value, rtol=1e-9, atol=1e-9
        )


def test_the_files_of_a_run_say_what_nodes_did(tables):
    experiment = written(tables)
    out = tables / "run"
    trained(experiment, tables, out)
    lines = [*map(json.loads, (out / "metrics.jsonl").read_text().splitlines())]
    assert [len(line["nodes"]["answered"]) for line in lines] == [3, 3]
    card = read_document(out / "privacy-card.json")
    server = [line for line in card["totals"] if line["view"] == "server"]
    assert {line["standing"] for line in server} == {"NONE"}
    assert load(out).recommend(["item 1", "item 2"], n=3)
    assert SavedRun.at(out).result["simulation"]
    page = write_report(Finished.saved(SavedRun.at(out))).read_text()
    assert "without noise" in page
    with pytest.raises(BadRun, match="holds a run already"):
        trained(experiment, tables, out)


def test_a_release_tells_nothing_of_users(tables):
    method = METHOD.replace("seed = 5", 'purpose = "release"')
    experiment = written(tables, method=method)
    out = tables / "release"
    trained(experiment, tables, out)
    lines = [*map(json.loads, (out / "metrics.jsonl").read_text().splitlines())]
    assert all("simulation_only" not in line for line in lines)
    assert not read_document(out / "result.json")["simulation"]
    again = prepared(experiment, tables, run="second run")
    with pytest.raises(Refused, match=r"trained on 1 times.*allows 1"):
        [*again.ask(b"", round=0, most_bytes=0)]
    prepared(experiment, tables, run="second run", most_runs=2)
    [reply, *_] = again.ask(b"", round=0, most_bytes=0)
    assert reply.content is not None


def test_the_operator_of_a_node_reads_in_its_log_who_failed(tables, monkeypatch):
    """In a release nobody else is told; the log is readable by its owner alone."""
    method = METHOD.replace("seed = 5", 'purpose = "release"')
    experiment = written(tables, method=method)
    nodes = prepared(experiment, tables)

    def failing(*_):
        raise ArithmeticError("of one user")

    monkeypatch.setattr(Gram, "local_update", failing)
    federation = gather_over(experiment, nodes, shares=SHARES).simulation
    _, tally = federation.step(federation.start())
    assert len(tally.answered) == SHARES
    for folder in nodes.folders:
        log = folder / "node.log"
        assert "ArithmeticError: of one user" in log.read_text()
        assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_all_files_of_a_node_are_its_owners_alone(tables):
    """Also those in a folder that others could enter before."""
    folder = tables / "node"
    folder.mkdir(mode=0o755)
    prepare_node(written(tables), Share(0, SHARES), folder)
    for path in (folder, *folder.rglob("*")):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path


def test_a_store_that_is_gone_is_the_operators_to_decide(tables):
    """The one run that a release allows was begun, whatever is left of it."""
    method = METHOD.replace("seed = 5", 'purpose = "release"')
    experiment = written(tables, method=method)
    nodes = prepared(experiment, tables)
    [folder, *_] = nodes.folders
    federation = gather_over(experiment, nodes, shares=SHARES).simulation
    federation.step(federation.start())
    (folder / nodes.head / "store.db").unlink()
    with pytest.raises(Refused, match="is gone"):
        node_at(folder, "run", head=nodes.head)
    with pytest.raises(Refused, match=r"is gone.*--restored"):
        prepare_node(experiment, Share(0, SHARES), folder)
    prepare_node(experiment, Share(0, SHARES), folder, is_restored=True)
    with pytest.raises(Refused, match="is over on this node"):
        node_at(folder, "run", head=nodes.head)
    with pytest.raises(Refused, match=r"trained on 1 times.*allows 1"):
        node_at(folder, "another run", head=nodes.head)


def test_a_node_agrees_to_what_it_was_prepared_for(tables):
    experiment = written(tables)
    nodes = prepared(experiment, tables)
    [folder, *_] = nodes.folders
    with pytest.raises(Refused, match="agreed to no run with the head"):
        node_at(folder, "run", head="0" * 32)
    for path in ("../../etc", "", "A" * 32):
        with pytest.raises(Refused, match="no digest"):
            node_at(folder, "run", head=path)
    node = node_at(folder, "run", head=nodes.head)
    assert isinstance(node, Node)
    assert isinstance(node.simulation, Simulation)
    node.store.close()
    for column in (folder / nodes.head / "shard").glob("*.npy"):
        column.write_bytes(b"damaged")
    with pytest.raises(Damaged, match="prepare the node again"):
        node_at(folder, "run", head=nodes.head)
