"""Experiments to parts: who is in the plan, and which items are in the catalog."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.accounting.calibration import gaussian_epsilon, gaussian_noise
from tacit.data.public_inputs import undeclared
from tacit.errors import BadValue, MissingExtra, Refused
from tacit.experiment import assemble as assembling
from tacit.experiment.assemble import assemble, data_read_once, public_groups
from tacit.experiment.privacy_card import draw_card
from tacit.experiment.settings import check_experiment
from tacit.experiment.training import refuse_past_target, refuse_unproven
from tacit.privacy import Unprotected
from tacit.release import Standing, Unit, View
from tacit.reporting import privacy_card

SIZES = {"F": 900, "M": 800, "X": 100}


def experiment(*, method="federated_popularity", **sections):
    data = {"source": "synthetic", "world": {"users": 300, "items": 60}}
    data["world"]["events_per_user"] = 8
    small = {"data": data, "method": {"name": method}}
    return check_experiment(
        {
            name: small.get(name, {}) | sections.get(name, {})
            for name in ("data", "method", "privacy", "run", "evaluate")
        }
    )


def end(made):
    *_, (state, _) = made.simulation.run(made.simulation.start())
    return state


def weights(made):
    return end(made).server.weights


PRIVATE = {
    **{"mechanism": "central", "channel": "secure_sum"},
    **{"delta": 1e-6, "noise_multiplier": 1.0},
}


@pytest.mark.parametrize("sampler", [{"name": "everyone"}, {"name": "once"}])
@pytest.mark.parametrize("privacy", [{}, PRIVATE])
def test_absent_users_count_in_the_mean_and_nowhere_else(sampler, privacy):
    """The same sum with the same noise, divided by another number of users."""
    run = {"sampler": sampler, "rounds": 2, "seed": 4}
    found = {}
    for n in (500, 1000):
        made = experiment(data={"population": n}, privacy=privacy, run=run)
        assembled = assemble(made)
        assert assembled.plan.population == n
        assert assembled.simulation.absent == n - len(assembled.split.users)
        found[n] = weights(assembled)["share"]
    np.testing.assert_allclose(found[500], 2 * found[1000], rtol=1e-12)


def test_counted_and_declared_alike_the_run_is_the_same():
    counted = assemble(experiment(privacy=PRIVATE))
    n = counted.plan.population
    assert n < 300  # some are held out, and they count as absent if N is declared
    declared = assemble(experiment(data={"population": 300}, privacy=PRIVATE))
    assert declared.simulation.absent == 300 - n
    np.testing.assert_allclose(
        weights(counted)["share"], weights(declared)["share"] * 300 / n
    )


def test_each_asks_for_itself_whoever_is_absent():
    """Under Poisson sampling the same users are drawn at the same rate."""
    run = {"sampler": {"name": "poisson", "rate": 0.3}, "rounds": 3, "seed": 2}
    taken = []
    for population in (400, 4000):
        made = assemble(experiment(data={"population": population}, run=run))
        taken.append(end(made).taken.tolist())
    assert taken[0] == taken[1]


def test_data_are_read_once_for_all_seeds_and_again_for_other_settings():
    first, other = experiment(run={"seed": 0}), experiment(run={"seed": 1})
    filtered = experiment(data={"min_interactions": 3})
    with data_read_once():
        made = assemble(first)
        again = assemble(other)
        assert again.dataset is made.dataset
        assert not np.array_equal(again.split.users, made.split.users)
        assert assemble(filtered).dataset is not made.dataset
    assert assemble(first).dataset is not made.dataset
    np.testing.assert_array_equal(assemble(other).split.users, again.split.users)


def test_fewer_than_there_are_cannot_be_declared():
    with pytest.raises(BadValue, match="declares 299 users, and the data have 300"):
        assemble(experiment(data={"population": 299}))


def test_a_cohort_of_fixed_size_needs_everybody():
    run = {"sampler": {"name": "fixed_size", "size": 10}}
    with pytest.raises(BadValue, match="more often than the account says"):
        assemble(experiment(data={"population": 400}, run=run))


def test_groups_are_declared_one_by_one():
    data, privacy = {"population": SIZES}, {"groups": "gender"}
    made = assemble(experiment(data=data, privacy=privacy))
    assert dict(made.plan.groups) == SIZES
    turned = {"population": dict(reversed(SIZES.items()))}
    other = assemble(experiment(data=turned, privacy=privacy))
    assert [*other.plan.groups] == ["X", "M", "F"]
    codes, mirrored = made.simulation.groups, other.simulation.groups
    assert (codes + mirrored == 2).all()
    column = made.split.profiles.features["gender"]
    assert column[int(made.split.users[0])] == [*SIZES][codes[0]]


@pytest.mark.parametrize(
    ("population", "groups", "problem"),
    [
        (500, "gender", "do not go together"),
        (SIZES, None, "do not go together"),
        ({"F": 500, "X": 1}, "gender", "says nothing of the group 'M'"),
        ({"F": 2, "M": 900, "X": 1}, "gender", "the plan says 903"),
    ],
)
def test_groups_and_population_must_fit(population, groups, problem):
    privacy = {} if groups is None else {"groups": groups}
    with pytest.raises(BadValue, match=problem):
        assemble(experiment(data={"population": population}, privacy=privacy))


CHOICES = {"strict": 54, "balanced": 37, "open": 9}
EACH = {"strict": 1.0, "balanced": 4.0, "open": 8.0}
BUDGETS = {
    **{"mechanism": "central", "channel": "secure_sum", "delta": 1e-6},
    **{"groups": CHOICES, "target_epsilon": EACH},
}


def test_groups_at_random_are_a_draw_of_the_split():
    """The same in every draw of the noise, and everybody has one, held out or not."""
    first = experiment(privacy=BUDGETS, data={"seed": 3})
    made = assemble(first)
    again = assemble(experiment(privacy=BUDGETS, data={"seed": 3}, run={"seed": 9}))
    other = assemble(experiment(privacy=BUDGETS, data={"seed": 4}))
    everyone = public_groups(first, made.split)
    assert len(everyone) == 300
    assert [*everyone.labels] == [*made.plan.groups] == [*CHOICES]
    codes = made.simulation.groups
    assert (codes == everyone.codes[made.split.users]).all()
    assert (codes == again.simulation.groups).all()
    assert (
        len(codes) != len(other.simulation.groups)
        or (codes != other.simulation.groups).any()
    )
    # 240 coins: four deviations of the largest share are 0.13.
    shares = np.bincount(codes) / len(codes)
    np.testing.assert_allclose(shares, [0.54, 0.37, 0.09], atol=0.13)


@pytest.mark.parametrize("groups", [CHOICES, "gender"], ids=["chosen", "public"])
def test_no_group_follows_from_events(groups):
    """Everybody gets another history, long or short, and stays where they were."""
    made = experiment(privacy=BUDGETS | {"groups": groups, "target_epsilon": 1.0})
    split = assemble(made).split
    turned = replace(split, train=split.train.take(np.argsort(split.train.lengths)))
    found, again = (public_groups(made, one) for one in (split, turned))
    assert (found.codes == again.codes).all()
    assert len({*found.codes.tolist()}) > 1


def test_budgets_of_groups_are_worth_one_for_all():
    """By hand: mu of epsilon 1, 4 and 8 at delta 1e-6, weighted by users."""
    made = assemble(experiment(privacy=BUDGETS))
    mu = {group: 1 / gaussian_noise(e, delta=1e-6) for group, e in EACH.items()}
    sizes = made.plan.groups
    mean = sum(n * mu[group] for group, n in sizes.items()) / made.plan.population
    worth = gaussian_epsilon(1 / mean, delta=1e-6)
    assert made.as_one_epsilon == pytest.approx(worth, rel=1e-6)
    assert 2 < worth < 3.5
    scale = made.method.privacy.scale
    assert scale == pytest.approx({g: mu[g] / mu["open"] for g in mu}, rel=1e-6)


def test_one_budget_for_all_is_told_as_such():
    one = PRIVATE | {"groups": CHOICES}
    assert assemble(experiment(privacy=one)).as_one_epsilon is None
    assert assemble(experiment(privacy=PRIVATE)).as_one_epsilon is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "least"), [("federated_popularity", 0.98), ("gram", 0.0)]
)
def test_budgets_by_sampling_meet_every_target(method, least):
    """Gram's phases get their shares after the rates are found, and may stay below."""
    sampler = {"name": "poisson", "rate": 0.5}
    run = {"rounds": 3, "sampler": sampler}
    privacy = BUDGETS | {"budgets": "sample"}
    made = assemble(experiment(method=method, privacy=privacy, run=run))
    found = {
        line.group: line.epsilon
        for line in made.simulation.account.totals
        if (line.unit, line.view) == ("user", "release")
    }
    for group, target in EACH.items():
        assert least * target < found[group] <= target * (1 + 1e-6)


