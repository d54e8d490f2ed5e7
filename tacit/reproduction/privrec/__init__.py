"""PrivRec and DP-PrivRec (Wang et al. 2021): Tables 1 to 4.

published   what the paper prints of accuracy
benches     data and sizes of a scale
settings    how each contender is trained, as published and as we would
trials      train and judge
accuracy    Tables 1 and 2
budgets     Tables 3 and 4
"""

from __future__ import annotations

from tacit.reproduction import Tables
from tacit.reproduction.privrec.accuracy import table_1, table_2
from tacit.reproduction.privrec.budgets import table_3, table_4

TABLES: Tables = {
    "1": table_1,
    "2": table_2,
    "3": lambda _: table_3(),
    "4": lambda _: table_4(),
}
