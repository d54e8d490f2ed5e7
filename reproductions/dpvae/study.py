"""DP-VAE (Fang, Du and Wu 2022): Tables 2, 5 to 11, Figure 3, what its numbers imply.

    sizes         Table 2
    betas         Equation 7: the best β of the VAE
    noise         what the paper's noise, clip and bound amount to; trains nothing
    benches       the data sets, and DP-VAE's cells on each
    contenders    the rivals of Tables 5 and 8
    construction  Table 5, RQ1
    priors        Table 6, RQ2
    clipping      Table 7, RQ3
    comparison    Tables 8 and 9 and Figure 3, RQ4
    budgets       Table 10, RQ5
    table_11      Table 11, RQ6: other models under the same strategy

MovieLens 20M and the Netflix Prize were not at hand: MovieLens 1M stands in for both,
with the settings that the paper has for each. Where an archive is at hand, a full run
makes Tables 2, 5 and 7 from it; the other tables need metadata of users, which neither
has. Claims begin with the research question
that they answer. How settings were chosen: docs/reproduction/dpvae.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from tacit.reproduction.cells import has_data
from tacit.reproduction.study import Scale, Study, Table

from .benches import Bench, as_published, of_the_paper, quick, smoke, word_file
from .betas import beta
from .budgets import table_10
from .clipping import table_7
from .comparison import figure_3, table_8, table_9
from .construction import table_5
from .noise import noise_table
from .priors import table_6
from .rows import LATER, NO_WORDS, table_not_run
from .sizes import table_2
from .table_11 import table_11

SMALL, LARGE = "ML-100K", ("ML-20M", "Netflix")
NEEDS_WORDS = ("6", "8", "9", "10", "figure-3")


def study(scale: Scale) -> Study:
    """Every table on the data sets that the paper has it for."""
    small, large = bench(SMALL, scale), [bench(name, scale) for name in LARGE]
    both = [small, *large]
    unlabelled = [at_hand(name, scale) or bench(name, scale) for name in LARGE]
    sources = dict.fromkeys(one.source for one in (*both, *unlabelled))
    here = {source for source in sources if scale == "smoke" or has_data(source)}
    made: dict[str, tuple[Callable[[Bench], Table], list[Bench]]] = {
        "5": (table_5, unlabelled),
        "6": (table_6, both),
        "7": (table_7, [small, *unlabelled]),
        "8": (table_8, [small]),
        "9": (table_9, large),
        "10": (table_10, [small]),
        "figure-3": (figure_3, both),
    }
    tables = {
        number: Table.joined(
            [
                or_not_run(number, make(one), one, lacks(number, one, scale, here))
                for one in on
            ]
        )
        for number, (make, on) in made.items()
    }
    tables["11"] = table_11(scale)  # knows by itself what it needs
    tables["beta"] = or_not_run(
        "beta", beta(small, scale), small, lacks("beta", small, scale, here)
    )
    counted = [small, *unlabelled] if scale != "smoke" else []
    sizes = table_2([one for one in counted if one.source in here])
    return Study("dpvae", {"noise": noise_table(), "2": sizes, **tables})


def at_hand(name: str, scale: Scale) -> Bench | None:
    """The paper's own data, for a full run and where the archive is at hand."""
    own = of_the_paper(name)
    return own if scale == "full" and has_data(own.source) else None


def bench(name: str, scale: Scale) -> Bench:
    """A data set at a scale."""
    if scale == "smoke":
        return smoke(name)
    words = word_file()
    is_quick = scale == "quick" and name != "Netflix"
    return quick(name, words) if is_quick else as_published(name, words)


def or_not_run(number: str, table: Table, on: Bench, reason: str) -> Table:
    """The table, or one row that says why it is not made here."""
    if not reason:
        return table
    parts = {"figure-3": "Figure 3", "beta": "Equation 7"}
    what = parts.get(number, f"Table {number}")
    name = f"{what} ({on.label}), not run"
    return Table(lambda _: table_not_run(name, on.name, reason))


def lacks(number: str, on: Bench, scale: Scale, here: Collection[str]) -> str:
    """Why a table cannot be made here, if it cannot."""
    if scale == "quick" and on.name == "Netflix":
        return LATER
    if number in NEEDS_WORDS and on.words is None:
        return NO_WORDS
    if on.source not in here:
        return f"{on.source} is not at hand; docs/data.md says where to get it"
    return ""
