from __future__ import annotations

from typing import Any

import pytest
from reporting import small
from reporting.small import HOSTILE

from tacit.errors import BadValue
from tacit.reporting.leaks import render, table


@pytest.fixture
def finding() -> dict[str, Any]:
    return small.finding()


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
        "PROVEN: a theorem; assumes: nothing",
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
