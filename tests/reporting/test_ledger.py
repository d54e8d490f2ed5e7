import re
from dataclasses import replace

from ledger.small import bare, gaussian, training

from tacit.codes import Code
from tacit.ledger.budget import Cap
from tacit.ledger.records import Entry
from tacit.release import Unit, View
from tacit.reporting.ledger import (
    Told,
    caps_table,
    entries_table,
    refusals_table,
    render,
)
from tacit.reporting.tables import to_plain
from tacit.runtime.ledger import run_statements

HOSTILE = '<script>alert("x")</script>'
AT = "2026-05-04T03:02:01+00:00"


def told(terms, *, rounds=3, **more) -> Told:
    [release] = terms.releases
    entries = tuple(
        Entry(AT, HOSTILE, r, release.what, release, AT if r else None)
        for r in range(rounds)
    )
    totals = tuple(run_statements(terms, range(rounds), delta=1e-6))
    return Told(entries, totals, **more)


def test_a_lay_person_reads_odds_and_who_might_look():
    page = render(told(gaussian(20.0), waiting=1))
    assert "What left this device, and how much it says about me" in page
    assert "observer&#x27;s belief" in page
    assert "everyone who sees the model" in page
    assert "A very strong promise" in page
    assert "<dt>epsilon</dt><dd>0." in page
    assert "2026-05-04 03:02" in page
    assert page.count(">not yet known</td>") == 1
    assert "I have set no limit" in page
    for jargon in ("epsilon=", "Gaussian", "PLD", "zero_out"):
        assert jargon not in page


def test_no_promise_is_said_as_it_is():
    page = render(told(bare()))
    assert "no promise" in page
    assert "<p>Sent as they are.</p>" in page
    assert "none against the server: sent as they are" in page


def test_what_is_trusted_is_said():
    page = render(told(training(0.1, 4.0, 10)))
    trusted = str(Code("trusted_aggregator"))
    assert f"counted (assumes: {trusted})" in page
    assert f"Assumes: {trusted}." in page


def test_nothing_said():
    """No page and no table has a figure for it, and none calls it unknown."""
    made = Told((), told(bare(), rounds=0).totals, (Cap(1.0),))
    page = render(made)
    assert "Nothing has left this device." in page
    assert "so far: nothing yet." in page
    shown = to_plain(caps_table(made.caps, made.totals))
    assert shown.rstrip().endswith("nothing yet")
    for text in (page, shown):
        assert "no promise" not in text
        assert "0.00" not in text


def test_a_limit_stands_beside_what_is_spent():
    item = Cap(2.0, unit=Unit.ITEM, view=View.RELEASE)
    made = told(gaussian(20.0), caps=(Cap(1.0), item))
    page = render(made)
    assert "epsilon 1 (a strong promise: " in page
    assert "from 50 % to 75.1 %, and from 1 % to 3.0 %" in page
    assert "any single thing I did" in page
    shown = to_plain(caps_table(made.caps, made.totals))
    assert "user  server" in shown
    assert "0.3" in shown


def test_a_figure_that_rests_on_what_nobody_checks_says_so_beside_the_limit():
    terms = gaussian(20.0)
    word = Code("owners_word", ("a word",))
    terms = replace(terms, releases=tuple(r.assuming(word) for r in terms.releases))
    made = told(terms, caps=(Cap(1.0),))
    for text in (render(made), to_plain(caps_table(made.caps, made.totals))):
        assert f"ASSUMED: {word}" in " ".join(text.split())


def test_an_unprovable_total_has_no_figure_beside_the_limit():
    made = told(bare(), caps=(Cap(1.0),))
    assert "so far: no promise" in render(made)
    assert "none" in to_plain(caps_table(made.caps, made.totals))


def test_refusals_are_listed():
    made = told(gaussian(), refusals=((HOSTILE, HOSTILE, 7, AT),))
    assert "<td" in render(made)
    assert "What this client refused" in render(made)
    assert "7" in to_plain(refusals_table(made))


def test_what_came_from_outside_is_escaped():
    """The name of a release and who sees it come with the method."""
    terms = bare()
    [release] = terms.releases
    shouted = replace(release, what=HOSTILE, seen_by=HOSTILE)
    loud = replace(terms, releases=(shouted,))
    page = render(told(loud, refusals=((HOSTILE, HOSTILE, 7, AT),)))
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_experts_read_events():
    [release] = training(0.1, 4.0, 10).releases
    entry = Entry(AT, "a run of long name", 3, "x", release, None)
    shown = to_plain(entries_table([entry]))
    assert "10 × PoissonSampled 0.1 (Gaussian 4), the whole run" in shown
    assert "server: Gaussian 4; collusion: nothing" in shown
    assert "a run of lon " in shown
    [release] = gaussian().releases
    shown = to_plain(entries_table([Entry(AT, "run", 3, "x", release, None)]))
    assert "Gaussian 5 " in shown
    assert "collusion" not in shown


def test_the_page_has_the_name_of_the_file_and_folds_what_is_old():
    page = render(told(gaussian(20.0), rounds=12, name="device.db"))
    assert "<title>Ledger device.db – What left this device" in page
    assert "<summary>2 older ones</summary>" in page
    assert "older ones" not in render(told(gaussian(20.0), rounds=10))
    latest = page.index("The latest first")
    assert latest < page.index("The older ones") < page.index("not yet known")


def test_what_is_spent_of_a_limit_is_rounded_up():
    made = told(gaussian(20.0), caps=(Cap(1.0),))
    [said] = {line.epsilon for line in made.totals if line.unit is Unit.USER}
    found = re.search(r"so far: epsilon (\d+\.\d\d)\.<", render(made))
    assert found
    assert said <= float(found[1]) < said + 0.01
