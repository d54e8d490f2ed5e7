"""FMF-LDP (Minto et al. 2021): Figures 2 to 5 and the costs of Section 5.3.

MovieLens 20M is not redistributable and was not at hand: cells are subsets of MovieLens
1M, and of one invented world that was frozen before anything was trained on it. A row
has the published figure, ours in paper mode, and ours in sound mode at a total that
costs what the paper says a run costs; beside them popularity, non-private matrix
factorisation and a random order, judged alike.

    published      what the paper prints
    subsets        people × items, and the item each must find
    benches        data and sizes of a scale
    trials         train and judge
    comparing      rows, budgets, paired differences
    privacy, learning, sizes, benchmarks     Figures 2 to 5
    communication                            Section 5.3

Epsilons of a row are a person's, for the whole run; shuffled ones at delta 1e-6, if the
relay does not side with the server and waits for everyone.
"""

from __future__ import annotations

from tacit.reproduction import Tables
from tacit.reproduction.fmf_ldp.benchmarks import figure_5
from tacit.reproduction.fmf_ldp.communication import communication
from tacit.reproduction.fmf_ldp.learning import figure_3
from tacit.reproduction.fmf_ldp.privacy import figure_2
from tacit.reproduction.fmf_ldp.sizes import figure_4

TABLES: Tables = {
    "2": figure_2,
    "3": figure_3,
    "4": figure_4,
    "5": figure_5,
    "5.3": communication,
}