# Items


def shop(tmp_path, **csv):
    """Everyone has apples and pears; one user has a letter; nobody has plums."""
    lines = [f"p{n},{item}" for n in range(40) for item in ("apple", "pear", "fig")]
    (tmp_path / "events.csv").write_text(
        "\n".join(["who,what", *lines, "p0,letter 4711"]) + "\n"
    )
    (tmp_path / "items.csv").write_text("id,kind\nplum,a\npear,b\nfig,a\napple,b\n")
    table = {"path": "events.csv", "user": "who", "item": "what", **csv}
    data = {"source": "table", "table": table, "validation": 5, "test": 5}
    return check_experiment(
        {"data": data, "method": {"name": "federated_popularity"}},
        relative_to=tmp_path,
    )


def test_a_catalog_from_events_names_what_one_user_has(tmp_path):
    assert "letter 4711" in list(assemble(shop(tmp_path)).split.catalog.ids)


def test_where_no_release_could_follow_it_is_known_beforehand(tmp_path):
    """Items from events, a filter over users, or a protection that is a paper's own."""
    assert assemble(experiment()).could_be_released
    assert not assemble(experiment(data={"min_users": 2})).could_be_released
    votes = {
        "data": {"source": "synthetic"},
        "method": {"name": "fmf_ldp", "mode": "paper"},
        "privacy": {"mechanism": "published", "epsilon": 1.0, "votes": 3},
    }
    assert assemble(check_experiment(votes)).could_be_released  # whole numbers
    noisy = {
        "data": {"source": "synthetic"},
        "method": {"name": "privrec", "mode": "paper"},
        "privacy": {"mechanism": "published"},
    }
    assert not assemble(check_experiment(noisy)).could_be_released
    assert not assemble(shop(tmp_path)).could_be_released


