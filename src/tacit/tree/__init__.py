"""Array trees: what a cohort of clients computed, one leaf per named array.

    Tree            named leaves of the same clients
    Dense           a leaf whose arrays are written out
    Factored        a leaf that is a short sum of outer products
    SparseFactored  an outer product whose left side is not written out
    Symmetric       half of a short sum of squares
    TouchedRows     a leaf of which each client has a few rows
    Grouped         another leaf, placed into one of several groups

Axis 0 is the client. Norms, scaling, sums and inner products come from what is stored:
the array of a client whose leaf is factored is never written down. The server's own
values have no client axis and are plain mappings, `Arrays`. Before: nothing. After:
mechanisms clip trees, transport adds them up.
"""

from __future__ import annotations

from tacit.tree.dense import Dense
from tacit.tree.factored import Factored
from tacit.tree.grouped import Grouped, Leaf
from tacit.tree.sparse_factored import SparseFactored, SparseRests
from tacit.tree.stored import Array, Arrays
from tacit.tree.symmetric import Symmetric, halved, mirrored
from tacit.tree.touched_rows import TouchedRows
from tacit.tree.tree import Tree, add, check_names, divided

__all__ = [
    "Array",
    "Arrays",
    "Dense",
    "Factored",
    "Grouped",
    "Leaf",
    "SparseFactored",
    "SparseRests",
    "Symmetric",
    "TouchedRows",
    "Tree",
    "add",
    "check_names",
    "divided",
    "halved",
    "mirrored",
]
