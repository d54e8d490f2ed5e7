"""Leaves of array trees: one array a client, written out or kept as its factors.

    Dense      the array itself
    Factored   a short sum of outer products
    Symmetric  half of a short sum of squares
    Grouped    another leaf, placed into one of several groups

Axis 0 is the client. Norms, scaling, sums and inner products come from what is stored:
the array of a client whose leaf is factored is never written down. Before: nothing.
After: `tree` puts named leaves together.
"""

from __future__ import annotations

from tacit.leaves.dense import Dense
from tacit.leaves.factored import Factored
from tacit.leaves.grouped import Grouped, Leaf
from tacit.leaves.stored import Array, Arrays
from tacit.leaves.symmetric import Symmetric, halved, mirrored

__all__ = [
    "Array",
    "Arrays",
    "Dense",
    "Factored",
    "Grouped",
    "Leaf",
    "Symmetric",
    "halved",
    "mirrored",
]
