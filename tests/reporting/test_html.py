from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from tacit.release import Standing, Unit
from tacit.reporting.html import SOME_PROVEN, render
from tacit.reporting.pairs import Paired
from tacit.reporting.plain_words import unchecked
from tacit.reporting.report_data import Contender, Estimate, Report, User

VOID = {"meta", "br", "path", "use"}


class Reader(HTMLParser):
    """Checks that elements nest, and notes what is there."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def test_the_page_nests_and_ids_are_unique(report: Report) -> None:
    reader = Reader(render(report))
    assert len(reader.ids) == len(set(reader.ids))


def test_text_from_outside_is_escaped(report: Report) -> None:
    page = render(report)
    assert "script" not in Reader(page).tags
    assert page.count("&lt;script&gt;") >= 10


def test_nothing_is_fetched(report: Report) -> None:
    page = render(report)
    addresses = set(re.findall(r"https?://[^\"'\s<)]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    for tag, attributes in Reader(page).attributes:
        assert tag not in {"link", "img", "iframe", "object"}
        assert "src" not in attributes
    assert "default-src 'none'" in page


def test_it_can_be_read_without_seeing_it(report: Report) -> None:
    reader = Reader(render(report))
    headings = [tag for tag in reader.tags if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == "h1"
    assert headings.count("h1") == 1
    assert reader.tags.count("figure") == reader.tags.count("figcaption") == 4
    assert reader.tags.count("svg") == 2  # the others are bars, which are text
    assert reader.tags.count("table") == reader.tags.count("caption")
    for tag, attributes in reader.attributes:
        if tag == "svg":
            assert attributes["aria-hidden"] == "true"  # its numbers are in a table
        if tag == "th":
            assert attributes["scope"] in {"row", "col"}


def test_a_simulation_says_so(report: Report) -> None:
    assert ">simulation<" in render(report)
    assert "simulation" not in render(replace(report, simulation=False))


def test_without_a_proof_the_page_says_no_guarantee(report: Report) -> None:
    assert "This run makes no promise." in render(report)


def test_one_proof_among_others_does_not_cover_them(report: Report) -> None:
    first, *others = report.statements
    proven = replace(first, standing=Standing.PROVEN, epsilon=2.0, delta=1e-6)
    page = render(replace(report, statements=(proven, *others)))
    assert SOME_PROVEN in page
    assert "epsilon 2.00" in page
    assert "2.0000 (zero_out, delta 1e-06" in page
    assert "Every promise below is proven" not in page


def test_what_nobody_checks_is_not_called_proven(report: Report) -> None:
    assumed = tuple(
        replace(
            one,
            standing=Standing.ASSUMED,
            epsilon=0.5,
            delta=0.0,
            assumes="the moon is full (no program checks this)",
        )
        for one in report.statements
    )
    page = render(replace(report, statements=assumed))
    assert unchecked(assumed) in page
    assert "<small>ASSUMED</small>" in page
    assert "the moon is full (no program checks this)" in page
    assert "Assumed against" in page or "Assumed; the largest" in page
    for claim in (
        "Proven",
        "below is proven",
        "a proven promise",
        '<li class="proven">',
    ):
        assert claim not in page


def test_where_no_release_could_follow_the_page_says_so(report: Report) -> None:
    page = render(replace(report, could_be_released=False))
    assert "No release could follow" in page
    assert "epsilon of a release" not in page


def test_the_epsilon_stands_first_with_whom_it_does_not_cover(report: Report) -> None:
    first, *others = report.statements
    proven = replace(first, standing=Standing.PROVEN, epsilon=2.001, delta=1e-6)
    page = render(replace(report, statements=(proven, *others), simulation=False))
    lead = page[page.index("<dl") : page.index("</dl>")]
    assert lead.index("<dt>epsilon</dt><dd>2.01</dd>") < lead.index("people")
    assert "everyone who sees the model" in lead
    assert "No promise against the server" in lead


def test_a_simulation_has_the_epsilon_of_a_release(report: Report) -> None:
    assert "<dt>epsilon of a release</dt><dd>none</dd>" in render(report)


def test_a_promise_about_items_alone_is_not_called_nothing(report: Report) -> None:
    said = tuple(
        replace(one, standing=Standing.PROVEN, epsilon=1.0, delta=0.0)
        if one.unit is Unit.ITEM
        else one
        for one in report.statements
    )
    page = render(replace(report, statements=said))
    assert "only for single items" in page
    assert "<dd>none</dd>" in page


def test_bars_are_sorted_and_labelled_with_epsilon(report: Report) -> None:
    lines = (
        Contender("gram, epsilon 1", {"HR": Estimate(0.2)}, epsilon=0.999),
        Contender("gram, no privacy", {"HR": Estimate(0.4)}),
        Contender("popularity", {"HR": Estimate(0.3)}),
    )
    page = render(replace(report, comparison=lines, groups=None))
    names = re.findall(r'<span class="name">(.*?)</span>', page)
    assert names == [
        "gram <small>no privacy</small>",
        "popularity <small>no promise</small>",
        "gram <small>ε 1.00</small>",
    ]


def test_each_pair_is_a_row_with_the_larger_mean_first(report: Report) -> None:
    ahead = Paired("gram", "random", "HR", 0.1, 0.05, 0.15, 0.01, 90, True)
    behind = Paired("gram", "ease", "HR", -0.02, -0.05, 0.01, 0.4, 90, False, 1843)
    page = render(replace(report, differences=(ahead, behind)))
    assert "0.0500 to 0.1500" in page
    assert "-0.0100 to 0.0500" in page  # ease minus gram: nowhere the other way round
    assert "-0.0500" not in page
    assert "no: 1,900 users would" in page


def test_a_list_has_reasons_and_the_history_is_folded(report: Report) -> None:
    user = User("ann", ("tea", "jam"), (("milk", 0.5), ("rye", 0.2)), (("tea",), ()))
    page = render(replace(report, user=user))
    assert "<bdi>milk</bdi> <small>because of <bdi>tea</bdi></small></li>" in page
    assert "<li><bdi>rye</bdi></li>" in page
    assert "<summary>What this user has: 2 items</summary>" in page


def test_empty_parts_are_left_out() -> None:
    page = render(Report("empty", "tacit report run", simulation=False))
    reader = Reader(page)
    assert reader.tags.count("section") == 1
    assert not {"table", "figure", "dl"} & set(reader.tags)


def test_the_same_report_gives_the_same_page(report: Report) -> None:
    assert render(report) == render(report)


def test_text_from_data_is_neither_markup_nor_obeyed():
    odd = "<script>x</script>\x1b[1m\u202eback \ud800 $1$ _"
    shown = "&lt;script&gt;x&lt;/script&gt;\\x1b[1m\\u202eback \\ud800 $1$ _"
    page = render(
        Report(
            odd,
            odd,
            simulation=True,
            facts=((odd, odd),),
            released=(odd,),
            comparison=(Contender(odd, {odd: Estimate(0.5)}, is_this_run=True),),
            groups={odd: {odd: {odd: Estimate(0.5)}}},
            user=User(odd, (odd,), ((odd, 1.0),)),
        )
    )
    page.encode()
    assert "<script" not in page
    assert not {"\x1b", "\u202e", "\ud800"} & set(page)
    assert f"<bdi>{shown}</bdi>" in page
    assert page.count(shown) >= 10


@pytest.mark.parametrize(("epsilon", "color"), [(8.0, "private"), (8.01, "open")])
def test_above_8_nothing_is_green(report: Report, epsilon: float, color: str) -> None:
    said = replace(
        report.statements[0], standing=Standing.PROVEN, epsilon=epsilon, delta=0.0
    )
    line = Contender("gram", {"HR": Estimate(0.5)}, epsilon=epsilon)
    page = render(Report("t", "c", False, statements=(said,), comparison=(line,)))
    assert f'<li class="{color}">' in page
    assert ('class="proven"' in page) == (epsilon <= 8)
