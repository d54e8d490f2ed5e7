"""Figure 1 on a tiny world: what stands in it, and that every claim can fail."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.reproduction import papers, reproduce
from tacit.reproduction.fedvae import TABLES, figure
from tacit.reproduction.fedvae.figure import CENTRAL, LITERAL, PLAIN, Panel
from tacit.reproduction.fedvae.trials import Federated
from tacit.reproduction.page import render
from tacit.results import Evaluation, Groups

BOOSTED, LARGER = Federated(5.0), Federated(5.0, decay=1.0)


def test_it_is_listed():
    assert "fedvae" in papers()
    assert {"II", "1"} <= {*TABLES}


@pytest.mark.usefixtures("tiny", "small_network")
def test_the_figure_has_its_curves_its_charts_and_its_claims():
    found = reproduce("fedvae", table=1)
    ours, absent = found.tables
    labels = [row.label.removesuffix(", ndcg@100") for row in ours.rows]
    assert labels == [*map(str, (CENTRAL, PLAIN, BOOSTED, LARGER, LITERAL))]
    for row in ours.rows:
        assert row.published is None
        assert row.se
        assert {"recall@100", "largest drop", "popularity"} <= {*row.beside}
    assert len(absent.rows) == 5  # none of the paper's sets
    assert found.unexplained == ()
    assert len(found.charts) == 6  # two metrics; with decay, without, first weights
    assert [*found.charts[0].lines] == [*map(str, (CENTRAL, PLAIN, LARGER))]
    assert [*found.charts[1].lines] == [*map(str, (CENTRAL, PLAIN, BOOSTED))]
    assert [*found.charts[2].lines] == [*map(str, (CENTRAL, PLAIN, LITERAL))]
    assert len(found.claims) == 6
    assert "<svg" in render(found, "fedvae")


@pytest.fixture
def panel(tiny, monkeypatch):
    """A panel whose curves are given; ten people who all get the same."""

    def made(**given: list[float]) -> Panel:
        def drawn(means: list[float]):
            users, everyone = np.arange(10), Groups.everyone(10)
            return {
                epoch: Evaluation("p", users, {"ndcg@100": np.full(10, mean)}, everyone)
                for epoch, mean in enumerate(means, start=1)
            }

        curves = {
            CENTRAL: drawn(given.get("central", [0.1, 0.3, 0.4])),
            PLAIN: drawn(given.get("plain", [0.1, 0.2, 0.4])),
            BOOSTED: drawn(given.get("boosted", [0.2, 0.39, 0.41])),
            LARGER: drawn(given.get("larger", [0.3, 0.2, 0.3])),
        }
        monkeypatch.setattr(Panel, "curve", lambda self, who: curves[who])
        return Panel(tiny)

    return made


def verdicts(panel: Panel) -> list[bool]:
    return [claim.ok for claim in panel._claims()]


def test_claims_hold_where_the_curves_say_so(panel):
    reaches, faster, steadier, above, beats = panel()._claims()
    assert all(c.ok for c in (reaches, faster, steadier, above, beats))
    assert reaches.evidence.startswith("+0.0%; ndcg@100 +0.000, 95 % interval")
    assert faster.evidence == "2 epochs, FedVAE 3"
    assert steadier.evidence == ("at worst 0.100 below its best so far; with it 0.000")
    assert "+0.110" in above.evidence


def test_every_claim_can_fail(panel):
    assert verdicts(panel(central=[0.1, 0.2, 0.43])) == [False, *3 * [True], False]
    assert verdicts(panel(central=[0.1, 0.2, 0.42]))[0]  # at most 5 % below
    slow, late = [0.1, 0.2, 0.41], [0.1, 0.2, 0.3]
    assert verdicts(panel(boosted=slow))[1] is False
    assert verdicts(panel(boosted=late))[1] is False
    assert verdicts(panel(larger=[0.2, 0.3, 0.41]))[2:4] == [False, False]


def test_filmtrust_is_the_papers_exception(panel, monkeypatch):
    one = panel(central=[0.1, 0.2, 0.8])
    claim = figure._reached([one])
    assert (claim.ok, claim.evidence) == (False, "synthetic -50.0%")
    assert figure._reached([panel()]).ok
    monkeypatch.setattr(figure, "_NEVER_REACHED", "synthetic")
    assert not figure._reached([panel()]).ok  # nothing is left to ask
    assert figure._reached([]).evidence == "no data set is at hand"