def test_an_items_table_is_the_catalog_of_the_model(tmp_path):
    items = {"path": "items.csv", "item": "id", "columns": ["kind"]}
    made = assemble(shop(tmp_path, items=items))
    assert list(made.split.catalog.ids) == ["plum", "pear", "fig", "apple"]
    assert made.split.catalog.ids == made.dataset.listed.ids
    assert len(weights(made)["share"]) == 4


def test_declared_items_are_asked_for_where_a_source_lists_them():
    world = {"users": 20, "items": 400, "events_per_user": 5}
    for items, n in (("all", None), ("declared", 400)):
        made = assemble(experiment(data={"world": world, "items": items}))
        found = len(made.split.catalog)
        assert found == n if n else found < 400


def test_nobody_is_held_out_of_a_split_without_held_out_users():
    made = assemble(experiment(data={"split": "none", "min_interactions": 1}))
    assert len(made.split.users) == 300
    assert made.split.train.log.n_users == 300
    assert len(made.split.train.items) == len(made.dataset.interactions)
    assert len(made.split.test.users) == len(made.split.validation.users) == 0


def selecting(tmp_path, **changes):
    lines = [f"p{n},item {i}" for n in range(400) for i in (n % 7, 7 + n % 5, 12)]
    letter = "p0,letter 4711"
    text = "\n".join(["who,what", letter, *lines, *[f"q,odd {n}" for n in range(9)]])
    (tmp_path / "events.csv").write_text(text + "\n")
    selection = {"most": 4, "noise_multiplier": 3.0, "failure": 1e-7}
    data = {
        **{"source": "table", "table": {"path": "events.csv"}, "split": "none"},
        **{"population": 1000, "selection": selection | changes},
    }
    data["table"] |= {"user": "who", "item": "what"}
    privacy = {"mechanism": "central", "channel": "secure_sum", "delta": 1e-6}
    table = {
        "data": data,
        "method": {"name": "federated_popularity"},
        "privacy": privacy | {"target_epsilon": 4.0},
    }
    return check_experiment(table, relative_to=tmp_path)


def test_selected_items_are_the_catalog_and_stand_in_the_account(tmp_path):
    made = assemble(selecting(tmp_path))
    ids = list(made.split.catalog.ids)
    assert ids == sorted(f"item {i}" for i in range(13))  # and nobody's own
    [line] = [
        s
        for s in made.simulation.account.totals
        if (s.unit, s.view) == ("user", "release")
    ]
    assert 3.9 < line.epsilon <= 4.0
    told = made.simulation.account.releases
    assert {s.what for s in told} > {"set of items"}
    population = made.plan.population
    assert undeclared(made.dataset, made.split, population=population) == []
    assert check_experiment(made.experiment.resolved()).digest == (
        made.experiment.digest
    )


