"""FedVAE (Polato 2021): Figure 1 on its five data sets, and Table II.

Figure 1 draws nDCG and recall by epoch and states no number; what the text says of it
became claims. What a claim asks was written down before its curves were made.

    published   what the paper prints
    benches     data sets, and the curves and epochs of a scale
    trials      train, and judge after every few epochs
    curves      what is read off a curve: where it ends, how fast, how steadily
    figure      Figure 1: charts, tables, claims
    datasets    Table II
"""

from __future__ import annotations

from tacit.reproduction import Tables
from tacit.reproduction.fedvae.datasets import table_2
from tacit.reproduction.fedvae.figure import figure_1
from tacit.reproduction.fedvae_poisoning import poisoning

TABLES: Tables = {"II": table_2, "1": figure_1, "poisoning": poisoning}
