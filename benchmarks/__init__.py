"""Measured speed bars: `python -m benchmarks`; see docs/benchmarks.md.

One file a bar, such as `bar12_topk.py`, with the baseline in it and a `BAR` at its end.
A new bar is one more such file.
"""

import tacit  # noqa: F401  # before numpy, as for everyone who uses it
