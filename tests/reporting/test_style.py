"""The style sheet fetches nothing, and light and dark name the same colors."""

import re

from tacit.reporting.style import CSS


def test_nothing_is_fetched():
    assert not re.search(r"url\(|@import|https?:|//", CSS)


def test_dark_has_every_color_of_light_and_all_that_are_used():
    light, dark = (
        {*re.findall(r"(--[\w-]+):", part)} for part in CSS.split("@media (prefers")[:2]
    )
    assert light == dark
    assert {*re.findall(r"var\((--[\w-]+)\)", CSS)} <= light


def test_every_brace_is_closed():
    assert CSS.count("{") == CSS.count("}")
