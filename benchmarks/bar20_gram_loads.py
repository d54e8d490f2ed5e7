"""Bar 20: Gram's third sum, from histories to the noisy sum, against a bare product.

As bar 18, with loadings q tᵀ: 2,000 items on 40 tastes. So thin a product reads every
row once and computes little. Ours makes each q and t, bounds their product twice and
adds it up, all from the few items of a history: q is never written out.
"""

from __future__ import annotations

from benchmarks.bar import Bar
from benchmarks.bar18_gram import measure_loads

BAR = Bar(
    20, "Gram's third sum, against one bare product", 1.5, measure_loads, sense="<="
)
