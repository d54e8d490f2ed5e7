"""A statement as text, as rows and as a table."""

from dataclasses import replace

from tacit.api.statement import PrivacyStatement
from tacit.release import Adjacency, Standing, Unit, View
from tacit.statement import Statement

PROVEN = Statement(
    "everything",
    "server",
    "everyone",
    Unit.USER,
    Adjacency.ZERO_OUT,
    View.RELEASE,
    1e-6,
    "each round, 3 rounds planned",
    "RDP",
    Standing.PROVEN,
    "nothing",
    2.0,
    "Gaussian sums",
)
NONE = replace(
    PROVEN,
    view=View.COLLUSION,
    epsilon=None,
    standing=Standing.NONE,
    reason="it <sees> all",
)


def test_the_epsilon_is_that_of_the_published_model():
    assert PrivacyStatement((PROVEN, NONE)).epsilon == 2.0
    strict, open_ = replace(PROVEN, group="a"), replace(PROVEN, group="b", epsilon=8.0)
    assert PrivacyStatement((strict, open_)).epsilon == 8.0
    none = replace(NONE, view=View.RELEASE)
    assert PrivacyStatement((PROVEN, none)).epsilon is None
    assert PrivacyStatement(()).epsilon is None


def test_it_says_what_it_is_for():
    said = str(PrivacyStatement((PROVEN, NONE)))
    assert said.startswith("simulation: ")
    assert max(map(len, said.splitlines())) <= 79
    assert str(PrivacyStatement((PROVEN,), is_release=True)).startswith("release: ")


def test_rows_and_words_have_every_line():
    found = PrivacyStatement((PROVEN, NONE))
    assert [row["standing"] for row in found.rows()] == ["PROVEN", "NONE"]
    assert found.rows()[0]["view"] == "release"
    assert len(found.words) == 2


def test_a_notebook_shows_no_markup_of_others():
    shown = PrivacyStatement((PROVEN, NONE))._repr_html_()
    assert "epsilon 2.00" in shown
    assert "It &lt;sees&gt; all" in shown
