"""What the paper prints of accuracy: Tables 1 and 2. DP-PrivRec's is drawn only."""

from __future__ import annotations

from collections.abc import Mapping

DEPTHS = (5, 10, 20, 30)
Figures = tuple[float, float, float, float]  # at each depth

# name -> (Hits, nDCG)
TABLE_1: Mapping[str, tuple[Figures, Figures]] = {
    "FOFL-SELF": ((0.118, 0.152, 0.195, 0.241), (0.101, 0.130, 0.169, 0.207)),
    "NN-SELF": ((0.109, 0.148, 0.190, 0.235), (0.098, 0.124, 0.162, 0.201)),
    "FCF": ((0.092, 0.140, 0.186, 0.228), (0.088, 0.118, 0.155, 0.195)),
    "PrivRec": ((0.123, 0.160, 0.205, 0.249), (0.106, 0.137, 0.174, 0.210)),
    "PrivRec-CEN": ((0.127, 0.163, 0.207, 0.252), (0.109, 0.138, 0.178, 0.212)),
}
TABLE_2: Mapping[str, tuple[Figures, Figures]] = {
    "FOFL-SELF": ((0.536, 0.618, 0.655, 0.682), (0.479, 0.554, 0.600, 0.621)),
    "NN-SELF": ((0.531, 0.613, 0.651, 0.677), (0.472, 0.550, 0.595, 0.616)),
    # Hits@10 is below Hits@5 in print.
    "FCF": ((0.527, 0.506, 0.646, 0.671), (0.469, 0.544, 0.591, 0.612)),
    "PrivRec": ((0.541, 0.624, 0.661, 0.688), (0.483, 0.560, 0.607, 0.626)),
    "PrivRec-CEN": ((0.543, 0.628, 0.665, 0.690), (0.484, 0.563, 0.608, 0.628)),
}
