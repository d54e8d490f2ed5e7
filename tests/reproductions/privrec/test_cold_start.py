"""Cold start: what the tables make of what contenders were told."""

from __future__ import annotations

import numpy as np
import pytest
from tacit_study_privrec.cold_start import shown
from tacit_study_privrec.contenders import Bench
from tacit_study_privrec.telling import (
    CHANCE,
    NOT_ADAPTED,
    OF_ITEMS,
    OF_USERS,
    ONE_FEATURE,
    TOLD,
    Told,
)

from tacit.reproduction.cells import Found
from tacit.reproduction.page import render
from tacit.results import Evaluation, Groups


def judged(level: float, n: int = 20) -> Found:
    def evaluation(protocol, names):
        values = {name: level + np.linspace(-0.01, 0.01, n) for name in names}
        groups = Groups(("few", "some", "many"), np.arange(n) % 2)
        return Evaluation(protocol, np.arange(n), values, groups)

    alone = [f"{kind}_each@10" for kind in ("hr", "ndcg")]
    return Found((evaluation("alone", alone),), (evaluation("full", ["ndcg@10"]),))


BY_CHANCE = {"hr_each@10": 0.05}


def invented(name: str) -> Told:
    """PrivRec learns from what it is told, others have one level each."""
    levels = {"popularity": 0.31, ONE_FEATURE: 0.6, CHANCE: 0.1}
    gain = 0.01 if name == "PrivRec" else 0.0
    few = {n: judged(levels.get(name, 0.3) + gain * n) for n in TOLD}
    return Told(few, judged(0.5, 30))


@pytest.fixture(scope="module")
def found():
    parts = ({who: invented(who) for who in names} for names in (OF_USERS, OF_ITEMS))
    return shown(Bench("ml1m", "full"), *parts, (BY_CHANCE, BY_CHANCE))


def test_claims_follow_the_users(found):
    on_items = "movielens-1m: on unseen items PrivRec, told 20, is above"
    assert {claim.text: claim.ok for claim in found.claims} == {
        "movielens-1m: PrivRec, told 5, is above popularity, told 5": True,
        "movielens-1m: PrivRec, told 0, is above FCF, told 0": False,
        "movielens-1m: PrivRec, told 1, is above FCF, told 1": True,
        "movielens-1m: PrivRec, told 20, is above itself, told 0": True,
        f"{on_items} {CHANCE}": True,
        f"{on_items} FCF": True,
        f"{on_items} {ONE_FEATURE}": False,
    }
    assert "Hits@10 +0.040" in found.claims[0].evidence


def test_who_does_not_listen_is_a_line_across(found):
    strangers, _, items = found.charts
    assert [*strangers.lines] == [*items.lines] == ["PrivRec"]
    assert [*items.levels] == [NOT_ADAPTED, ONE_FEATURE, "FCF", CHANCE]
    assert strangers.lines["PrivRec"].y[3] == pytest.approx(0.35)
    assert items.levels[CHANCE] == pytest.approx(0.1)
    labels = [row.label for row in found.tables[0].rows]
    assert len(labels) == len(TOLD) + len(OF_USERS) - 1
    assert "popularity, any number told" in labels
    assert len(found.tables[2].rows) == len(TOLD) + len(OF_ITEMS) - 1
    assert found.tables[0].name.endswith("20 of 30")


def test_groups_without_users_are_left_out(found):
    rows = found.tables[1].rows
    assert [row.label for row in rows[:2]] == ["PrivRec, few", "PrivRec, some"]
    assert len(rows) == 2 * len(OF_USERS)
    whole = invented("PrivRec").whole.evaluations[0]
    mean = whole.by_group()["some"]["hr_each@10"].mean
    assert rows[1].sound == pytest.approx(mean)
    assert rows[0].sound != pytest.approx(mean)


@pytest.mark.slow
def test_the_whole_table_is_made_and_shown(reproduced):
    made = reproduced("cold-start")
    assert len(made.tables) == len(made.charts) == 6  # three of each data set
    assert len(made.claims) == 14
    assert "<svg" in render(made, "privrec")
    for table in (made.tables[2], made.tables[5]):
        chance = next(r for r in table.rows if CHANCE in r.label)
        assert chance.label.endswith("any number told")
