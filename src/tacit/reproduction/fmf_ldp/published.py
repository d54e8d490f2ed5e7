"""What the paper prints, and where.

Figures 2 and 3 are drawn without numbers; what the text says of them became claims.
"""

from __future__ import annotations

from collections.abc import Mapping

# HR@10; k = 100, 2.5 a report, 20 epochs. (people, items) -> figure
FIGURE_4: Mapping[tuple[int, int], float] = {
    (1_000, 1_000): 0.1160,
    (1_000, 5_000): 0.1010,
    (1_000, 9_781): 0.1090,
    (10_000, 1_000): 0.6325,
    (10_000, 5_000): 0.1988,
    (10_000, 9_781): 0.1216,
    (50_000, 1_000): 0.6972,
    (50_000, 5_000): 0.6801,
    (50_000, 9_781): 0.5654,
}

# HR@2, HR@5, HR@10; the latest item, 75,040 people × 9,781 items, at most 20 epochs.
FIGURE_5: Mapping[str, tuple[float, float, float]] = {
    "MF-NP": (0.4310, 0.6700, 0.8179),
    "DPLCF": (0.4203, 0.5969, 0.7000),
    "FMF-LDP-100": (0.2163, 0.3755, 0.5131),
    "FMF-LDP-250": (0.2315, 0.3980, 0.5384),
    "random": (0.0200, 0.0500, 0.1000),
}
FULL_SET = (75_040, 9_781)

# Bytes, Section 5.3; "about" in every case.
V_OF_1000_ITEMS = 20_000
V_OF_ALL_ITEMS = 200_000
DOWNLOAD_OF_20_EPOCHS = 4_000_000
UPLOAD_OF_AN_EPOCH = 400
UPLOAD_OF_20_EPOCHS = 8_000
