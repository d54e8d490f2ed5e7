"""What README and site show is made by commands: pictures, figures, references, links.

The modules `documentation.charts`, `commands`, `drawing`, `figures`, `hooks`, `links`,
`outputs`, `page_tables` and `papers`; `page_runner` is tested by tests/test_docs.py.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest
import typer

from documentation import figures, hooks, links, outputs, papers
from documentation.commands import reference
from documentation.drawing import DARK, LIGHT
from documentation.page_runner import page_commands
from documentation.page_tables import NotOnPage, number, row
from tacit import reproduction
from tacit.baselines import BASELINES
from tacit.cli.app import app
from tacit.experiment.planning import WORTH_OF_ALL, worth_in_people
from tacit.methods import METHODS
from tacit.reproduction.study import find_studies, load_study

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
FOR_DEVELOPERS = {"bench", "dev", "docs"}
IN_PREPARATION = {"flower"}  # an extra that no module uses yet
NOT_PRINTED = {  # what studies show beyond their paper
    "adaptation",
    "beta",
    "bound",
    "cold-start",
    "frontier",
    "noise",
    "poisoning",
    "readings",
}
PICTURES = sorted((ROOT / "docs" / "figures").glob("*.svg"))
SETS = {
    "MovieLens 1M": "ml-1m",
    "MovieLens 100K": "ml-100k",
    "Steam": "steam",
    "Last.fm": "lastfm",
    "FilmTrust": "filmtrust",
    "citeulike-a": "citeulike-a",
}


# --- Papers ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", papers.papers())
def test_the_place_of_every_part_of_a_paper_is_there(name: str) -> None:
    paper, parts = papers.papers()[name]
    absent = [
        (part.part, place)
        for part in parts
        for place in part.at
        if not papers.is_there(place)
    ]
    assert absent == []
    assert all((ROOT / "docs" / page).is_file() for page in paper["pages"])
    assert 0 <= paper["quick"]["held"] <= paper["quick"]["claims"]


def test_a_name_that_moved_is_noticed() -> None:
    assert not papers.is_there("tacit.sampling:FixedSize.moved")
    assert not papers.is_there("reproductions/privrec/accuracy.py:moved")
    assert not papers.is_there("docs/moved.md")


def test_the_page_of_the_papers_is_made_from_the_data() -> None:
    text = papers.PAGE.read_text("utf-8")
    assert text == papers.page(), "run: python -m documentation.papers"


@pytest.mark.parametrize("name", reproduction.papers())
def test_every_printed_table_that_a_study_makes_is_a_part(name: str) -> None:
    _, parts = papers.papers()[name]
    named = " ".join(part.part for part in parts)
    printed = {*load_study(name, find_studies(), "smoke").tables} - NOT_PRINTED
    assert printed
    for table in printed:
        for one in re.findall(r"\d+(?:\.\d+)?|II", table):
            assert re.search(rf"\b{re.escape(one)}\b", named), f"{table} of {name}"


@pytest.mark.parametrize(
    "line",
    [
        {"part": "Table 1", "what": "x", "at": [], "state": "whole"},
        {"part": "Table 1", "what": "x", "at": ["docs/papers.md"], "state": "partly"},
        {"part": "Table 1", "what": "x", "at": ["docs/papers.md"], "state": "mostly"},
    ],
)
def test_a_part_without_place_reason_or_known_state_is_refused(line: dict) -> None:
    with pytest.raises(ValueError, match="Table 1"):
        papers.Part.read(line)


# --- Figures -------------------------------------------------------------------------


def test_the_pictures_are_what_the_command_draws() -> None:
    assert figures.stale() == [], "run: python -m documentation.figures"
    assert {*PICTURES} == {*figures.files()}


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_a_picture_is_whole_and_says_what_it_shows(picture: Path) -> None:
    root = ElementTree.parse(picture).getroot()
    space = {"svg": "http://www.w3.org/2000/svg"}
    title, said = root.find("svg:title", space), root.find("svg:desc", space)
    assert title is not None
    assert title.text
    assert said is not None
    assert said.text
    text = picture.read_text("utf-8")
    assert "prefers-color-scheme:dark" in text
    sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)"', text)]
    assert min(sizes) >= 10.5  # a phone shows its own form at its own size


@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
def test_text_stands_out_from_its_ground(colors: dict[str, str]) -> None:
    """WCAG 2.1 asks for a contrast of 4.5 for text of this size."""
    for ground in ("page", "fill", "good-fill", "warn-fill"):
        for ink in ("ink", "quiet"):
            assert contrast(colors[ink], colors[ground]) >= 4.5
    for ink in ("good", "warn", "third", "fourth", "fifth"):
        assert contrast(colors[ink], colors["page"]) >= 4.5


def contrast(one: str, other: str) -> float:
    bright, dim = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def _luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
    ]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_a_row_is_read_from_a_page() -> None:
    assert number(row("docs/methods/dpals.md", "epsilon", "DPALS")[0]) == 0.2743
    with pytest.raises(NotOnPage, match="has no row 'nobody'"):
        row("docs/methods/dpals.md", "epsilon", "nobody")
    with pytest.raises(NotOnPage, match="does not begin with a figure"):
        number("none")


def test_the_table_of_results_has_the_figures_of_the_methods_page() -> None:
    page = (ROOT / "docs" / "methods" / "gram.md").read_text("utf-8")
    for shown, name in SETS.items():
        size, *cells = row("README.md", "data", shown)
        found = {
            epsilon: [
                [cell.strip() for cell in line.split("|")[3:5]]
                for line in page.splitlines()
                if line.startswith(f"| {name} ({size}) | {epsilon} |")
            ]
            for epsilon in ("1", "4", "∞")
        }
        [[at_1, _]], [[at_4, floor]], [[bare, _]] = found.values()
        assert cells == [floor, at_1, at_4, bare], shown


def test_the_share_of_ease_follows_from_the_figures() -> None:
    ease = number(row(figures.GRAM, "without privacy, same split", "EASE")[0])
    at_4 = figures.frontier_figures()["Gram (ours)"][figures.EPSILONS.index(4.0)]
    assert f"keeps {at_4 / ease:.0%}".replace("%", " %") in README


def test_the_ledger_is_refused_at_the_cap() -> None:
    spent = figures.composed_epsilons()
    assert [e <= figures.CAP for e in spent] == [True, True, True, False]
    shown = row("docs/retraining.md", "runs at epsilon 1, delta 1e-6", _TOGETHER)
    assert shown == [f"{epsilon:.2f}" for epsilon in spent]


_TOGETHER = "together, for a user in all of them"


# --- What README says of the project -------------------------------------------------


def test_readme_names_the_command_of_continuous_integration() -> None:
    command = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()[-1]
    assert f"$ {command} " in README


def test_readme_lists_all_extras() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    known = {*project["optional-dependencies"]} - FOR_DEVELOPERS - IN_PREPARATION
    assert {*re.findall(r"pip install '\.\[(\w+)\]'", README)} == known


def test_readme_counts_methods_and_baselines() -> None:
    words = {13: "thirteen", 16: "sixteen"}
    said = f"{words[len(METHODS)]} methods, {words[len(BASELINES)]} baselines"
    assert said in README


def test_readme_and_start_have_twenty_commands() -> None:
    """tests/test_docs.py runs both pages, each command by a shell as it stands."""
    found = [
        command.script
        for name in ("README.md", "docs/start.md")
        for command in page_commands(ROOT / name)
    ]
    assert len({*found}) >= 20


# --- References ----------------------------------------------------------------------


def test_the_reference_has_every_command_and_option() -> None:
    text = reference()
    for path, command in _leaves("tacit", typer.main.get_command(app)):
        part = text.partition(f"## {path}\n")[2].partition("\n## ")[0]
        assert part, path
        for parameter in command.params:
            if isinstance(parameter, click.Option) and "--help" not in parameter.opts:
                assert parameter.opts[0] in part
    assert "<object" not in text


def _leaves(path: str, command: click.Command) -> list[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return [(path, command)]
    return [
        leaf
        for name, below in command.commands.items()
        for leaf in _leaves(f"{path} {name}", below)
    ]


def test_the_marker_becomes_the_reference() -> None:
    page = (ROOT / "docs" / "commands.md").read_text("utf-8")
    assert "## tacit demo" in hooks.on_page_markdown(page)
    assert hooks.on_page_markdown("# Another page") == "# Another page"


def test_an_output_that_changed_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = {"$ tacit a": "one\ntwo\n", "$ tacit b": "three\nfour\n"}
    monkeypatch.setattr(outputs, "run_tacit", lambda command, *_: printed[command.text])
    page = tmp_path / "page.md"
    page.write_text("```console\n$ tacit a\nold\n$ tacit b\nthree\n...\n```\n", "utf-8")
    text = outputs.refreshed(page, tmp_path)
    assert text == "```console\n$ tacit a\none\ntwo\n$ tacit b\nthree\n...\n```\n"


# --- Links ---------------------------------------------------------------------------


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="sub/b.html#here">x</a><a href="sub/b.html#gone">x</a>'
        '<a href="c.html">x</a><a href="https://example.org/x">x</a>'
        '<source srcset="a.svg, b.svg 2x"><img src="a.svg">'
    )
    (tmp_path / "sub" / "b.html").write_text('<h2 id="here"><a href="../#no">x</a>')
    (tmp_path / "a.svg").write_text("<svg/>")
    assert links.broken(tmp_path) == [
        "index.html: sub/b.html#gone",
        "index.html: c.html",
        "index.html: b.svg",
        "sub/b.html: ../#no",
    ]


def test_a_plan_says_of_people_what_the_page_has() -> None:
    for epsilon, people in WORTH_OF_ALL.items():
        cells = row(figures.BUDGETS, "5,034 people at epsilon", f"{epsilon:g}")
        assert cells[1] == people
        assert number(cells[0]) == figures._floor(epsilon, 1)
        assert f"at epsilon {epsilon:g} were as good as those of {people}" in (
            worth_in_people(epsilon)
        )
    bare = number(row(figures.BUDGETS, "people, no noise", "5,034")[0])
    assert f"| ∞ | {bare:.4f}".replace("0.", ".") in (ROOT / figures.GRAM).read_text()
