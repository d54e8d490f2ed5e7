"""When a compiled kernel pays: one table for every site that has to choose.

A kernel and its twin in numpy compute the same thing. Loading numba costs 0.3 s, once a
process, and calling a kernel a few microseconds, so small work stays with numpy:

    from tacit.kernels import dispatch

    if not dispatch.pays("one_bit.tally", flat.size):
        return _tally_plain(flat, dimension)
    from tacit.kernels.one_bit import tally  # loads numba

A choice must never tell who else is there. Where the twins round differently, a choice
by the amount of work would let the presence of one client change the last bits of what
all others say, before any noise (tests/methods/test_others_do_not_matter.py). So for
whatever can leave a client a row of the table has twins that agree to the bit, or a
size that follows from the model alone and not from the cohort. A row that breaks this
rule cannot be made.

`tests/kernels/test_dispatch.py` checks that every site asks this table and that every
row has a site.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Literal

Agreement = Literal["bits", "rounding", "law"]
"""bits: the twins give the same numbers; rounding: they differ in the last digits; law:
they draw different numbers of the same distribution."""


@dataclass(frozen=True)
class Twin:
    """From which size on a kernel is worth using, and what the size may depend on."""

    counts: str  # what the size counts
    smallest: int  # the size from which on loading numba and calling the kernel pays
    why: str  # how the smallest size was found
    loaded: int | None = None  # the same if numba is there already; None: no difference
    agrees: Agreement = "bits"
    is_public: bool = False  # the size follows from the model, whoever takes part
    is_reported: bool = True  # what is computed can be part of what a client says

    def __post_init__(self) -> None:
        is_told = self.is_reported and self.agrees != "bits"
        if is_told and (not self.is_public or self.loaded is not None):
            raise ValueError(
                f"twins over {self.counts} agree by {self.agrees} only and are part of "
                "reports: choose by a public size, and not by what is loaded"
            )

    def at(self, smallest: int) -> Twin:
        """The same kernel from another size on; tests run both twins on small work."""
        loaded = None if self.loaded is None else smallest
        return replace(self, smallest=smallest, loaded=loaded)


TABLE: dict[str, Twin] = {
    "philox.philox": Twin(
        "blocks of four words that this process asked for so far",
        400_000,
        "numpy needs 100 ms for them, numba 300 ms to load",
        loaded=0,
    ),
    "ragged.gather": Twin(
        "values to copy",
        5_000_000,
        "below, numpy needs less than loading numba; loaded: tens of microseconds",
        loaded=1_000,
    ),
    "ragged.firsts": Twin(
        "events",
        5_000_000,
        "below, numpy needs less than loading numba; loaded: a tenth of a millisecond",
        loaded=2_000,
    ),
    "one_bit.tally": Twin(
        "votes", 200_000, "below, numpy needs less than loading numba"
    ),
    "one_bit.bits": Twin(
        "draws", 200_000, "below, numpy needs less than loading numba"
    ),
    "one_bit.places": Twin(
        "draws", 200_000, "below, numpy needs less than loading numba"
    ),
    "topk.scan_rows": Twin("scores", 2**21, "below, numpy needs less than numba loads"),
    "ranking.count_ranks": Twin(
        "comparisons", 2**26, "below, numpy needs less than loading numba"
    ),
    "ranking.count_factor_ranks": Twin(
        "products of two numbers", 2**26, "below, numpy needs less than loading numba"
    ),
    "normal.add_normal": Twin(
        "draws, one per number of the model",
        2**19,
        "below, numpy needs less than 10 ms",
        agrees="law",
        is_public=True,
    ),
    "adam.adam": Twin(
        "weights of the model",
        2**18,
        "below, numpy needs a millisecond",
        agrees="rounding",
        is_public=True,
    ),
    "rows.weighted_rows": Twin(
        "weights of the first layer",
        2**18,
        "below, a dense product is as fast",
        agrees="rounding",
        is_public=True,
    ),
    "rows.outer_sum": Twin(
        "rows of a layer whose input is sparse",
        2**9,
        "below, a dense product is as fast",
        agrees="rounding",
        is_public=True,
    ),
    "rows.unit_rests": Twin(
        "items that are related or loaded",
        2**9,
        "below, numpy needs a millisecond for a thousand clients",
        agrees="rounding",
        is_public=True,
    ),
    "rows.add_touched": Twin(
        "numbers to add",
        500_000,
        "below, numpy needs less than loading numba; loaded: a millisecond",
        loaded=10_000,
    ),
    "rows.touched_squares": Twin(
        "numbers in the rows that one client has room for",
        2**8,
        "below, numpy needs less than a microsecond for a client",
        agrees="rounding",
        is_public=True,
    ),
    "squares.squared_rows": Twin(
        "numbers in one client's row",
        2**8,
        "below, numpy needs less than a microsecond for a row",
        agrees="rounding",
        is_public=True,
    ),
    "implicit_factors.spread": Twin(
        "items of the catalog",
        500,
        "below, numpy needs a few milliseconds for a chunk",
        agrees="rounding",
        is_public=True,
    ),
    "implicit_factors.solver": Twin(
        "users times items, for factors that rank and are never sent",
        200_000,
        "below, numpy needs a few milliseconds",
        agrees="rounding",
        is_reported=False,
    ),
    "matrix_factorization.shuffle": Twin(
        "examples",
        200_000,
        "below, numpy needs less than loading numba; loaded: a millisecond",
        loaded=1_000,
    ),
    "matrix_factorization.sgd": Twin(
        "numbers in the item matrix",
        2_000,
        "below, numpy needs a few milliseconds for a cohort",
        agrees="rounding",
        is_public=True,
    ),
    "feature_mlp.train": Twin(
        "examples, once a pass, of networks that rank and are never sent",
        5_000,
        "below, numpy needs a tenth of a second",
        agrees="rounding",
        is_reported=False,
    ),
}


def pays(kernel: str, size: int) -> bool:
    """Whether a kernel, named `module.function`, is worth using for work of this size.

    >>> pays("one_bit.tally", 10), pays("one_bit.tally", 10**6)
    (False, True)
    """
    twin = TABLE[kernel]
    if twin.loaded is not None and "numba" in sys.modules:
        return size >= twin.loaded
    return size >= twin.smallest
