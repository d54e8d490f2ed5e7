"""PrivRec and DP-PrivRec (Wang et al. 2021): Tables 1 to 4 and Figures 2 to 5.

published   what the paper prints of accuracy
benches     data and sizes of a scale
settings    how each contender is trained, as published and as we would
trials      train and judge
courses     PrivRec with other settings, judged on its way
accuracy    Tables 1 and 2
knobs       Figure 2
noise       Figures 3 to 5, and the frontier of the sound form
clipping    whether the adaptive bound follows its quantile
adaptation  what adapting costs one device
budgets     Tables 3 and 4
cold_start  strangers, and items nobody had; with _items and _trials
"""

from __future__ import annotations

from tacit.reproduction import Tables
from tacit.reproduction.privrec.accuracy import table_1, table_2
from tacit.reproduction.privrec.adaptation import one_device
from tacit.reproduction.privrec.budgets import table_3, table_4
from tacit.reproduction.privrec.clipping import bound
from tacit.reproduction.privrec.cold_start import cold_start_table
from tacit.reproduction.privrec.knobs import figure_2
from tacit.reproduction.privrec.noise import figure_5, figures_3_and_4, frontier

TABLES: Tables = {
    "1": table_1,
    "2": table_2,
    "3": lambda _: table_3(),
    "4": lambda _: table_4(),
    "figure-2": figure_2,
    "figures-3-4": figures_3_and_4,
    "figure-5": figure_5,
    "frontier": frontier,
    "bound": bound,
    "adaptation": one_device,
    "cold-start": cold_start_table,
}