def test_a_threshold_that_nothing_reaches_is_said(tmp_path):
    with pytest.raises(Refused, match="no item passes the threshold of 491"):
        assemble(selecting(tmp_path, noise_multiplier=90.0))


def test_a_source_with_a_list_has_nothing_to_select():
    selection = {"most": 4, "noise_multiplier": 3.0, "failure": 1e-7}
    with pytest.raises(BadValue, match="has a list of items"):
        assemble(experiment(data={"selection": selection}))


def test_a_relay_may_wait_for_everybody_whom_the_plan_speaks_of():
    waiting = {"min_contributors": "all"}
    assert assemble(experiment(privacy=waiting)).plan.min_contributors == 240
    declared = experiment(privacy=waiting, data={"population": 500})
    assert assemble(declared).plan.min_contributors == 500


def test_items_that_few_have_are_dropped_before_users():
    kept = assemble(experiment(data={"min_users": 40, "min_interactions": 3})).dataset
    log = experiment().world.load().interactions.distinct()
    common = log.per_item >= 40
    assert 0 < common.sum() < log.n_items
    assert len(kept.catalog) == common.sum()
    left = log.keep(common[log.items])
    assert len(kept.profiles) == (left.per_user >= 3).sum()


@pytest.mark.parametrize(
    "choice",
    [
        {"min_users": 2},
        {"subset": {"users": 50}},
        {"construction": {"least": 0.0}},
    ],
)
def test_a_release_chooses_nobody_by_what_others_did(choice):
    run = {"purpose": "release", "sampler": {"name": "once"}}
    data = {"population": 300, **choice}
    made = experiment(data=data, privacy=PRIVATE, run=run)
    with pytest.raises(Refused, match=f"data.{next(iter(choice))}"):
        assemble(made)


class FirstLetters:
    """A stand-in for a sentence encoder: what a text begins with, as two numbers."""

    digest = "first letters"

    def encode(self, texts, *, progress=None):
        if progress is not None:
            progress(len(texts), len(texts))
        return np.array([[ord(t[0]), ord(t[1])] for t in texts], np.float32)


def test_titles_become_vectors_that_a_method_can_name(monkeypatch, tmp_path):
    monkeypatch.setenv("TACIT_CACHE", str(tmp_path))
    monkeypatch.setattr(assembling, "MiniLm", FirstLetters)
    made = check_experiment(
        {
            "data": {**experiment().resolved()["data"], "text_vectors": ["title"]},
            "method": {"name": "gram", "content": ["title_vector"]},
            "run": {"rounds": 2},
        }
    )
    told = []
    assembled = assemble(made, progress=lambda *counts: told.append(counts))
    catalog = assembled.split.catalog
    titles = [*catalog.titles]
    expected = FirstLetters().encode(titles)
    assert np.array_equal(catalog.features["title_vector"].values, expected)
    assert told
    assert assembled.method.content == ("title_vector",)
    assert end(assembled).server.weights["labels"].shape == (len(catalog), 2)
    told.clear()
    assemble(made, progress=lambda *counts: told.append(counts))
    assert not told  # they were in the cache


def test_vectors_of_declared_titles_may_be_released(monkeypatch, tmp_path):
    monkeypatch.setenv("TACIT_CACHE", str(tmp_path))
    monkeypatch.setattr(assembling, "MiniLm", FirstLetters)
    run = {"purpose": "release", "sampler": {"name": "once"}}
    data = {"population": 300, "text_vectors": ["title"], "min_interactions": 1}
    assembled = assemble(experiment(data=data, privacy=PRIVATE, run=run))
    assert "title_vector" in assembled.split.catalog.features


def test_a_missing_encoder_is_asked_for_before_any_data(monkeypatch):
    def missing():
        raise MissingExtra("tokenizers", "text")

    def loaded(*_, **__):
        pytest.fail("the data were read first")

    monkeypatch.setattr(assembling, "MiniLm", missing)
    monkeypatch.setattr(assembling, "load_dataset", loaded)
    made = experiment(data={"text_vectors": ["title"]})
    with pytest.raises(MissingExtra, match="tacit-recommender"):
        assemble(made)


# --- A group that accepts that nothing is promised to it ------------------------------

