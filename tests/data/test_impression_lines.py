from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tacit.data import impression_lines
from tacit.data.impression_lines import impressions_of_lines

Line = tuple[int, int, int, bool, int]  # user, item, slate, clicked, time


def made(lines: list[Line], *, timed: bool):
    users, items, slates, clicked, times = (
        np.array(c) for c in zip(*lines, strict=True)
    )
    return impressions_of_lines(
        users,
        items,
        slates,
        clicked=clicked.astype(bool),
        times=times if timed else None,
        n_users=4,
        n_items=6,
    )


def literal(lines: list[Line], *, timed: bool) -> list[tuple]:
    """The same by dictionaries: user, time, shown, clicked, history."""
    groups: dict[tuple[int, int], list[Line]] = {}
    for line in lines:
        groups.setdefault((line[0], line[2]), []).append(line)
    ordered = sorted(
        enumerate(groups.values()),
        key=lambda g: (g[1][0][0], min(x[4] for x in g[1]) if timed else 0, g[0]),
    )
    out, read = [], dict[int, list[int]]()
    for _, slate in ordered:
        known = read.setdefault(slate[0][0], [])
        time = min(x[4] for x in slate) if timed else None
        shown, clicked = [x[1] for x in slate], [x[3] for x in slate]
        last = known[-impression_lines.MOST_READ :]
        out.append((slate[0][0], time, shown, clicked, [*last]))
        known += [x[1] for x in slate if x[3]]
    return out


LINE = st.tuples(
    st.integers(0, 3),
    st.integers(0, 5),
    st.integers(0, 3),
    st.booleans(),
    st.integers(0, 9),
)


@given(st.lists(LINE, min_size=1, max_size=40), st.booleans())
def test_lines_become_the_impressions_that_a_loop_would_make(lines, timed):
    found = made(lines, timed=timed)
    slates = found.slates
    rows = [
        (
            int(slates.users[k]),
            int(slates.times[k]) if timed else None,
            slates.shown[k].tolist(),
            found.clicked[slates.shown.places(np.array([k]))].tolist(),
            slates.histories[slates.history_of[k]].tolist(),
        )
        for k in range(len(found))
    ]
    assert rows == literal(lines, timed=timed)


def test_a_history_has_the_last_clicks(monkeypatch):
    monkeypatch.setattr(impression_lines, "MOST_READ", 2)
    lines = [(0, slate, slate, True, slate) for slate in range(5)]
    slates = made(lines, timed=True).slates
    last = slates.histories[slates.history_of[4]]
    assert last.tolist() == [2, 3]
