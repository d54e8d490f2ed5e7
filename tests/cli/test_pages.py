"""Every page that a command writes, looked at in Chromium: desk and phone, light, dark.

The second half shows pages that are wrong, each in one way, and that it is noticed.
Where there is no Chromium, or no playwright, these tests are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import page_checks
import pytest
from ledger.small import gaussian
from page_checks import FULLY, Looking
from reporting import small

from tacit.ledger.budget import Cap
from tacit.ledger.durable import ClientLedger
from tacit.reporting import charts, elements, html, leaks, tables
from tacit.reporting.report_data import Curve, Estimate

CHROMIUM = page_checks.chromium()
NEEDS = "playwright and axe-playwright-python, which the extra dev has"
pytest.importorskip("playwright.sync_api", reason=f"needs {NEEDS}")
pytest.importorskip("axe_playwright_python.sync_playwright", reason=f"needs {NEEDS}")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None,
    reason=f"needs a browser: {', '.join(page_checks.NAMES)} (apt install chromium)",
)

PRIVATE = """
[privacy]
mechanism = "central"
channel = "secure_sum"
target_epsilon = 4.0
delta = 1e-6
"""
LONG = "a_method_with_a_name_that_is_longer_than_others, everyone at epsilon 0.5"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    assert CHROMIUM is not None, "the mark above has skipped"
    with page_checks.started(CHROMIUM) as found:
        yield found


@pytest.fixture
def look(browser: Any, tmp_path: Path) -> Callable[..., list[str]]:
    """The problems of a page, which is a file or a text."""

    def call(page: Path | str, how: Looking = FULLY) -> list[str]:
        if isinstance(page, Path):
            return page_checks.problems(browser, page, how)
        file = tmp_path / "page.html"
        file.write_text(page)
        return page_checks.problems(browser, file, how)

    return call


@pytest.fixture
def glance(look: Callable[..., list[str]]) -> Callable[[str], list[str]]:
    """The same on a phone, light, without axe: enough to see one fault."""
    return lambda page: look(page, Looking((390,), ("light",), with_axe=False))


@pytest.fixture
def private(experiment: Path) -> Path:
    experiment.write_text(experiment.read_text() + PRIVATE)
    return experiment


# --- What commands write -------------------------------------------------------------


def test_report_and_card(tacit, private, tmp_path, look):
    run = tmp_path / "run"
    assert tacit("train", private, "--out", run).code == 0
    assert tacit("report", run, "--user", "user 3").code == 0
    page = (run / "report.html").read_text()
    assert "<h1>federated_popularity on table.csv" in page
    assert page.index("<dt>epsilon") < page.index("<dt>users who may take part")
    assert look(run / "report.html") == []
    assert look(run / "privacy-card.html") == []


def test_comparison(tacit, private, tmp_path, look):
    out = tmp_path / "comparison"
    call = ("compare", private, "--epsilons", "0.5,4,inf", "--seeds", "2", "--out", out)
    assert tacit(*call).code == 0
    page = (out / "comparison.html").read_text()
    assert "<h1>Comparison on table.csv" in page
    assert "95 % together" in page
    assert look(out / "comparison.html") == []


def test_ledger(tacit, tmp_path, look):
    file, page = tmp_path / "device.db", tmp_path / "ledger.html"
    with ClientLedger(file) as ledger:
        ledger.join("monday", gaussian(5.0), state=b"")
        for round_ in range(12):
            ledger.permits("monday", round_, asked=b"broadcast")
            ledger.keep("monday", round_, report=b"report", state=b"")
        ledger.set_cap(Cap(40.0))
    assert tacit("ledger", "show", file, "--html", page).code == 0
    assert look(page) == []


def test_leaks(look):
    """The attacks take a quarter of a minute; the page is made from a document."""
    assert look(leaks.render([small.finding()])) == []


def test_long_names_many_lines_and_hostile_text(look):
    """What no command of these tests happens to write, but data may hold."""
    report = small.report()
    rounds = tuple(range(1, 41))
    name = "ein_sehr_langes_wort_ohne_leerzeichen_" * 4
    long = replace(
        report,
        title=name,
        command=f"tacit train {name}",
        facts=((name, name),),
        curve=Curve(LONG, rounds, tuple(Estimate(r / 99, 0.02) for r in rounds)),
    )
    assert look(html.render(long), Looking(schemes=("light",))) == []


def test_lines_that_meet(look):
    series = {
        f"method {n}": [(e, 0.3, 0.01) for e in (0.1, 1.0, 8.0)] for n in range(6)
    }
    chart = charts.lines(series, x="epsilon", y=LONG, levels={LONG: 0.3, "random": 0.1})
    assert look(page(elements.figure(chart, "Lines in one place"))) == []


# --- The looking itself --------------------------------------------------------------


def page(body: str) -> str:
    """A page without the policy that forbids requests and scripts."""
    whole = elements.page("test", f"<h1>Test</h1>\n{body}")
    before, _, rest = whole.partition('<meta http-equiv="Content-Security-Policy"')
    return before + rest.partition(">\n")[2]


def bars() -> str:
    rows = [charts.Bar("a", Estimate(0.5)), charts.Bar("b", Estimate(0.2))]
    return elements.figure(charts.bars(rows), "Bars")


def line() -> str:
    chart = charts.lines({"a": [(1.0, 0.1, 0.0), (2.0, 0.2, 0.0)]}, x="x", y="y")
    return elements.figure(chart, "A line")


def styled(body: str, css: str) -> str:
    return page(body).replace("</style>", f"{css}</style>")


def test_a_page_without_faults_passes(look):
    assert look(page(bars())) == []


def test_a_table_that_overflows_is_noticed(look):
    row = tuple(f"0.1234{n}" * 3 for n in range(30))
    table = tables.Table("x", row, (row,), frozenset(range(30)))
    wide = elements.table(table).replace("records", "")
    found = look(page(wide), Looking(schemes=("light",), with_axe=False))
    for width in (1280, 390):
        start = f"{width} pixels, light: "
        assert any(x.startswith(f"{start}the page scrolls to ") for x in found)
        assert any(x.startswith(f"{start}off the screen: t") for x in found)


def test_what_scrolls_in_itself_is_noticed(glance):
    inner = '<div style="overflow-x:auto"><p style="width:900px">x</p></div>'
    assert '390 pixels, light: scrolls: div "x"' in glance(page(inner))


def test_requests_are_noticed(glance):
    found = glance(
        page(
            '<img src="https://example.org/x.png" alt="x">'
            '<link rel="stylesheet" href="https://example.org/x.css">'
            '<script>fetch("https://example.org/x").catch(() => 0)</script>'
        )
    )
    for name in ("x.png", "x.css", "x"):
        assert f"request: https://example.org/{name}" in found


def test_errors_and_messages_on_the_console_are_noticed(glance):
    found = glance(page('<script>console.error("oh"); throw "no"</script>'))
    assert "console: oh" in found
    assert "error: no" in found


def test_what_the_policy_forbids_is_noticed(glance):
    found = glance(elements.page("x", '<img src="https://example.org/x" alt="">'))
    assert any("Content Security Policy" in problem for problem in found)
    assert not any(problem.startswith("request") for problem in found)


def test_violations_of_axe_are_noticed_in_each_scheme(look):
    pale = "color: #ccc; background: #fff"
    body = f'<p id="p">hardly to be read</p><input type="text">{bars()}'
    media = f"@media (prefers-color-scheme: dark) {{ #p {{ {pale} }} }}"
    found = look(styled(body, media), Looking(widths=(390,)))
    assert any(x.startswith("390 pixels, light: axe: label") for x in found)
    assert any(x.startswith("390 pixels, dark: axe: color-contrast") for x in found)
    assert not any(x.startswith("390 pixels, light: axe: color") for x in found)


@pytest.mark.parametrize(
    ("css", "said"),
    [
        (".bars .bar { display: none }", "a bar is not seen: Bars"),
        (".bars .name { font-size: 9px }", "letters of 9 pixels: Bars"),
        (".bars .value { margin-left: -20rem }", '"a" and "0.5000" overprint'),
        (".bars { position: relative; left: 600px }", "off the screen: ul"),
        (".plot g path { stroke: none }", "a line is not seen: A line"),
        (".plot svg { height: 300% }", "a line leaves its chart: A line"),
    ],
)
def test_charts_that_cannot_be_read_are_noticed(glance, css, said):
    found = glance(styled(bars() + line(), css))
    assert any(problem.startswith(f"390 pixels, light: {said}") for problem in found)


def test_a_figure_without_a_chart_is_noticed(glance):
    assert glance(page(elements.figure("", "Empty"))) == [
        "390 pixels, light: nothing is drawn: Empty"
    ]