CONSENT = {
    **{"mechanism": "central", "channel": "secure_sum", "delta": 1e-6},
    "groups": {"others": 90, "few": 10},
    "target_epsilon": {"others": 1.0, "few": "none"},
}


def test_a_consenting_group_is_told_in_plan_and_card_and_the_others_keep_theirs():
    made = assemble(experiment(privacy=CONSENT))
    lines = {
        one.group: one
        for one in made.simulation.account.totals
        if (one.unit, one.view) == (Unit.USER, View.RELEASE)
    }
    assert lines["others"].epsilon == pytest.approx(1.0)
    assert lines["others"].standing is Standing.PROVEN
    assert lines["few"].standing is Standing.NONE
    weight = made.consent_weight
    assert weight == pytest.approx(1 / made.method.privacy.scale["others"])
    assert made.as_one_epsilon is None  # no epsilon stands for a sum of both
    card = draw_card(made)
    assert card["budget"]["target_epsilon"] == {"others": 1.0, "few": None}
    page = " ".join(privacy_card._budget({**card, "rounds_begun": 0}).split())
    assert "no promise for &#x27;few&#x27;" in page, page
    assert f"whose reports weigh {weight:.3g} times those of the others" in page
    refuse_past_target(made)
    refuse_unproven(made)  # the others have their proof, and the few want none


def test_a_run_that_proves_nothing_to_the_others_is_refused_all_the_same():
    made = assemble(experiment(privacy={**CONSENT, "channel": "two_servers"}))
    simulation = replace(made.simulation, one_operator="one_machine")
    alone = replace(made, simulation=simulation)
    told = {
        (one.group, one.view): one.standing
        for one in simulation.account.totals
        if one.unit is Unit.USER
    }
    assert told["others", View.SERVER] is Standing.NONE
    assert told["others", View.RELEASE] is Standing.PROVEN
    refuse_unproven(alone)
    made = assemble(experiment(privacy=CONSENT))
    method = replace(made.method, privacy=Unprotected())
    bare = replace(made, simulation=replace(made.simulation, method=method))
    with pytest.raises(Refused, match="what the model tells of"):
        refuse_unproven(bare)


def test_only_the_groups_that_are_asked_train():
    asked = {"groups": CONSENT["groups"], "asks": ["few"]}
    few, everyone = (assemble(experiment(privacy=own)) for own in (asked, CONSENT))
    codes = everyone.simulation.groups
    assert few.split.users.tolist() == everyone.split.users[codes == 1].tolist()
    assert few.plan.groups == {"few": len(few.split.users)}
    assert few.split.test.users.tolist() == everyone.split.test.users.tolist()
    with pytest.raises(BadValue, match="asks"):
        experiment(privacy={**asked, "asks": ["fews"]})
    with pytest.raises(BadValue, match="asks"):
        experiment(privacy={"asks": ["few"]})
    with pytest.raises(Refused, match="holds users out"):
        assemble(experiment(privacy=asked, data={"split": "leave-latest-out"}))


def test_no_rate_of_being_asked_follows_from_no_target():
    sampled = experiment(
        privacy={**CONSENT, "budgets": "sample"},
        run={"sampler": {"name": "poisson", "rate": 0.5}},
    )
    with pytest.raises(BadValue, match="budgets = 'scale'"):
        assemble(sampled)


TIMED = {
    "leave-latest-out": {},
    "leave-last-visit-out": {"visit_gap": 0.01},
    "new-users": {"targets": "latest"},
}


@pytest.mark.parametrize("split", TIMED)
def test_a_file_divides_by_time(split):
    table = {
        "data": {"source": "synthetic", "split": split, **TIMED[split]},
        "method": {"name": "federated_popularity"},
    }
    divided = assemble(check_experiment(table)).split
    history, targets = divided.test.history, divided.test.targets
    last = history.times[history.offsets[1:] - 1]
    assert (last <= targets.times[targets.offsets[:-1]]).all()


def test_a_global_cut_is_at_the_moments_of_the_file():
    moments = {"validation_from": "2023-06-01", "test_from": "2023-09-01"}
    data = {"source": "synthetic", "split": "global-cut", **moments}
    table = {"data": data, "method": {"name": "federated_popularity"}}
    divided = assemble(check_experiment(table)).split
    assert divided.train.times.max() < np.datetime64("2023-06-01", "s").astype(int)
    assert divided.test.targets.times.min() >= np.datetime64("2023-09-01", "s").astype(
        int
    )
