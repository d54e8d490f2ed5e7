from __future__ import annotations

from typing import Any

import pytest

from tacit.errors import BadValue
from tacit.reporting.leaks import render, table

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def finding() -> dict[str, Any]:
    line = {
        "what": "gradient",
        "seen_by": "server",
        "group": "everyone",
        "unit": "user",
        "adjacency": "replace_one",
        "view": "server",
        "delta": 0.0,
        "horizon": "once, 1 rounds planned",
        "accountant": "basic composition",
        "standing": "PROVEN",
        "assumes": "nothing",
        "epsilon": 1.0,
        "reason": "a theorem",
        "published_epsilon": None,
    }
    bare = line | {"standing": "NONE", "epsilon": None, "reason": HOSTILE}
    score = {"mean": 1.0, "se": None, "chance": 0.25, "most": None}
    return {
        "name": "item_gradient",
        "question": HOSTILE,
        "source": "synthetic",
        "users": 1200,
        "items": 30,
        "seed": 0,
        "attempts": [
            {
                "mechanism": HOSTILE,
                "statement": bare,
                "is_protected": False,
                "scores": {"found": score},
            },
            {
                "mechanism": "noise",
                "statement": line,
                "is_protected": True,
                "scores": {"found": score | {"mean": 0.3, "se": 0.01, "most": 0.6}},
            },
        ],
    }


def test_a_line_has_what_is_promised_and_what_was_found(
    finding: dict[str, Any],
) -> None:
    shown = table(finding)
    assert shown.caption == "item_gradient; by guessing alone: found 0.2500"
    assert shown.rows[0][1:4] == ("user", "server", "none")
    assert shown.rows[1][1:] == (
        "user",
        "server",
        "1.0000 (replace_one, delta 0.0; once, 1 rounds planned; basic composition)",
        "PROVEN: a theorem; assumes nothing",
        "0.3000 ± 0.0100",
    )


def test_the_page_draws_each_measure_and_escapes(finding: dict[str, Any]) -> None:
    page = render([finding])
    assert page.count("<figure>") == 1
    assert "1,200 users and 30 items of synthetic, seed 0." in page
    assert HOSTILE not in page
    assert "simulation" in page


def test_a_page_of_nothing_is_refused() -> None:
    with pytest.raises(BadValue, match="no findings to show"):
        render([])
